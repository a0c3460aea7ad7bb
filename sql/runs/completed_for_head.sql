SELECT EXISTS (
    SELECT 1
    FROM runs
    WHERE repo = :repo AND pr_number = :pr AND head_sha = :head AND command = 'review'
      AND outcome IN ('completed', 'truncated')
)
