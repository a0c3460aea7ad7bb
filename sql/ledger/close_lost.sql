-- What a worker that died had reserved stays charged in full.
UPDATE ledger
SET used_tokens = reserved_tokens, used_microusd = reserved_microusd,
    usage_confidence = 'unavailable', stop_reason = 'lost', settled_at = :now
WHERE dedupe_key = :key AND settled_at IS NULL
