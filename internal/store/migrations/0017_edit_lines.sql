-- The lines that an edit or a write put into a file, so that a line is found again
-- after its commit was rewritten. Hashes only: no text can be read from them.

-- A trigger deletes them with their observation: with a foreign key, a salvage would
-- restore a lost observation as a row without text.
CREATE TABLE observation_lines (
    observation_id INTEGER PRIMARY KEY,
    lines          BLOB NOT NULL -- a byte of flags, then 4 bytes per line (package observation, lines.go)
);
CREATE TRIGGER observation_lines_forgotten AFTER DELETE ON observation_rows BEGIN
    DELETE FROM observation_lines WHERE observation_id = old.id;
END;
