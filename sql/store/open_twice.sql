SELECT dedupe_key FROM ledger WHERE settled_at IS NULL GROUP BY dedupe_key HAVING count(*) > 1
