-- A start-up gives the unqualified mark to one repository and deletes it before anything is polled.
SELECT old.name
FROM watermarks AS old
WHERE old.name NOT LIKE '%:%'
  AND EXISTS (SELECT 1 FROM watermarks AS new WHERE new.name LIKE old.name || ':%')
