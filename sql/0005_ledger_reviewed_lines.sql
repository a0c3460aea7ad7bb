ALTER TABLE ledger ADD COLUMN reviewed_lines INTEGER;
