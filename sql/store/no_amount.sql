-- A text among amounts would make the sum of a window unreadable, a negative one make room.
SELECT dedupe_key
FROM ledger
WHERE typeof(reserved_tokens) <> 'integer' OR reserved_tokens < 0
   OR (used_tokens IS NOT NULL AND (typeof(used_tokens) <> 'integer' OR used_tokens < 0))
