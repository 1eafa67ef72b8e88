-- Turns: what searches rank. A turn is a prompt of the user with the rows that follow
-- it in its session, by time, until the next prompt; what stands before the first
-- prompt is a turn, too.

CREATE TABLE turns (
    id          INTEGER PRIMARY KEY, -- of its first row
    session_key INTEGER NOT NULL REFERENCES sessions (key),
    at          INTEGER NOT NULL,    -- when that row was recorded, Unix seconds
    length      INTEGER NOT NULL     -- in words
);
CREATE INDEX turns_by_session ON turns (session_key, at, id);
CREATE INDEX turns_by_time ON turns (at);

-- The words of a turn, each once: see internal/observation, turnWords.
CREATE VIRTUAL TABLE turn_words USING fts5 (
    words,
    content = '', contentless_delete = 1, detail = none,
    tokenize = 'ascii'
);

-- Sessions whose turns from a time on are not in the index as they are: rows came or
-- went. first_row is the lowest number of these rows.
CREATE TABLE stale_turns (
    session_key INTEGER PRIMARY KEY REFERENCES sessions (key),
    since       INTEGER NOT NULL,
    first_row   INTEGER NOT NULL
);
INSERT INTO stale_turns (session_key, since, first_row)
SELECT key, 0, 0 FROM sessions WHERE key IN (SELECT session_key FROM observation_rows);
