UPDATE queue
SET status = 'claimed', owner = :owner, leased_until = :until, attempts = attempts + 1,
    not_before = NULL
WHERE dedupe_key = :key
