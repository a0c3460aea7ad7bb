-- Oldest first: the order in which they leave a window. Reads ledger_window.
SELECT id, reserved_at, actor_id, role, coalesce(used_tokens, reserved_tokens),
       coalesce(used_microusd, reserved_microusd), settled_at IS NULL
FROM ledger
WHERE reserved_at > :since
ORDER BY reserved_at, id
