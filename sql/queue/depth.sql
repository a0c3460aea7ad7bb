-- Reads queue_live only.
SELECT coalesce(sum(waits), 0), coalesce(sum(NOT waits), 0), min(CASE WHEN waits THEN enqueued_at END)
FROM (
    SELECT enqueued_at,
           status = 'pending' OR leased_until IS NULL OR leased_until <= :now AS waits
    FROM queue INDEXED BY queue_live
    WHERE status IN ('pending', 'claimed')
)
