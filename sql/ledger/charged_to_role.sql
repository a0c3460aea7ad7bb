-- Reads ledger_window alone.
-- total() does not fail where a sum of integers overflows, and is exact up to 9e15.
SELECT CAST(total(coalesce(used_tokens, reserved_tokens)) AS INTEGER),
       CAST(total(coalesce(used_microusd, reserved_microusd)) AS INTEGER)
FROM ledger
WHERE reserved_at > :since AND role = :role
