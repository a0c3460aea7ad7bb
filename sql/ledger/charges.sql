-- Oldest first: the order in which they leave a window. Reads ledger_window.
SELECT reserved_at, actor_id, role, coalesce(used_tokens, reserved_tokens),
       coalesce(used_microusd, reserved_microusd)
FROM ledger
WHERE reserved_at > :since
ORDER BY reserved_at
