-- Only the owner of a lease may end it.
UPDATE queue
SET status = :status, attempts = max(attempts - :uncounted, 0), not_before = :not_before,
    owner = NULL, leased_until = NULL
WHERE dedupe_key = :key AND owner = :owner AND status = 'claimed'
