-- Empties what a settled run says; when and how it was made stays.
UPDATE runs
SET findings = '[]', omitted = '[]', assessment = NULL, description = NULL, reply = NULL,
    content_purged_at = :now
WHERE content_purged_at IS NULL
  AND repo = :repo
  AND (:pr IS NULL OR pr_number = :pr)
  AND (:open IS NULL OR pr_number NOT IN (SELECT value FROM json_each(:open)))
  AND recorded_at < :before
  AND (published_at IS NOT NULL OR publish_failed_at IS NOT NULL OR outcome = 'failed')
