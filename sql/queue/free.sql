UPDATE queue
SET status = 'pending', owner = NULL, leased_until = NULL
WHERE status IN ('pending', 'claimed') AND status = 'claimed' AND owner = ?1
