-- Early versions of pr-review-agent kept no outcome; their runs have no nonce, either.
SELECT dedupe_key
FROM runs
WHERE published_at IS NOT NULL AND publish_outcome IS NULL AND nonce IS NOT NULL
