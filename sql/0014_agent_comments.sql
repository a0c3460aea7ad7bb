CREATE TABLE agent_comments (
    repo       TEXT NOT NULL,
    comment_id INTEGER NOT NULL,
    posted_at  TEXT NOT NULL,
    PRIMARY KEY (repo, comment_id)
);
