ALTER TABLE ledger ADD COLUMN reviewed_since TEXT;
