-- What waited when the run started, asked for the same and names no other head is answered by it.
UPDATE queue
SET status = 'done'
WHERE status IN ('pending', 'claimed')
  AND repo = :repo
  AND pr_number = :pr
  AND status = 'pending'
  AND kind NOT IN ('publish', 'render')
  AND command = :command
  AND dedupe_key <> :key
  AND enqueued_at <= :started
  AND (head_sha IS NULL OR head_sha = :head)
