INSERT INTO ledger
    (dedupe_key, owner, actor_id, role, mode, reserved_tokens, reserved_microusd, reserved_at, repo,
     pr_number)
VALUES
    (:key, :owner, :actor, :role, :mode, :tokens, :money, :now, :repo, :pr)
