-- Which Git branches a session worked on, as far as its prompts and turns tell.
CREATE TABLE session_branches (
    branch      TEXT NOT NULL,
    session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    PRIMARY KEY (branch, session_key)
) WITHOUT ROWID;
CREATE INDEX session_branches_by_session ON session_branches (session_key);
