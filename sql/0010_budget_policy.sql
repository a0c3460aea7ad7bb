CREATE TABLE budget_policy (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    authority_repo TEXT NOT NULL,
    policy         TEXT NOT NULL,
    written_at     TEXT NOT NULL
);
