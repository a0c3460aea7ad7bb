-- One open reservation per key. Of several the newest stays open; the others belong to workers that
-- died, and stay charged in full.
UPDATE ledger
SET used_tokens = reserved_tokens,
    usage_confidence = 'unavailable',
    stop_reason = 'lost',
    settled_at = reserved_at
WHERE settled_at IS NULL
  AND id < (
      SELECT max(newest.id)
      FROM ledger AS newest
      WHERE newest.dedupe_key = ledger.dedupe_key
        AND newest.settled_at IS NULL
  );

CREATE UNIQUE INDEX ledger_open ON ledger (dedupe_key) WHERE settled_at IS NULL;
