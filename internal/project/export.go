package project

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"cairn/internal/store"
)

// Scope selects the projects of an export: one project with those merged into it, or,
// without an ID, all projects.
type Scope struct {
	ID  string
	Key int64
}

// ScopeOf returns the scope of one project.
func ScopeOf(q Project) Scope { return Scope{ID: q.ID, Key: q.Key} }

// Exported is a project in an export.
type Exported struct {
	Kind        string   `json:"kind,omitempty"`
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Identity    string   `json:"identity,omitempty"`
	Root        string   `json:"root,omitempty"`
	OriginURL   string   `json:"origin_url,omitempty"`
	CreatedAt   int64    `json:"created_at"`           // Unix seconds
	CreatedNS   int64    `json:"created_ns,omitempty"` // Unix nanoseconds, 0 if unknown
	ChangedNS   int64    `json:"changed_ns,omitempty"` // time of the last change, Unix nanoseconds
	Description string   `json:"description,omitempty"`
	Keys        []string `json:"keys,omitempty"`        // in the order in which they became known
	Aliases     []string `json:"aliases,omitempty"`     // in order; not the ids merged into it
	MergedInto  string   `json:"merged_into,omitempty"` // the id of the project that took it over
}

// ExportedSession is a session in an export. It omits the process, which belongs to one
// machine.
type ExportedSession struct {
	Kind      string          `json:"kind,omitempty"`
	ID        string          `json:"id"`
	Project   string          `json:"project"` // the session's own project
	Harness   string          `json:"harness,omitempty"`
	Model     string          `json:"model,omitempty"`
	StartedAt int64           `json:"started_at"` // Unix seconds, as are the next two
	EndedAt   int64           `json:"ended_at,omitempty"`
	LastSeen  int64           `json:"last_seen"`
	Digest    json.RawMessage `json:"digest,omitempty"`   // a JSON object
	Branches  []string        `json:"branches,omitempty"` // Git branches that it worked on, in order
}

const (
	selectExported = `SELECT r.id, r.name, ifnull(r.identity, ''), ifnull(r.root, ''), ifnull(r.origin_url, ''), r.created_at,
ifnull(r.created_ns, 0),
ifnull((SELECT c.at FROM changes c WHERE c.stream = (SELECT id FROM symbols WHERE text = 'project/' || r.id)
  AND c.doc IS NOT NULL ORDER BY c.seq DESC LIMIT 1), 0), ifnull(r.description, ''), ifnull(m.project_id, ''),
(SELECT json_group_array(alias) FROM (SELECT a.alias FROM project_aliases a WHERE a.project_id = r.id
  AND NOT EXISTS (SELECT 1 FROM projects i WHERE i.id = a.alias) ORDER BY a.alias)),
(SELECT json_group_array(text) FROM (SELECT k.text FROM project_keys k WHERE k.project_key = r.key ORDER BY k.added_at, k.text))
FROM projects r LEFT JOIN project_aliases m ON m.alias = r.id
WHERE ?1 = '' OR ifnull(m.project_id, r.id) = ?1
ORDER BY m.project_id IS NOT NULL, r.id`

	exportedSession = `SELECT s.key, s.id, s.project_id, ifnull(s.harness, ''), ifnull(s.model, ''), s.started_at,
ifnull(s.ended_at, 0), s.last_seen, ifnull(s.summary, '')
FROM sessions s `

	selectAllSessions = exportedSession + `ORDER BY s.started_at, s.id`

	selectSessionsOf = exportedSession + `
WHERE s.project_id = ?1 OR s.key IN (SELECT value FROM json_each(?2)) ORDER BY s.started_at, s.id`

	countExported = `SELECT count(*) FROM projects r LEFT JOIN project_aliases m ON m.alias = r.id
WHERE ?1 = '' OR ifnull(m.project_id, r.id) = ?1`

	countAllSessions = `SELECT count(*) FROM sessions`
	countSessionsOf  = `SELECT count(*) FROM sessions s WHERE s.project_id = ?1 OR s.key IN (SELECT value FROM json_each(?2))`
)

// EachExported calls put with every project of a scope: first unmerged projects, then
// merged ones, each ordered by id.
func EachExported(ctx context.Context, tx *store.Tx, of Scope, put func(Exported) error) error {
	return tx.Each(ctx, func(r *sql.Rows) error {
		var e Exported
		var aliases, keys string
		err := r.Scan(&e.ID, &e.Name, &e.Identity, &e.Root, &e.OriginURL, &e.CreatedAt,
			&e.CreatedNS, &e.ChangedNS, &e.Description, &e.MergedInto, &aliases, &keys)
		if err == nil {
			err = errors.Join(json.Unmarshal([]byte(aliases), &e.Aliases), json.Unmarshal([]byte(keys), &e.Keys))
		}
		if err != nil {
			return err
		}
		return put(e)
	}, selectExported, of.ID)
}

// EachExportedSession calls put with every session of a scope, earliest first: the
// scope's own sessions and those with the given keys, which have rows in it. A session of
// another project appears as one of the scope's, without its digest, which would reveal
// data of the other project.
func EachExportedSession(ctx context.Context, tx *store.Tx, of Scope, keys []int64, put func(key int64, e ExportedSession) error) error {
	query, args, err := of.sessions(selectAllSessions, selectSessionsOf, keys)
	if err != nil {
		return err
	}
	return tx.Each(ctx, func(r *sql.Rows) error {
		var key int64
		var e ExportedSession
		var digest string
		if err := r.Scan(&key, &e.ID, &e.Project, &e.Harness, &e.Model, &e.StartedAt, &e.EndedAt, &e.LastSeen, &digest); err != nil {
			return err
		}
		if of.ID != "" && e.Project != of.ID {
			e.Project, digest = of.ID, ""
		}
		if digest != "" {
			e.Digest = json.RawMessage(digest)
		}
		return put(key, e)
	}, query, args...)
}

// CountExported returns the numbers of projects and sessions of EachExported and
// EachExportedSession.
func CountExported(ctx context.Context, tx *store.Tx, of Scope, keys []int64) (projects, sessions int, err error) {
	if err := tx.Get(ctx, []any{&projects}, countExported, of.ID); err != nil {
		return 0, 0, err
	}
	query, args, err := of.sessions(countAllSessions, countSessionsOf, keys)
	if err == nil {
		err = tx.Get(ctx, []any{&sessions}, query, args...)
	}
	return projects, sessions, err
}

// sessions chooses a statement by scope.
func (of Scope) sessions(all, one string, keys []int64) (query string, args []any, err error) {
	if of.ID == "" {
		return all, nil, nil
	}
	if keys == nil {
		keys = []int64{}
	}
	list, err := json.Marshal(keys)
	return one, []any{of.ID, string(list)}, err
}
