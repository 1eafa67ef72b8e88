package histories

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/project"
	"cairn/internal/store"
)

// Exported is one change of a project's records in an export. Applying all of them in
// order recreates the records with their versions, ticks, sessions and history (see
// Documents).
type Exported struct {
	Kind    string          `json:"kind,omitempty"` // KindRecord or KindEvent
	Project string          `json:"project"`
	ID      string          `json:"id"`
	Op      string          `json:"op"`
	Session string          `json:"session,omitempty"`
	Agent   string          `json:"agent,omitempty"`
	At      int64           `json:"at"`  // Unix nanoseconds
	Doc     json.RawMessage `json:"doc"` // an Entry or an Event
}

const (
	selectStreams = `SELECT r.id, ifnull(r.records_stream, 'records/' || r.id) FROM projects r
WHERE CASE WHEN ?1 <> '' THEN r.id = ?1 ELSE NOT EXISTS (SELECT 1 FROM project_aliases m WHERE m.alias = r.id) END
ORDER BY r.id`

	exportedChange = `SELECT c.seq, k.text, c.id, o.text, ifnull(s.text, ''), ifnull(a.text, ''), c.at, c.doc
FROM changes c
JOIN symbols k ON k.id = c.kind
JOIN symbols o ON o.id = c.op
LEFT JOIN symbols s ON s.id = c.session
LEFT JOIN symbols a ON a.id = c.agent
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?) AND c.doc IS NOT NULL `

	selectExportedChanges = exportedChange + `ORDER BY c.seq`

	countStream = `SELECT k.text, count(*) FROM changes c JOIN symbols k ON k.id = c.kind
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?) AND c.doc IS NOT NULL GROUP BY k.text`
)

// Export calls put with the changes of the records of a scope, project by project, each
// in the order of its log.
func Export(ctx context.Context, tx *store.Tx, of project.Scope, put func(kind string, v any) error) error {
	return eachStream(ctx, tx, of, func(id, stream string) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			_, e, err := scanExported(r)
			if err != nil {
				return err
			}
			kind := e.Kind
			e.Kind, e.Project = "", id
			return put(kind, e)
		}, selectExportedChanges, stream)
	})
}

// CountExported returns the number of changes of Export, by kind.
func CountExported(ctx context.Context, tx *store.Tx, of project.Scope) (map[string]int, error) {
	out := map[string]int{}
	err := eachStream(ctx, tx, of, func(_, stream string) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var kind string
			var n int
			err := r.Scan(&kind, &n)
			out[kind] += n
			return err
		}, countStream, stream)
	})
	return out, err
}

func eachStream(ctx context.Context, tx *store.Tx, of project.Scope, do func(id, stream string) error) error {
	return tx.Each(ctx, func(r *sql.Rows) error {
		var id, stream string
		if err := r.Scan(&id, &stream); err != nil {
			return err
		}
		return do(id, stream)
	}, selectStreams, of.ID)
}

func scanExported(r *sql.Rows) (seq int64, e Exported, err error) {
	var doc string
	err = r.Scan(&seq, &e.Kind, &e.ID, &e.Op, &e.Session, &e.Agent, &e.At, &doc)
	e.Doc = json.RawMessage(doc)
	return seq, e, err
}
