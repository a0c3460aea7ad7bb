-- The rows that may be claimed now, best first. Reads queue_live only.
SELECT dedupe_key, kind, repo, pr_number, head_sha, actor_id, status, attempts, enqueued_at,
       comment_id, comment_source, command
FROM queue AS candidate INDEXED BY queue_live
WHERE status IN ('pending', 'claimed')
  AND repo IN (SELECT value FROM json_each(:repos))
  AND (status = 'pending' OR leased_until IS NULL OR leased_until <= :now)
  AND (kind IN ('publish', 'render') OR attempts < :max_attempts)
  AND (not_before IS NULL OR not_before <= :now)
  AND NOT EXISTS (
      SELECT 1
      FROM queue AS other INDEXED BY queue_live
      WHERE other.status IN ('pending', 'claimed')
        AND other.repo = candidate.repo
        AND other.pr_number = candidate.pr_number
        AND other.status = 'claimed'
        AND other.leased_until > :now
        AND other.dedupe_key <> candidate.dedupe_key
  )
ORDER BY
    -- Publishing costs nothing and ends what was paid for, and help costs nothing. Among reviews a person's request comes
    -- first, unless an automatic one has waited for half an hour.
    CASE
        WHEN kind IN ('publish', 'render') OR command = 'help' THEN 0
        WHEN command = 'merge' THEN 1
        WHEN command = 'fix' THEN 2
        WHEN kind = 'mention' OR enqueued_at <= :aged THEN 3
        ELSE 4
    END,
    enqueued_at,
    dedupe_key
