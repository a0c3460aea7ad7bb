CREATE TABLE queue (
    dedupe_key   TEXT PRIMARY KEY,
    kind         TEXT NOT NULL,
    repo         TEXT NOT NULL,
    pr_number    INTEGER NOT NULL,
    head_sha     TEXT,
    actor_id     INTEGER NOT NULL,
    status       TEXT NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    enqueued_at  TEXT NOT NULL,
    leased_until TEXT,
    owner        TEXT
);

CREATE INDEX queue_claimable ON queue (status, enqueued_at);
CREATE INDEX queue_by_pr ON queue (repo, pr_number, status);
