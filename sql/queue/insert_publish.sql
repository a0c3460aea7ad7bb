INSERT INTO queue
    (dedupe_key, kind, repo, pr_number, head_sha, actor_id, status, attempts, enqueued_at,
     leased_until, owner, comment_id, comment_source, command)
SELECT :publish_key, 'publish', repo, pr_number, head_sha, actor_id,
       iif(:owner IS NULL, 'pending', 'claimed'), iif(:owner IS NULL, 0, 1), :now,
       :until, :owner, comment_id, comment_source, command
FROM queue
WHERE dedupe_key = :key
ON CONFLICT (dedupe_key) DO UPDATE
SET status = excluded.status, attempts = excluded.attempts, enqueued_at = excluded.enqueued_at,
    leased_until = excluded.leased_until, owner = excluded.owner, not_before = NULL
