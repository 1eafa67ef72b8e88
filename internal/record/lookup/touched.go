package lookup

import (
	"context"
	"database/sql"
	"math"

	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/store"
)

// Touched is a record that a session changed or activated.
type Touched struct {
	ID      string
	Changed bool // created, updated or moved to another state; else only activated
}

// selectTouched reads the session's own events, its active records, and the versions of
// these records that it stored. That is complete, because a session loads every record
// that it changes, and its end lists the active ones.
const selectTouched = `WITH
stream (id) AS (SELECT s.id FROM projects p JOIN symbols s ON s.text = ifnull(p.records_stream, 'records/' || p.id) WHERE p.id = ?1),
kind (version, event) AS (SELECT (SELECT id FROM symbols WHERE text = '` + record.KindRecord + `'), (SELECT id FROM symbols WHERE text = '` + record.KindEvent + `')),
events (seq, doc) AS MATERIALIZED (
    SELECT c.seq, c.doc FROM changes c INDEXED BY changes_with_doc
    WHERE c.kind = (SELECT event FROM kind) AND c.id = ?2 AND c.doc IS NOT NULL AND c.stream = (SELECT id FROM stream)),
loaded (id, seq) AS (
    SELECT doc ->> '$.record_id', seq FROM events WHERE doc ->> '$.type' = '` + record.RecordActivation + `'
    UNION ALL SELECT r.value, e.seq FROM events e, json_each(e.doc, '$.records') r
        WHERE e.doc ->> '$.type' IN ('` + record.SessionSaved + `', '` + record.SessionClosed + `')
    UNION ALL SELECT printf('R%03d', a.number), ?3 FROM activations a
        WHERE a.project_key = (SELECT key FROM projects WHERE id = ?1) AND a.session_key = (SELECT key FROM sessions WHERE id = ?2)),
touched (id, loaded, changed) AS (
    SELECT l.id, min(l.seq), (
        SELECT min(c.seq) FROM changes c INDEXED BY changes_with_doc
        WHERE c.kind = (SELECT version FROM kind) AND c.id = l.id AND c.doc IS NOT NULL AND c.stream = (SELECT id FROM stream)
          AND c.session = (SELECT id FROM symbols WHERE text = ?2))
    FROM loaded l GROUP BY l.id)
SELECT id, changed IS NOT NULL FROM touched ORDER BY changed IS NULL, ifnull(changed, loaded)`

// Touched returns the records of a project that a session changed, in the order of their
// first change. Then come those that it only activated, including closed ones and earlier
// activations. Its cost depends on the session, not on the size of the project. An
// unknown project or session has none (contract records §4.2).
func (b *Lookup) Touched(ctx context.Context, p project.Project, session string) (list []Touched, err error) {
	if b.Store == nil {
		return nil, nil
	}
	err = b.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var t Touched
			err := r.Scan(&t.ID, &t.Changed)
			list = append(list, t)
			return err
		}, selectTouched, p.ID, session, int64(math.MaxInt64))
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
