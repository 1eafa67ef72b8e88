-- The kernel: change log, followers, projects, sessions.

-- Short texts that recur in the change log (devices, projects, streams, kinds,
-- sessions, agents) are stored once and named by number there.
CREATE TABLE symbols (
    id   INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
);

CREATE TABLE store_meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE changes (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    device     INTEGER NOT NULL REFERENCES symbols (id),
    device_seq INTEGER NOT NULL,
    project    INTEGER REFERENCES symbols (id),
    stream     INTEGER NOT NULL REFERENCES symbols (id),
    kind       INTEGER NOT NULL REFERENCES symbols (id),
    id         TEXT NOT NULL,
    op         INTEGER NOT NULL REFERENCES symbols (id),
    doc        TEXT,
    doc_hash   BLOB,
    session    INTEGER REFERENCES symbols (id),
    agent      INTEGER REFERENCES symbols (id),
    at         INTEGER NOT NULL,
    prev_hash  BLOB NOT NULL
);
CREATE UNIQUE INDEX changes_by_device ON changes (device, device_seq);

-- The change log with its words, for people and for plain SQLite tools.
CREATE VIEW change_log AS
SELECT c.seq, d.text AS device, c.device_seq, p.text AS project, st.text AS stream,
       k.text AS kind, c.id, o.text AS op, c.doc, s.text AS session, a.text AS agent, c.at,
       c.doc_hash, c.prev_hash
FROM changes c
JOIN symbols d ON d.id = c.device
JOIN symbols st ON st.id = c.stream
JOIN symbols k ON k.id = c.kind
JOIN symbols o ON o.id = c.op
LEFT JOIN symbols p ON p.id = c.project
LEFT JOIN symbols s ON s.id = c.session
LEFT JOIN symbols a ON a.id = c.agent;

CREATE TABLE followers (
    name       TEXT PRIMARY KEY,
    position   INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE set_aside (
    follower TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    error    TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    next_try INTEGER NOT NULL,
    PRIMARY KEY (follower, seq)
) WITHOUT ROWID;

CREATE TABLE projects (
    key        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    identity   TEXT UNIQUE,
    root       TEXT,
    origin_url TEXT,
    created_at INTEGER NOT NULL
);
CREATE INDEX projects_by_root ON projects (root) WHERE root IS NOT NULL;

CREATE TABLE project_aliases (
    alias      TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id)
) WITHOUT ROWID;

CREATE TABLE sessions (
    key               INTEGER PRIMARY KEY,
    id                TEXT NOT NULL UNIQUE,
    project_id        TEXT NOT NULL REFERENCES projects (id),
    harness           TEXT,
    model             TEXT,
    started_at        INTEGER NOT NULL,
    ended_at          INTEGER,
    last_seen         INTEGER NOT NULL,
    summary           TEXT,
    harness_pid       INTEGER,
    harness_pid_start INTEGER
);
CREATE INDEX sessions_by_project ON sessions (project_id, last_seen);
CREATE INDEX sessions_by_process ON sessions (harness_pid) WHERE harness_pid IS NOT NULL;
