-- A newer automatic trigger stands for the older ones of its pull request that still wait.
UPDATE queue
SET status = 'done'
WHERE status IN ('pending', 'claimed')
  AND repo = :repo
  AND pr_number = :pr
  AND status = 'pending'
  AND kind = 'pr_opened'
  AND dedupe_key <> :key
