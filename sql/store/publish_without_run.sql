SELECT dedupe_key
FROM queue
WHERE kind = 'publish' AND status IN ('pending', 'claimed')
  AND substr(dedupe_key, length('publish:') + 1) NOT IN (SELECT dedupe_key FROM runs)
