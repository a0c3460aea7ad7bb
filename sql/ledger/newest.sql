SELECT id, dedupe_key, mode, reserved_tokens, used_tokens, usage_confidence, engine, model,
       reserved_at, settled_at, stop_reason
FROM ledger
ORDER BY id DESC
LIMIT ?1
