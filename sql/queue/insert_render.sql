-- Rendering a stored run again, for whoever's review it was. One that is queued already stands for it.
INSERT INTO queue (dedupe_key, kind, repo, pr_number, head_sha, actor_id, status, enqueued_at)
SELECT :key, 'render', repo, pr_number, head_sha, actor_id, 'pending', :now
FROM queue
WHERE dedupe_key = :shown
ON CONFLICT (dedupe_key) DO UPDATE
SET status = 'pending', attempts = 0, enqueued_at = excluded.enqueued_at, not_before = NULL
WHERE queue.status IN ('done', 'abandoned')
