-- Forgetting, and the ledger of what sessions were told.

-- Salted hashes of what must not come back: tool use ids, transcript lines and
-- prompt ids; of whole sessions and projects with the time (Unix seconds) up to
-- which their events stay forgotten.
CREATE TABLE tombstones (
    hash  BLOB PRIMARY KEY,
    until INTEGER
) WITHOUT ROWID;

-- One row for every item that was put into a conversation. Read it through the
-- view `injections`. It holds no text.
CREATE TABLE injection_rows (
    id             INTEGER PRIMARY KEY,
    timestamp      INTEGER NOT NULL,
    session_key    INTEGER NOT NULL REFERENCES sessions (key),
    trigger        TEXT NOT NULL CHECK (trigger IN ('session_start', 'prompt', 'tool')),
    section        TEXT NOT NULL,
    observation_id INTEGER NOT NULL,
    tokens         INTEGER NOT NULL,
    used_at        INTEGER,
    used_how       TEXT CHECK (used_how IN ('fetched', 'file', 'command'))
);
CREATE INDEX injection_rows_by_session ON injection_rows (session_key, observation_id);
CREATE INDEX injection_rows_by_time ON injection_rows (timestamp);

CREATE VIEW injections AS
SELECT i.id, i.timestamp, s.id AS session_id, i.trigger, i.section, i.observation_id, i.tokens,
       i.used_at, i.used_how
FROM injection_rows i
JOIN sessions s ON s.key = i.session_key;

-- The documents that a purge may have to blank; observations have none.
CREATE INDEX changes_with_doc ON changes (kind, id) WHERE doc IS NOT NULL;
