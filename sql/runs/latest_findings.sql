SELECT dedupe_key, findings
FROM runs
WHERE repo = :repo AND pr_number = :pr AND outcome IN ('completed', 'truncated')
ORDER BY recorded_at DESC
LIMIT 1
