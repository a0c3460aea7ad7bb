CREATE TABLE runs (
    dedupe_key        TEXT PRIMARY KEY,
    repo              TEXT NOT NULL,
    pr_number         INTEGER NOT NULL,
    head_sha          TEXT NOT NULL,
    outcome           TEXT NOT NULL,
    findings          TEXT NOT NULL,
    comment_id        INTEGER,
    recorded_at       TEXT NOT NULL,
    published_at      TEXT,
    content_purged_at TEXT
);

CREATE INDEX runs_by_pr ON runs (repo, pr_number);
