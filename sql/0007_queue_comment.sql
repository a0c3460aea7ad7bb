ALTER TABLE queue ADD COLUMN comment_id INTEGER;
ALTER TABLE queue ADD COLUMN comment_source TEXT;
