SELECT dedupe_key, repo, pr_number, head_sha, outcome, findings, comment_id, recorded_at,
       published_at, content_purged_at, publish_outcome, publish_attempts, publish_failed_at,
       omitted, assessment, nonce, publish_began_at, provenance, command, reply, notice
FROM runs
WHERE dedupe_key = :key
