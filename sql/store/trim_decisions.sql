-- Reads decisions_by_age.
DELETE FROM decisions
WHERE repo = ?1
  AND rowid IN (
      SELECT rowid FROM decisions WHERE repo = ?1 ORDER BY decided_at DESC LIMIT -1 OFFSET ?2
  )
