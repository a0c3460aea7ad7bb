SELECT name
FROM watermarks
WHERE name NOT IN ('pull_requests', 'comments')
  AND name NOT GLOB 'pull_requests:?*/?*'
  AND name NOT GLOB 'comments:?*/?*'
  AND name NOT GLOB 'review_comments:?*/?*'
