-- Only what was given up and still says something can be put back; the note of the first attempt stays, so that a comment that
-- it made is still found.
UPDATE runs
SET publish_failed_at = NULL, publish_attempts = 0
WHERE dedupe_key = :key AND publish_failed_at IS NOT NULL AND published_at IS NULL
  AND content_purged_at IS NULL
