-- Reads ledger_by_actor.
SELECT coalesce(sum(coalesce(used_tokens, reserved_tokens)), 0)
FROM ledger
WHERE actor_id = :actor AND reserved_at > :since
