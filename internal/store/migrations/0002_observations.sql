-- Observations: what happened, captured by hooks.

-- What users typed and agents answered. Its words stand in the row beside it; read
-- prompts with them through the view `prompts`.
CREATE TABLE prompt_rows (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    session_key       INTEGER NOT NULL REFERENCES sessions (key),
    timestamp         INTEGER NOT NULL,
    source            TEXT NOT NULL CHECK (source IN ('user', 'agent')),
    harness_prompt_id TEXT,
    agent_id          TEXT,
    source_uuid       TEXT
);
CREATE INDEX prompt_rows_by_session ON prompt_rows (session_key, timestamp);
CREATE INDEX prompt_rows_by_line ON prompt_rows (source_uuid) WHERE source_uuid IS NOT NULL;

-- The rows themselves, compact: session and project by key. Read them through
-- the view `observations`.
CREATE TABLE observation_rows (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    timestamp         INTEGER NOT NULL,
    session_key       INTEGER NOT NULL REFERENCES sessions (key),
    project_key       INTEGER NOT NULL REFERENCES projects (key),
    prompt_id         INTEGER REFERENCES prompt_rows (id) ON DELETE SET NULL,
    obs_type          TEXT NOT NULL,
    source_event      TEXT NOT NULL,
    tool_name         TEXT,
    content           TEXT NOT NULL,
    file_path         TEXT,
    path_key          TEXT,
    metadata          TEXT,
    is_pinned         INTEGER NOT NULL DEFAULT 0,
    tool_use_id       TEXT,
    part              INTEGER NOT NULL DEFAULT 0,
    agent_id          TEXT,
    harness_prompt_id TEXT
);
CREATE UNIQUE INDEX observation_rows_by_call ON observation_rows (tool_use_id, session_key, part)
    WHERE tool_use_id IS NOT NULL;
CREATE INDEX observation_rows_by_session ON observation_rows (session_key, timestamp);
CREATE INDEX observation_rows_by_type ON observation_rows (project_key, obs_type, timestamp);
CREATE INDEX observation_rows_by_path ON observation_rows (project_key, path_key, timestamp)
    WHERE path_key IS NOT NULL;
CREATE INDEX observation_rows_by_prompt ON observation_rows (prompt_id) WHERE prompt_id IS NOT NULL;
CREATE UNIQUE INDEX observation_rows_of_prompt ON observation_rows (prompt_id)
    WHERE obs_type IN ('user_prompt', 'agent_message');
CREATE INDEX observation_rows_pinned ON observation_rows (timestamp) WHERE is_pinned = 1;

CREATE VIEW observations AS
SELECT o.id, o.timestamp, s.id AS session_id, p.id AS project_id, o.prompt_id, o.obs_type,
       o.source_event, o.tool_name, o.content, o.file_path, o.path_key, o.metadata, o.is_pinned,
       o.tool_use_id, o.part, o.agent_id, o.harness_prompt_id
FROM observation_rows o
JOIN sessions s ON s.key = o.session_key
JOIN projects p ON p.key = o.project_key;

CREATE VIEW prompts AS
SELECT p.id, s.id AS session_id, p.timestamp, p.source, o.content,
       p.harness_prompt_id, p.agent_id, p.source_uuid
FROM prompt_rows p
JOIN sessions s ON s.key = p.session_key
JOIN observation_rows o ON o.prompt_id = p.id AND o.obs_type IN ('user_prompt', 'agent_message');

-- Searchable words of a row (contract observations §8.1): parts holds its text
-- with identifiers split, wholes the identifiers that were torn apart.
CREATE VIRTUAL TABLE observations_fts USING fts5 (
    parts, wholes,
    content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);

-- How far each transcript has been imported.
CREATE TABLE imports (
    path   TEXT PRIMARY KEY,
    size   INTEGER NOT NULL,
    mtime  INTEGER NOT NULL,
    offset INTEGER NOT NULL
) WITHOUT ROWID;
