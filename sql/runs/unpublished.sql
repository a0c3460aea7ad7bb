SELECT dedupe_key, repo, pr_number, head_sha, publish_attempts, publish_failed_at
FROM runs
WHERE publish_failed_at IS NOT NULL AND published_at IS NULL AND content_purged_at IS NULL
ORDER BY publish_failed_at
