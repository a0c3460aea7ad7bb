-- Values that this program could not read: words of a queue row that it does not know, texts that are
-- no JSON where JSON is kept.
SELECT 'queue.' || column || ' of ' || dedupe_key
FROM (
    SELECT dedupe_key, 'kind' AS column FROM queue
    WHERE kind NOT IN ('pr_opened', 'mention', 'publish', 'render')
    UNION ALL
    SELECT dedupe_key, 'command' FROM queue
    WHERE lower(command) NOT IN ('review', 'describe', 'ask', 'fix', 'merge', 'help')
    UNION ALL
    SELECT dedupe_key, 'comment_source' FROM queue
    WHERE comment_id IS NOT NULL AND comment_source NOT IN ('issue', 'review')
)
UNION ALL
SELECT 'runs.' || column || ' of ' || dedupe_key
FROM (
    SELECT dedupe_key, 'findings' AS column, findings AS text FROM runs
    UNION ALL SELECT dedupe_key, 'omitted', omitted FROM runs
    UNION ALL SELECT dedupe_key, 'assessment', assessment FROM runs
    UNION ALL SELECT dedupe_key, 'description', description FROM runs
    UNION ALL SELECT dedupe_key, 'provenance', provenance FROM runs
    UNION ALL SELECT dedupe_key, 'reply', reply FROM runs
    UNION ALL SELECT dedupe_key, 'notice', notice FROM runs
)
WHERE text IS NOT NULL AND NOT json_valid(text)
UNION ALL
SELECT 'budget_policy.policy' FROM budget_policy WHERE NOT json_valid(policy)
