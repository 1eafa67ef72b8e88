-- Mail: who does what, and may I touch this file. Times are Unix nanoseconds, cut
-- to microseconds. The numbers that clients see are ids, which AUTOINCREMENT gives
-- once; what other devices know an entity by is its uid or its name. Every hook
-- parses this schema, so that words are checked in Go and not by CHECK.

CREATE TABLE mail_projects (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    project_key       INTEGER NOT NULL UNIQUE REFERENCES projects (key),
    uid               TEXT NOT NULL UNIQUE,
    slug              TEXT NOT NULL UNIQUE,
    human_key         TEXT NOT NULL,
    identity_mode     TEXT NOT NULL,
    normalized_remote TEXT,
    folds_case        INTEGER NOT NULL DEFAULT 0,
    created_ts        INTEGER NOT NULL
);
CREATE INDEX mail_projects_by_path ON mail_projects (human_key);

-- received, unread and ack_due count its messages; triggers on mail_recipients keep them.
CREATE TABLE mail_agents (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id         INTEGER NOT NULL REFERENCES mail_projects (id),
    name               TEXT NOT NULL COLLATE NOCASE,
    program            TEXT NOT NULL,
    model              TEXT NOT NULL,
    task_description   TEXT NOT NULL,
    inception_ts       INTEGER NOT NULL,
    last_active_ts     INTEGER NOT NULL,
    attachments_policy TEXT NOT NULL,
    contact_policy     TEXT NOT NULL,
    token_sha256       TEXT,
    branch             TEXT,
    worktree           TEXT,
    home               TEXT,
    retired_ts         INTEGER,
    received           INTEGER NOT NULL DEFAULT 0,
    unread             INTEGER NOT NULL DEFAULT 0,
    ack_due            INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX mail_agents_by_name ON mail_agents (project_id, name);

-- seq is the position in the change log of the message's own change, by which its
-- commit is found; ordinal counts the messages of a project and month.
CREATE TABLE mail_messages (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    uid          TEXT NOT NULL UNIQUE,
    project_id   INTEGER NOT NULL REFERENCES mail_projects (id),
    sender_id    INTEGER NOT NULL REFERENCES mail_agents (id),
    thread_id    TEXT,
    reply_to     INTEGER,
    subject      TEXT NOT NULL,
    body_md      TEXT NOT NULL,
    importance   TEXT NOT NULL,
    ack_required INTEGER NOT NULL,
    topic        TEXT,
    created_ts   INTEGER NOT NULL,
    attachments  TEXT,
    seq          INTEGER NOT NULL,
    ordinal      INTEGER NOT NULL,
    archive_path TEXT NOT NULL
);
CREATE INDEX mail_messages_by_time ON mail_messages (created_ts);
CREATE INDEX mail_messages_of_project ON mail_messages (project_id, created_ts);
CREATE UNIQUE INDEX mail_messages_by_ordinal ON mail_messages (project_id, substr(archive_path, 10, 7), ordinal);
CREATE INDEX mail_messages_of_thread ON mail_messages (project_id, thread_id, created_ts);
CREATE INDEX mail_messages_by_importance ON mail_messages (project_id, importance, created_ts);
CREATE INDEX mail_messages_by_sender ON mail_messages (sender_id, created_ts);
CREATE INDEX mail_messages_to_ack ON mail_messages (sender_id, created_ts) WHERE ack_required = 1;
CREATE INDEX mail_messages_by_topic ON mail_messages (project_id, topic, created_ts) WHERE topic IS NOT NULL;

-- ack_required, importance and created_ts repeat the message's, for the indexes;
-- position is the place among the recipients as the sender named them.
CREATE TABLE mail_recipients (
    message_id   INTEGER NOT NULL REFERENCES mail_messages (id) ON DELETE CASCADE,
    agent_id     INTEGER NOT NULL REFERENCES mail_agents (id),
    kind         TEXT NOT NULL,
    position     INTEGER NOT NULL,
    importance   TEXT NOT NULL,
    ack_required INTEGER NOT NULL,
    created_ts   INTEGER NOT NULL,
    shown_ts     INTEGER,
    shown_via    TEXT,
    read_ts      INTEGER,
    ack_ts       INTEGER,
    PRIMARY KEY (message_id, agent_id)
) WITHOUT ROWID;
CREATE INDEX mail_recipients_by_agent ON mail_recipients (agent_id, created_ts, message_id);
CREATE INDEX mail_recipients_urgent ON mail_recipients (agent_id, created_ts, message_id) WHERE importance IN ('high', 'urgent');
CREATE INDEX mail_recipients_unread ON mail_recipients (agent_id, created_ts, message_id) WHERE read_ts IS NULL;
CREATE INDEX mail_recipients_unshown ON mail_recipients (agent_id, created_ts, message_id) WHERE shown_ts IS NULL AND read_ts IS NULL;
CREATE INDEX mail_recipients_ack ON mail_recipients (agent_id, created_ts, message_id) WHERE ack_required = 1 AND ack_ts IS NULL;

CREATE TRIGGER mail_recipient_added AFTER INSERT ON mail_recipients BEGIN
    UPDATE mail_agents SET received = received + 1, unread = unread + (new.read_ts IS NULL),
        ack_due = ack_due + (new.ack_required AND new.ack_ts IS NULL)
    WHERE id = new.agent_id;
END;
CREATE TRIGGER mail_recipient_changed AFTER UPDATE OF read_ts, ack_ts ON mail_recipients BEGIN
    UPDATE mail_agents SET unread = unread + (new.read_ts IS NULL) - (old.read_ts IS NULL),
        ack_due = ack_due + (new.ack_required AND new.ack_ts IS NULL) - (old.ack_required AND old.ack_ts IS NULL)
    WHERE id = new.agent_id;
END;
CREATE TRIGGER mail_recipient_removed AFTER DELETE ON mail_recipients BEGIN
    UPDATE mail_agents SET received = received - 1, unread = unread - (old.read_ts IS NULL),
        ack_due = ack_due - (old.ack_required AND old.ack_ts IS NULL)
    WHERE id = old.agent_id;
END;

CREATE VIRTUAL TABLE mail_fts USING fts5 (
    subject, body,
    content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2', prefix = '2 3'
);
CREATE TRIGGER mail_message_added AFTER INSERT ON mail_messages BEGIN
    INSERT INTO mail_fts (rowid, subject, body) VALUES (new.id, new.subject, new.body_md);
END;
CREATE TRIGGER mail_message_changed AFTER UPDATE OF subject, body_md ON mail_messages BEGIN
    DELETE FROM mail_fts WHERE rowid = old.id;
    INSERT INTO mail_fts (rowid, subject, body) VALUES (new.id, new.subject, new.body_md);
END;
CREATE TRIGGER mail_message_removed AFTER DELETE ON mail_messages BEGIN
    DELETE FROM mail_fts WHERE rowid = old.id;
END;

CREATE TABLE mail_threads (
    project_id  INTEGER NOT NULL REFERENCES mail_projects (id),
    thread_id   TEXT NOT NULL,
    ordinal     INTEGER NOT NULL,
    digest_path TEXT NOT NULL,
    first_ts    INTEGER NOT NULL,
    last_ts     INTEGER NOT NULL,
    messages    INTEGER NOT NULL,
    PRIMARY KEY (project_id, thread_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX mail_threads_by_digest ON mail_threads (project_id, digest_path COLLATE NOCASE);
CREATE INDEX mail_threads_by_ordinal ON mail_threads (project_id, ordinal);

-- Which agents a session acts as.
CREATE TABLE mail_sessions (
    session_key INTEGER NOT NULL REFERENCES sessions (key),
    agent_id    INTEGER NOT NULL REFERENCES mail_agents (id),
    source      TEXT NOT NULL,
    bound_ts    INTEGER NOT NULL,
    ended_ts    INTEGER,
    PRIMARY KEY (session_key, agent_id)
) WITHOUT ROWID;
CREATE INDEX mail_sessions_by_agent ON mail_sessions (agent_id);

CREATE TABLE mail_contacts (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    a_agent_id INTEGER NOT NULL REFERENCES mail_agents (id),
    b_agent_id INTEGER NOT NULL REFERENCES mail_agents (id),
    status     TEXT NOT NULL,
    reason     TEXT NOT NULL,
    created_ts INTEGER NOT NULL,
    updated_ts INTEGER NOT NULL,
    expires_ts INTEGER,
    archive_path TEXT NOT NULL
);
CREATE UNIQUE INDEX mail_contacts_from ON mail_contacts (a_agent_id, b_agent_id);
CREATE INDEX mail_contacts_to ON mail_contacts (b_agent_id, a_agent_id);

CREATE TABLE mail_reservations (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    uid          TEXT NOT NULL UNIQUE,
    project_id   INTEGER NOT NULL REFERENCES mail_projects (id),
    agent_id     INTEGER NOT NULL REFERENCES mail_agents (id),
    session_key  INTEGER REFERENCES sessions (key),
    path_pattern TEXT NOT NULL,
    lit_prefix   TEXT NOT NULL,
    exclusive    INTEGER NOT NULL,
    advisory     INTEGER NOT NULL,
    source       TEXT NOT NULL,
    reason       TEXT NOT NULL,
    created_ts   INTEGER NOT NULL,
    expires_ts   INTEGER NOT NULL,
    renewals     INTEGER NOT NULL DEFAULT 0,
    released_ts  INTEGER,
    release_kind TEXT,
    ordinal      INTEGER NOT NULL,
    archive_path TEXT NOT NULL
);
CREATE INDEX mail_reservations_of_project ON mail_reservations (project_id, ordinal);
CREATE INDEX mail_reservations_by_pattern ON mail_reservations (project_id, path_pattern, created_ts);
CREATE INDEX mail_reservations_held ON mail_reservations (project_id, lit_prefix, expires_ts) WHERE released_ts IS NULL;
CREATE INDEX mail_reservations_of_agent ON mail_reservations (project_id, agent_id) WHERE released_ts IS NULL;
CREATE INDEX mail_reservations_forced ON mail_reservations (agent_id, released_ts) WHERE release_kind = 'force';
CREATE INDEX mail_reservations_ending ON mail_reservations (expires_ts) WHERE released_ts IS NULL;

CREATE TABLE mail_blobs (
    sha1       TEXT PRIMARY KEY,
    media_type TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    data       BLOB NOT NULL
) WITHOUT ROWID;

-- What a call with an idempotency key answered.
CREATE TABLE mail_idempotency (
    project_id INTEGER NOT NULL REFERENCES mail_projects (id),
    agent_id   INTEGER NOT NULL REFERENCES mail_agents (id),
    tool       TEXT NOT NULL,
    key        TEXT NOT NULL,
    arguments  BLOB NOT NULL,
    result     TEXT NOT NULL,
    ts         INTEGER NOT NULL,
    PRIMARY KEY (project_id, agent_id, tool, key)
) WITHOUT ROWID;
CREATE INDEX mail_idempotency_by_time ON mail_idempotency (ts);

-- Which notices an agent has been shown; each at most once.
CREATE TABLE mail_notices (
    subject_uid TEXT NOT NULL,
    agent_id    INTEGER NOT NULL REFERENCES mail_agents (id),
    notice      TEXT NOT NULL,
    session_key INTEGER NOT NULL REFERENCES sessions (key),
    event       TEXT NOT NULL,
    ts          INTEGER NOT NULL,
    PRIMARY KEY (subject_uid, agent_id, notice)
) WITHOUT ROWID;
CREATE INDEX mail_notices_by_session ON mail_notices (session_key, ts);

-- How far the archive of a project is, and what its commits hold.
CREATE TABLE archive_cursor (
    project_key   INTEGER PRIMARY KEY REFERENCES projects (key),
    written_seq   INTEGER NOT NULL,
    committed_seq INTEGER NOT NULL,
    head          TEXT
);
CREATE TABLE archive_aside (
    seq         INTEGER PRIMARY KEY,
    project_key INTEGER NOT NULL REFERENCES projects (key),
    error       TEXT NOT NULL,
    attempts    INTEGER NOT NULL,
    next_try    INTEGER NOT NULL
);
CREATE INDEX archive_aside_due ON archive_aside (project_key, next_try);
CREATE TABLE archive_commits (
    project_key INTEGER NOT NULL REFERENCES projects (key),
    last_seq    INTEGER NOT NULL,
    first_seq   INTEGER NOT NULL,
    hexsha      TEXT NOT NULL,
    summary     TEXT NOT NULL,
    authored_ts INTEGER NOT NULL,
    PRIMARY KEY (project_key, last_seq)
) WITHOUT ROWID;
