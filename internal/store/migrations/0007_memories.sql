-- Memories: what should be kept. Times are Unix nanoseconds. Every hook parses this
-- schema: words are checked in Go, and there is an index only where a query needs it.

-- hub_url is NULL while the user has not joined a hub; hub_user is who it is there.
CREATE TABLE memory_users (
    user_id    TEXT PRIMARY KEY,
    hub_url    TEXT,
    hub_user   TEXT,
    created_ns INTEGER NOT NULL
) WITHOUT ROWID;

-- deleting_seq, here and below, is the change that deletes the row and that the hub
-- has not confirmed yet: until then the row is hidden.
CREATE TABLE memory_vaults (
    vault_id     TEXT PRIMARY KEY,
    user_id      TEXT NOT NULL,
    title        TEXT NOT NULL,
    description  TEXT NOT NULL,
    creation_ns  INTEGER NOT NULL,
    deleting_seq INTEGER,
    UNIQUE (user_id, title)
) WITHOUT ROWID;

-- project_key is set for a project's own memory.
CREATE TABLE memories (
    memory_id    TEXT PRIMARY KEY,
    user_id      TEXT NOT NULL,
    vault_id     TEXT NOT NULL REFERENCES memory_vaults (vault_id),
    memory_type  TEXT NOT NULL,
    title        TEXT NOT NULL,
    description  TEXT NOT NULL,
    creation_ns  INTEGER NOT NULL,
    project_key  INTEGER REFERENCES projects (key),
    deleting_seq INTEGER,
    UNIQUE (vault_id, title)
) WITHOUT ROWID;

-- The number of a row is given once. seq is its change in the log. A row with
-- synced = 0 is inflight and has neither entry_id nor canonical_ns. hub_key follows
-- from the memory and the idempotency key, so that its index finds both.
CREATE TABLE memory_entries (
    key                INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id            TEXT NOT NULL,
    vault_id           TEXT NOT NULL,
    memory_id          TEXT NOT NULL,
    entry_id           TEXT UNIQUE,
    creation_ns        INTEGER NOT NULL,
    canonical_ns       INTEGER,
    captured_ns        INTEGER NOT NULL,
    raw_entry          TEXT NOT NULL,
    summary            TEXT NOT NULL,
    tags               TEXT NOT NULL,
    metadata           TEXT,
    session_id         TEXT,
    idempotency_key    TEXT,
    body_hash          BLOB,
    hub_key            TEXT UNIQUE,
    hub_seq            INTEGER,
    trace_id           TEXT,
    synced             INTEGER NOT NULL,
    synced_ns          INTEGER,
    seq                INTEGER NOT NULL,
    correction_ns      INTEGER,
    corrected_entry_id TEXT,
    correction_reason  TEXT,
    deleting_seq       INTEGER
);
CREATE INDEX memory_entries_pending ON memory_entries (user_id, memory_id, creation_ns) WHERE synced = 0;
CREATE INDEX memory_entries_by_time ON memory_entries (memory_id, canonical_ns);

CREATE TABLE memory_contexts (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id         TEXT NOT NULL,
    memory_id       TEXT NOT NULL,
    session_id      TEXT NOT NULL,
    updated_ns      INTEGER NOT NULL,
    markdown        TEXT NOT NULL,
    context_id      TEXT NOT NULL UNIQUE,
    synced          INTEGER NOT NULL,
    idempotency_key TEXT,
    body_hash       BLOB,
    hub_key         TEXT UNIQUE,
    hub_seq         INTEGER,
    trace_id        TEXT,
    change_seq      INTEGER NOT NULL
);
CREATE INDEX memory_contexts_by_time ON memory_contexts (memory_id, updated_ns, seq);

-- id is what must not come back: an entry's, a hub key, or the memory's own.
CREATE TABLE memory_tombstones (
    memory_id  TEXT NOT NULL,
    id         TEXT NOT NULL,
    deleted_ns INTEGER NOT NULL,
    PRIMARY KEY (memory_id, id)
) WITHOUT ROWID;

-- How far each stream is: its newest own change, the newest that was ever put into a
-- request, the newest that was settled. last_ns and context_ns are the newest times
-- given to its entries and contexts, last_canonical_ns the newest of those committed.
CREATE TABLE memory_streams (
    stream            TEXT PRIMARY KEY,
    user_id           TEXT NOT NULL,
    lane              INTEGER NOT NULL,
    head_seq          INTEGER NOT NULL,
    sent_seq          INTEGER NOT NULL DEFAULT 0,
    acked_seq         INTEGER NOT NULL DEFAULT 0,
    attempts          INTEGER NOT NULL DEFAULT 0,
    next_attempt_ns   INTEGER NOT NULL DEFAULT 0,
    state             TEXT NOT NULL DEFAULT 'ready',
    last_error        TEXT,
    remote_id         TEXT,
    pull_cursor       INTEGER NOT NULL DEFAULT 0,
    subscribed        INTEGER NOT NULL DEFAULT 0,
    purged_before_ns  INTEGER NOT NULL DEFAULT 0,
    last_ns           INTEGER NOT NULL DEFAULT 0,
    last_canonical_ns INTEGER NOT NULL DEFAULT 0,
    context_ns        INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX memory_streams_ready ON memory_streams (user_id, next_attempt_ns) WHERE head_seq > acked_seq;

CREATE TABLE memory_lanes (
    lane     INTEGER PRIMARY KEY,
    holder   TEXT NOT NULL,
    epoch    INTEGER NOT NULL,
    until_ns INTEGER NOT NULL
);

CREATE TABLE memory_failures (
    seq      INTEGER PRIMARY KEY,
    stream   TEXT NOT NULL,
    local_id TEXT,
    status   INTEGER NOT NULL,
    code     TEXT NOT NULL,
    message  TEXT NOT NULL,
    at_ns    INTEGER NOT NULL
);

-- What a call with an idempotency key answered; the oldest have the lowest numbers.
CREATE TABLE memory_idempotency (
    id         INTEGER PRIMARY KEY,
    user_id    TEXT NOT NULL,
    method     TEXT NOT NULL,
    path       TEXT NOT NULL,
    key        TEXT NOT NULL,
    body_hash  BLOB NOT NULL,
    status     INTEGER NOT NULL,
    body       TEXT NOT NULL,
    expires_ns INTEGER NOT NULL,
    UNIQUE (user_id, method, path, key)
);
