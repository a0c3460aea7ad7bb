-- Statements compare moments as texts, which needs UTC.
WITH moments (place, at) AS (
    SELECT 'ledger.reserved_at of ' || dedupe_key, reserved_at FROM ledger
    UNION ALL
    SELECT 'ledger.settled_at of ' || dedupe_key, settled_at FROM ledger
    UNION ALL
    SELECT 'queue.enqueued_at of ' || dedupe_key, enqueued_at FROM queue
    UNION ALL
    SELECT 'queue.leased_until of ' || dedupe_key, leased_until FROM queue
    UNION ALL
    SELECT 'queue.not_before of ' || dedupe_key, not_before FROM queue
    UNION ALL
    SELECT 'runs.recorded_at of ' || dedupe_key, recorded_at FROM runs
    UNION ALL
    SELECT 'watermarks.at of ' || name, at FROM watermarks
    UNION ALL
    SELECT 'seeds.at of ' || name, at FROM seeds
)
SELECT place
FROM moments
WHERE at IS NOT NULL
  AND at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]*Z'
  AND at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]*+00:00'
