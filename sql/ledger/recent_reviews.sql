-- Other commands have no reviewed lines. Reads ledger_by_pr.
SELECT max(reserved_at), min(reserved_at), count(*)
FROM ledger
WHERE repo = :repo
  AND pr_number = :pr
  AND reserved_at > :since
  AND stop_reason IN ('completed', 'truncated')
  AND reviewed_lines IS NOT NULL
