ALTER TABLE ledger ADD COLUMN repo TEXT;
ALTER TABLE ledger ADD COLUMN pr_number INTEGER;

CREATE INDEX ledger_by_pr ON ledger (repo, pr_number, reserved_at);
