CREATE INDEX ledger_by_actor ON ledger (actor_id, reserved_at);
