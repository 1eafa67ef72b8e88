-- Default memories by the key of their project. project_uid is the uid of the project
-- whose default memory a memory is, as this device or the hub says; NULL if no device
-- has said so. project_key is the project here.
ALTER TABLE memories ADD COLUMN project_uid TEXT;

-- Until now a device found the default memory that another device had made by the title
-- of its vault. The projects up to this key may still do so.
INSERT INTO store_meta (name, value) SELECT 'memory.titled', max(key) FROM projects HAVING max(key) IS NOT NULL;
