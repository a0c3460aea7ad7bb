SELECT dedupe_key FROM ledger WHERE settled_at IS NOT NULL AND used_tokens IS NULL
