-- Searching in memories. Every hook parses this schema, so there is one full-text
-- table for entries and contexts of all memories: each of its words begins with the
-- memory's id, which keeps memories apart and lets a query read its own memory only.

-- The groups of a memory: a session, or a day where entries have none. next is the
-- number of the group's next entry; the row named '' counts those of the memory.
CREATE TABLE memory_groups (
    key       INTEGER PRIMARY KEY,
    memory_id TEXT NOT NULL REFERENCES memories (memory_id) ON DELETE CASCADE,
    name      TEXT NOT NULL,
    next      INTEGER NOT NULL,
    UNIQUE (memory_id, name)
);

-- place is where a committed entry stands: the key of its group and its number there.
-- NULL means that it is not in the index.
ALTER TABLE memory_entries ADD COLUMN place INTEGER;
CREATE UNIQUE INDEX memory_entries_by_place ON memory_entries (place) WHERE place IS NOT NULL;

-- Its rows are numbered as the entries' places and, below zero, as the contexts' seq.
CREATE VIRTUAL TABLE memory_words USING fts5 (
    words,
    content = '', contentless_delete = 1, detail = none,
    tokenize = 'unicode61'
);

-- Whoever takes a row away, its words go in the same transaction: deletes, purges,
-- pulls and what else there will be.
CREATE TRIGGER memory_entry_unindexed AFTER DELETE ON memory_entries WHEN old.place IS NOT NULL BEGIN
    DELETE FROM memory_words WHERE rowid = old.place;
END;
CREATE TRIGGER memory_context_unindexed AFTER DELETE ON memory_contexts BEGIN
    DELETE FROM memory_words WHERE rowid = -old.seq;
END;

-- What an embedder made of an entry: numbers of 32 bits, the lowest byte first.
CREATE TABLE memory_vectors (
    key    INTEGER PRIMARY KEY REFERENCES memory_entries (key) ON DELETE CASCADE,
    model  TEXT NOT NULL,
    vector BLOB NOT NULL
);
