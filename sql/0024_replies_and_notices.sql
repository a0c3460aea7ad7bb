-- What a run was asked for, what it answered when that is no review, and what is told when there is
-- neither.
ALTER TABLE runs ADD COLUMN command TEXT NOT NULL DEFAULT 'review';
ALTER TABLE runs ADD COLUMN reply TEXT;
ALTER TABLE runs ADD COLUMN notice TEXT;
UPDATE runs SET command = 'describe' WHERE description IS NOT NULL;
