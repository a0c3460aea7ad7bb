INSERT INTO ledger
    (dedupe_key, owner, actor_id, mode, reserved_tokens, reserved_at, repo, pr_number)
VALUES
    (:key, :owner, :actor, :mode, :tokens, :now, :repo, :pr)
