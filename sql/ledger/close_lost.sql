-- What a worker that died had reserved stays charged in full.
UPDATE ledger
SET used_tokens = reserved_tokens, usage_confidence = 'unavailable', stop_reason = 'lost',
    settled_at = :now
WHERE dedupe_key = :key AND settled_at IS NULL
