-- Records: design reasoning that outlives a chat. Times are Unix nanoseconds.

ALTER TABLE projects ADD COLUMN description TEXT;
-- The exact time of creation; NULL where created_at is all that is known.
ALTER TABLE projects ADD COLUMN created_ns INTEGER;
-- The project's logical clock, and the highest record number ever given.
ALTER TABLE projects ADD COLUMN tick INTEGER NOT NULL DEFAULT 0;
ALTER TABLE projects ADD COLUMN last_record INTEGER NOT NULL DEFAULT 0;
-- The stream of the change log that its records are in, where a merge has brought
-- them from another project; NULL means records/ and its own id.
ALTER TABLE projects ADD COLUMN records_stream TEXT;

-- Records stand under their number in the project. A record never changes its
-- parent, so its path, the numbers from the root down to it with four bytes each,
-- stays; ordered by path a project is listed parents first, siblings by age.
CREATE TABLE records (
    key         INTEGER PRIMARY KEY,
    project_key INTEGER NOT NULL REFERENCES projects (key),
    number      INTEGER NOT NULL,
    parent      INTEGER,
    path        BLOB NOT NULL,
    version     INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('OPEN', 'LATER', 'RESOLVED', 'DISCARDED')),
    type        TEXT NOT NULL,
    title       TEXT NOT NULL,
    summary     TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    creator     INTEGER NOT NULL REFERENCES sessions (key),
    resolved_by INTEGER,
    related     TEXT,
    metadata    TEXT,
    cited       TEXT,
    body        TEXT NOT NULL
);
CREATE UNIQUE INDEX records_by_number ON records (project_key, number);
CREATE INDEX records_by_parent ON records (project_key, parent, number, state);
CREATE INDEX records_by_path ON records (project_key, path);
CREATE INDEX records_by_state ON records (project_key, state, path);
CREATE INDEX records_citing ON records (project_key) WHERE cited IS NOT NULL;

-- Searchable words, as in observations_fts: parts and wholes of each text.
CREATE VIRTUAL TABLE records_fts USING fts5 (
    title, summary, body, title_wholes, summary_wholes, body_wholes,
    content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);

-- What a session is to the records of a project.
CREATE TABLE record_sessions (
    project_key    INTEGER NOT NULL REFERENCES projects (key),
    session_key    INTEGER NOT NULL REFERENCES sessions (key),
    opened_at      INTEGER NOT NULL,
    last_activity  INTEGER NOT NULL,
    last_sync_tick INTEGER NOT NULL,
    save_tick      INTEGER NOT NULL,
    last_save      INTEGER,
    closed         INTEGER NOT NULL DEFAULT 0,
    parent         INTEGER REFERENCES sessions (key),
    PRIMARY KEY (project_key, session_key)
) WITHOUT ROWID;
CREATE INDEX record_sessions_by_session ON record_sessions (session_key);
CREATE INDEX record_sessions_open ON record_sessions (project_key, last_activity) WHERE closed = 0;

-- Which records a session has loaded, in which version, which other sessions held
-- them when it was last told so (a JSON array of ids), and whether it was told to
-- go on all the same.
CREATE TABLE activations (
    project_key  INTEGER NOT NULL REFERENCES projects (key),
    number       INTEGER NOT NULL,
    session_key  INTEGER NOT NULL REFERENCES sessions (key),
    base_version INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    holders      TEXT,
    settled      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (project_key, number, session_key)
) WITHOUT ROWID;
CREATE INDEX activations_by_session ON activations (project_key, session_key);

-- Where in the change log each tick of a project is.
CREATE TABLE record_ticks (
    project_key INTEGER NOT NULL REFERENCES projects (key),
    tick        INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    PRIMARY KEY (project_key, tick)
) WITHOUT ROWID;

-- The changes of a stream that have documents: those of records; observations
-- have none.
CREATE INDEX changes_of_stream ON changes (stream, seq) WHERE doc IS NOT NULL;
