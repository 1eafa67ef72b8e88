-- What commands and tools printed: a digest to read and hashes of the printed lines.

-- One row for each observation whose output is kept. A trigger deletes it with its
-- observation: with a foreign key, a salvage would restore a lost observation as a row
-- without text. kept_on is the day, counted from
-- 1970-01-01 UTC, on which the output was stored; size is the number of bytes printed.
-- A digest is in one of two columns: as a text, or deflated. checksum is a CRC-32 of the row.
CREATE TABLE output_rows (
    observation_id INTEGER PRIMARY KEY,
    kept_on        INTEGER NOT NULL,
    size           INTEGER NOT NULL,
    digest         TEXT,
    deflated       BLOB,
    checksum       INTEGER NOT NULL
);

-- Salted hashes of printed lines, four bytes each, as words of five bytes from 0x80.
CREATE VIRTUAL TABLE output_lines USING fts5 (
    hashes,
    content = '', contentless_delete = 1, detail = none,
    tokenize = 'ascii'
);

CREATE TRIGGER observation_forgotten AFTER DELETE ON observation_rows BEGIN
    DELETE FROM output_rows WHERE observation_id = old.id;
END;

-- The words of an output stand in the index of turns, too: its turn is indexed again.
CREATE TRIGGER output_forgotten AFTER DELETE ON output_rows BEGIN
    DELETE FROM output_lines WHERE rowid = old.observation_id;
    INSERT INTO stale_turns (session_key, since, first_row)
    SELECT session_key, timestamp, id FROM observation_rows WHERE id = old.observation_id
    ON CONFLICT (session_key) DO UPDATE SET since = min(since, excluded.since), first_row = min(first_row, excluded.first_row);
END;
CREATE TRIGGER output_rewritten AFTER UPDATE OF digest, deflated ON output_rows BEGIN
    INSERT INTO stale_turns (session_key, since, first_row)
    SELECT session_key, timestamp, id FROM observation_rows WHERE id = new.observation_id
    ON CONFLICT (session_key) DO UPDATE SET since = min(since, excluded.since), first_row = min(first_row, excluded.first_row);
END;
