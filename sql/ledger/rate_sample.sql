-- The newest full rounds whose usage was measured exactly. Reads ledger_measured.
SELECT count(*), coalesce(sum(used_tokens), 0), coalesce(sum(reviewed_lines), 0)
FROM (
    SELECT used_tokens, reviewed_lines
    FROM ledger INDEXED BY ledger_measured
    WHERE stop_reason = 'completed'
      AND usage_confidence = 'exact'
      AND used_tokens > 0
      AND reviewed_lines > 0
      AND reviewed_since IS NULL
    ORDER BY id DESC
    LIMIT :rows
)
