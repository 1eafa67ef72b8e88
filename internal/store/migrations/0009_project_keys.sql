-- The identity of projects. A project has keys, with the Unix nanosecond of each: the normalised URLs of its remote, the
-- root commit of a history without a remote, or the path of a folder. A checkout is one
-- git directory of it. uid is a hash of the strongest key, NULL until it is computed.
-- projects.identity decides nothing any more: it is the git directory at projects.root.
ALTER TABLE projects ADD COLUMN uid TEXT;

CREATE TABLE project_keys (
    text        TEXT PRIMARY KEY,
    project_key INTEGER NOT NULL REFERENCES projects (key),
    added_at    INTEGER NOT NULL
) WITHOUT ROWID;

-- remote is the key of the remote as it was last seen, birth a hash of the first line of
-- the reflog, undecided a key of the remote that belongs to another project. pinned marks
-- a checkout that a person put into its project.
CREATE TABLE project_checkouts (
    identity    TEXT PRIMARY KEY,
    project_key INTEGER NOT NULL REFERENCES projects (key),
    root        TEXT,
    remote      TEXT NOT NULL DEFAULT '',
    birth       TEXT NOT NULL DEFAULT '',
    pinned      INTEGER NOT NULL DEFAULT 0,
    undecided   TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;

INSERT INTO project_checkouts (identity, project_key, root)
SELECT p.identity, r.key, p.root FROM projects p LEFT JOIN project_aliases a ON a.alias = p.id
JOIN projects r ON r.id = ifnull(a.project_id, p.id) WHERE p.identity IS NOT NULL;

INSERT OR IGNORE INTO project_keys (text, project_key, added_at)
SELECT 'path:' || p.root, r.key, r.created_at * 1000000000 FROM projects p LEFT JOIN project_aliases a ON a.alias = p.id
JOIN projects r ON r.id = ifnull(a.project_id, p.id) WHERE p.identity IS NULL AND p.root IS NOT NULL ORDER BY p.key;

-- Keys of remotes are normalised in Go: the first process that is not a hook does that.
INSERT INTO store_meta (name, value) SELECT 'projects_rekey', 'pending' WHERE EXISTS (SELECT 1 FROM projects);
