-- The replication is a follower like the others: what it waits for and what the hub has
-- refused are in the account of all followers, and so are the leases of its lanes.
--
-- detail is what the follower needs besides the reason; next_try is NULL for a change that
-- waits for a person.
ALTER TABLE set_aside RENAME TO old_set_aside;
CREATE TABLE set_aside (
    follower TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    lane     TEXT NOT NULL,
    error    TEXT NOT NULL,
    detail   TEXT,
    attempts INTEGER NOT NULL,
    since    INTEGER NOT NULL,
    next_try INTEGER,
    PRIMARY KEY (follower, seq)
) WITHOUT ROWID;
INSERT INTO set_aside SELECT follower, seq, lane, error, NULL, attempts, since, next_try FROM old_set_aside;
INSERT OR REPLACE INTO set_aside
SELECT 'replication', seq, stream, ifnull(local_id, '') || ': ' || status || ' ' || code || ': ' || message,
    json_object('local_id', ifnull(local_id, ''), 'status', status, 'code', code, 'message', message), 1, at_ns, NULL FROM memory_failures;
DROP TABLE old_set_aside;
DROP TABLE memory_failures;

-- Lanes that fail, by the time of their next try.
CREATE INDEX followers_failing ON followers (name, next_try) WHERE error IS NOT NULL;
INSERT OR REPLACE INTO followers (name, lane, position, updated_at, error, attempts, since, next_try)
SELECT 'replication', stream, 0, 0, ifnull(last_error, state), attempts, 0, CASE state WHEN 'halted' THEN NULL ELSE next_attempt_ns END
FROM memory_streams WHERE last_error IS NOT NULL AND (attempts > 0 OR state = 'halted');
DROP INDEX memory_streams_ready;
ALTER TABLE memory_streams DROP COLUMN attempts;
ALTER TABLE memory_streams DROP COLUMN next_attempt_ns;
ALTER TABLE memory_streams DROP COLUMN last_error;
CREATE INDEX memory_streams_ready ON memory_streams (user_id) WHERE head_seq > acked_seq;

-- Which process may work on which lane of a follower, until when and in which epoch.
DROP TABLE memory_lanes;
CREATE TABLE follower_leases (
    follower TEXT NOT NULL,
    lane     INTEGER NOT NULL,
    holder   TEXT NOT NULL,
    epoch    INTEGER NOT NULL,
    until_ns INTEGER NOT NULL,
    PRIMARY KEY (follower, lane)
) WITHOUT ROWID;
