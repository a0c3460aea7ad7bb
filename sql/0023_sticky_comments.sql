-- Where a pull request's one comment is, as far as this store knows, and which run it shows.
CREATE TABLE sticky_comments (
    repo       TEXT NOT NULL,
    pr_number  INTEGER NOT NULL,
    comment_id INTEGER NOT NULL,
    shown      TEXT NOT NULL,
    PRIMARY KEY (repo, pr_number)
);

-- Who may create that comment now.
CREATE TABLE creation_leases (
    repo       TEXT NOT NULL,
    pr_number  INTEGER NOT NULL,
    token      TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    PRIMARY KEY (repo, pr_number)
);

-- The greatest number that a finding of a pull request ever had. It outlives the findings.
CREATE TABLE finding_numbers (
    repo      TEXT NOT NULL,
    pr_number INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    PRIMARY KEY (repo, pr_number)
);

-- What the retention has yet to empty.
CREATE INDEX runs_with_content ON runs (repo, recorded_at) WHERE content_purged_at IS NULL;
