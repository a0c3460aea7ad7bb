-- The reviews of a pull request, newest first. Of those that tell the same time the later row is newer.
SELECT dedupe_key, findings
FROM runs
WHERE repo = :repo AND pr_number = :pr AND command = 'review' AND outcome IN ('completed', 'truncated')
ORDER BY recorded_at DESC, rowid DESC
