-- Reads ledger_window.
SELECT coalesce(sum(coalesce(used_tokens, reserved_tokens)), 0)
FROM ledger
WHERE reserved_at > :since
