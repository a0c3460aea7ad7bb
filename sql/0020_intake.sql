-- Where a stream began: nothing older is ever offered.
CREATE TABLE seeds (
    name TEXT PRIMARY KEY,
    at   TEXT NOT NULL
);

-- What the last response said of each pull request, so that "opened" and "became ready" happen once.
CREATE TABLE pulls_seen (
    repo      TEXT NOT NULL,
    pr_number INTEGER NOT NULL,
    draft     INTEGER NOT NULL,
    head_sha  TEXT NOT NULL,
    seen_at   TEXT NOT NULL,
    PRIMARY KEY (repo, pr_number)
);

-- The last decision on each item.
CREATE TABLE decisions (
    repo       TEXT NOT NULL,
    item       TEXT NOT NULL,
    pr_number  INTEGER NOT NULL,
    reason     TEXT NOT NULL,
    decided_at TEXT NOT NULL,
    PRIMARY KEY (repo, item)
);

CREATE INDEX decisions_by_age ON decisions (repo, decided_at);
CREATE INDEX decisions_by_pr ON decisions (repo, pr_number);

-- The numeric id behind a name, to notice when another repository takes the name over.
CREATE TABLE repositories (
    repo    TEXT PRIMARY KEY,
    repo_id INTEGER NOT NULL
);
