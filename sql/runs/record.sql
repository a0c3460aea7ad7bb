-- A run that failed may be followed by one that did not; a visible review is never overwritten.
INSERT INTO runs
    (dedupe_key, repo, pr_number, head_sha, outcome, findings, recorded_at, omitted, assessment,
     nonce, provenance, command, reply, notice)
VALUES
    (:key, :repo, :pr, :head, :outcome, :findings, :now, :omitted, :assessment, :nonce, :provenance,
     :command, :reply, :notice)
ON CONFLICT (dedupe_key) DO UPDATE
SET head_sha = excluded.head_sha, outcome = excluded.outcome, findings = excluded.findings,
    recorded_at = excluded.recorded_at, omitted = excluded.omitted,
    assessment = excluded.assessment, nonce = excluded.nonce, provenance = excluded.provenance,
    command = excluded.command, reply = excluded.reply, notice = excluded.notice,
    comment_id = NULL, published_at = NULL, publish_outcome = NULL, publish_attempts = 0,
    publish_failed_at = NULL, publish_began_at = NULL, content_purged_at = NULL
WHERE runs.published_at IS NULL OR runs.outcome = 'failed'
