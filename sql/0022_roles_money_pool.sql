-- Whose share a run is of, and what it may cost and did cost, in millionths of a US dollar.
ALTER TABLE ledger ADD COLUMN role TEXT NOT NULL DEFAULT 'review';
ALTER TABLE ledger ADD COLUMN reserved_microusd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN used_microusd INTEGER;

-- Nothing reads these: a claim walks queue_live, and windows are added up from a week of rows. Each
-- would be written at every claim.
DROP INDEX IF EXISTS ledger_by_actor;
DROP INDEX IF EXISTS queue_claimable;
DROP INDEX IF EXISTS queue_by_pr;
