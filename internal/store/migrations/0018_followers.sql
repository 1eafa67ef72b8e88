-- One account of all followers: those of one stream have the lane '', the others a row for
-- each lane, such as a project of the archive.
ALTER TABLE followers RENAME TO old_followers;
CREATE TABLE followers (
    name       TEXT NOT NULL,
    lane       TEXT NOT NULL,
    position   INTEGER NOT NULL,
    mark       TEXT,
    updated_at INTEGER NOT NULL,
    error      TEXT,
    attempts   INTEGER NOT NULL DEFAULT 0,
    since      INTEGER,
    next_try   INTEGER,
    PRIMARY KEY (name, lane)
) WITHOUT ROWID;
INSERT INTO followers (name, lane, position, updated_at) SELECT name, '', position, updated_at FROM old_followers;
INSERT OR REPLACE INTO followers (name, lane, position, mark, updated_at)
SELECT 'archive', p.id, c.committed_seq, nullif(c.head, ''), 0 FROM archive_cursor c JOIN projects p ON p.key = c.project_key;
DROP TABLE old_followers;

ALTER TABLE set_aside RENAME TO old_set_aside;
CREATE TABLE set_aside (
    follower TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    lane     TEXT NOT NULL,
    error    TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    since    INTEGER NOT NULL,
    next_try INTEGER NOT NULL,
    PRIMARY KEY (follower, seq)
) WITHOUT ROWID;
INSERT INTO set_aside SELECT follower, seq, '', error, attempts, next_try, next_try FROM old_set_aside;
INSERT OR REPLACE INTO set_aside
SELECT 'archive', a.seq, p.id, a.error, a.attempts, a.next_try, a.next_try FROM archive_aside a JOIN projects p ON p.key = a.project_key;
DROP TABLE old_set_aside;

DROP TABLE archive_cursor;
DROP TABLE archive_aside;
