UPDATE ledger
SET used_tokens = :used, used_microusd = :money, usage_confidence = :confidence, engine = :engine,
    model = :model, reviewed_lines = :lines, stop_reason = :reason, settled_at = :now
WHERE id = :id AND owner = :owner AND settled_at IS NULL
