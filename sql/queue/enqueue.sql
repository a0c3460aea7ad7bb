INSERT OR IGNORE INTO queue
    (dedupe_key, kind, repo, pr_number, head_sha, actor_id, status, enqueued_at,
     comment_id, comment_source, command)
VALUES
    (:key, :kind, :repo, :pr, :head, :actor, 'pending', :now, :comment, :source, :command)
