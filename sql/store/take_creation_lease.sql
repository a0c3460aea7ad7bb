-- A lease further ahead than any is given was left by a clock that has been set back.
INSERT INTO creation_leases (repo, pr_number, token, expires_at)
VALUES (:repo, :pr, :token, :until)
ON CONFLICT (repo, pr_number) DO UPDATE
SET token = excluded.token, expires_at = excluded.expires_at
WHERE expires_at <= :now OR expires_at > :longest OR token = excluded.token
