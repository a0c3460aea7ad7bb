-- Oldest first: the order in which they leave a window. Reads ledger_by_actor.
SELECT reserved_at, coalesce(used_tokens, reserved_tokens)
FROM ledger
WHERE actor_id = :actor AND reserved_at > :since
  AND coalesce(used_tokens, reserved_tokens) > 0
ORDER BY reserved_at
