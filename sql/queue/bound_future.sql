-- After a clock was set back, leases and pauses lie further ahead than any is given: they are cut to
-- the longest, so that none holds a row for as long as the clock was wrong.
UPDATE queue
SET leased_until = min(leased_until, :lease_end), not_before = min(not_before, :pause_end)
WHERE status IN ('pending', 'claimed')
  AND repo IN (SELECT value FROM json_each(:repos))
  AND (leased_until > :lease_end OR not_before > :pause_end)
