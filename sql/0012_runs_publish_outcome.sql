ALTER TABLE runs ADD COLUMN publish_outcome TEXT;
