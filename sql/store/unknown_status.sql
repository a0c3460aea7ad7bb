SELECT dedupe_key FROM queue WHERE status NOT IN ('pending', 'claimed', 'done', 'abandoned')
