CREATE TABLE ledger (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    dedupe_key       TEXT NOT NULL,
    owner            TEXT NOT NULL,
    actor_id         INTEGER NOT NULL,
    mode             TEXT NOT NULL,
    reserved_tokens  INTEGER NOT NULL,
    used_tokens      INTEGER,
    usage_confidence TEXT,
    engine           TEXT,
    model            TEXT,
    reserved_at      TEXT NOT NULL,
    settled_at       TEXT
);

CREATE INDEX ledger_window ON ledger (reserved_at);
