-- The process behind an owner's name: its leases are freed as soon as it is gone.
CREATE TABLE owners (
    owner         TEXT PRIMARY KEY,
    host          TEXT NOT NULL,
    pid           INTEGER NOT NULL,
    process_start INTEGER NOT NULL,
    registered_at TEXT NOT NULL
);

ALTER TABLE queue ADD COLUMN not_before TEXT;

-- The only rows that a claim looks at; its size does not grow with history.
CREATE INDEX queue_live ON queue (repo, pr_number) WHERE status IN ('pending', 'claimed');

-- The random part of the run's hidden marker, the note before a POST, and what the report says of
-- how the run was made.
ALTER TABLE runs ADD COLUMN nonce TEXT;
ALTER TABLE runs ADD COLUMN publish_began_at TEXT;
ALTER TABLE runs ADD COLUMN provenance TEXT;

-- What the pre-flight's rate is taken from, read from its newest end.
CREATE INDEX ledger_measured ON ledger (id)
WHERE stop_reason = 'completed'
  AND usage_confidence = 'exact'
  AND used_tokens > 0
  AND reviewed_lines > 0
  AND reviewed_since IS NULL;
