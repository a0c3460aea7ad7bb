UPDATE queue
SET status = 'pending', attempts = 0, enqueued_at = :now, not_before = NULL
WHERE dedupe_key = :key
  AND status IN ('done', 'abandoned')
  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.dedupe_key = :key AND outcome <> 'failed')
