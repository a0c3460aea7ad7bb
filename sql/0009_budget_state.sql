CREATE TABLE budget_state (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
