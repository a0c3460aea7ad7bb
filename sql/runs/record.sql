-- A run that failed may be followed by one that did not; a visible run is never overwritten.
INSERT INTO runs
    (dedupe_key, repo, pr_number, head_sha, outcome, findings, recorded_at, omitted, assessment,
     nonce, provenance)
VALUES
    (:key, :repo, :pr, :head, :outcome, :findings, :now, :omitted, :assessment, :nonce, :provenance)
ON CONFLICT (dedupe_key) DO UPDATE
SET head_sha = excluded.head_sha, outcome = excluded.outcome, findings = excluded.findings,
    recorded_at = excluded.recorded_at, omitted = excluded.omitted,
    assessment = excluded.assessment, nonce = excluded.nonce, provenance = excluded.provenance,
    publish_attempts = 0, publish_failed_at = NULL, publish_began_at = NULL
WHERE runs.published_at IS NULL
