-- Whose share a run is of, and what it may cost and did cost, in millionths of a US dollar.
ALTER TABLE ledger ADD COLUMN role TEXT NOT NULL DEFAULT 'review';
ALTER TABLE ledger ADD COLUMN reserved_microusd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN used_microusd INTEGER;

-- Every claim adds up its windows: from the index alone, without a look at the table's rows.
DROP INDEX IF EXISTS ledger_window;
CREATE INDEX ledger_window ON ledger (
    reserved_at, role, used_tokens, reserved_tokens, used_microusd, reserved_microusd
);
DROP INDEX IF EXISTS ledger_by_actor;
CREATE INDEX ledger_by_actor ON ledger (
    actor_id, reserved_at, used_tokens, reserved_tokens, used_microusd, reserved_microusd
);
