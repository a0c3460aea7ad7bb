UPDATE queue
SET status = 'abandoned', owner = NULL, leased_until = NULL
WHERE status IN ('pending', 'claimed')
  AND repo IN (SELECT value FROM json_each(:repos))
  AND kind NOT IN ('publish', 'render')
  AND attempts >= :max_attempts
  AND (status = 'pending' OR leased_until IS NULL OR leased_until <= :now)
RETURNING *
