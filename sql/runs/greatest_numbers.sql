-- Findings of other tools and early ones have no number of their own: their place stood for it.
INSERT INTO finding_numbers (repo, pr_number, last)
SELECT repo, pr_number, max(number)
FROM (
    SELECT runs.repo, runs.pr_number,
           coalesce(json_extract(finding.value, '$.number'), finding.key + 1) AS number
    FROM runs, json_each(runs.findings) AS finding
    WHERE runs.content_purged_at IS NULL AND runs.repo = :repo AND json_valid(runs.findings)
)
WHERE true
GROUP BY repo, pr_number
ON CONFLICT (repo, pr_number) DO UPDATE SET last = max(last, excluded.last)
