SELECT dedupe_key, status, not_before
FROM queue INDEXED BY queue_live
WHERE status IN ('pending', 'claimed')
ORDER BY enqueued_at, dedupe_key
