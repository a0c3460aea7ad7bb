SELECT dedupe_key FROM queue WHERE status = 'claimed' AND (owner IS NULL OR leased_until IS NULL)
