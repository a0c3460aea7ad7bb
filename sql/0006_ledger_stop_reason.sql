ALTER TABLE ledger ADD COLUMN stop_reason TEXT;
