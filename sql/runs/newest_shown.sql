-- The newest review of a pull request that its comment showed and that can still be shown.
SELECT dedupe_key, repo, pr_number, head_sha, outcome, findings, comment_id, recorded_at,
       published_at, content_purged_at, publish_outcome, publish_attempts, publish_failed_at,
       omitted, assessment, nonce, publish_began_at, provenance, command, reply, notice
FROM runs
WHERE repo = :repo AND pr_number = :pr AND command = 'review'
  AND outcome IN ('completed', 'truncated')
  AND publish_outcome = 'published' AND content_purged_at IS NULL
ORDER BY recorded_at DESC, rowid DESC
LIMIT 1
