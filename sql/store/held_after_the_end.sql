SELECT dedupe_key
FROM queue
WHERE status IN ('pending', 'done', 'abandoned')
  AND (owner IS NOT NULL OR leased_until IS NOT NULL)
