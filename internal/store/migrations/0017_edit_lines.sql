-- The lines that an edit or a write put into a file, so that a line is found again
-- after its commit was rewritten. Hashes only: no text can be read from them.

CREATE TABLE observation_lines (
    observation_id INTEGER PRIMARY KEY REFERENCES observation_rows (id) ON DELETE CASCADE,
    lines          BLOB NOT NULL -- a byte of flags, then 4 bytes per line (package observation, lines.go)
);
