package record

import (
	"context"
	"database/sql"
	"slices"

	"cairn/internal/project"
	"cairn/internal/store"
)

// Touched is a record that a session had to do with.
type Touched struct {
	ID      string
	Changed bool // created, updated or moved to another state; else only activated
}

const selectTouched = `SELECT k.text = ?3, CASE k.text WHEN ?3 THEN c.id ELSE c.doc ->> '$.record_id' END
FROM projects p
CROSS JOIN symbols st ON st.text = ifnull(p.records_stream, 'records/' || p.id)
CROSS JOIN changes c ON c.stream = st.id AND c.doc IS NOT NULL
JOIN symbols k ON k.id = c.kind
WHERE p.id = ?1 AND c.session = (SELECT id FROM symbols WHERE text = ?2)
  AND (k.text = ?3 OR k.text = ?4 AND c.doc ->> '$.type' = ?5)
ORDER BY c.seq`

// Touched lists the records of a project that a session changed, in the order of
// their first change, and then those that it only activated, closed ones and
// earlier activations included. It reads the project's log as a whole; an unknown
// project or session has none (contract records §4.2).
func (b *Book) Touched(ctx context.Context, p project.Project, session string) ([]Touched, error) {
	var changed, active []Touched
	if b.store == nil {
		return nil, nil
	}
	err := b.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var t Touched
			err := r.Scan(&t.Changed, &t.ID)
			list := &active
			if t.Changed {
				list = &changed
			}
			if !slices.Contains(*list, t) {
				*list = append(*list, t)
			}
			return err
		}, selectTouched, p.ID, session, KindRecord, KindEvent, RecordActivation)
	})
	for _, t := range active {
		if !slices.Contains(changed, Touched{t.ID, true}) {
			changed = append(changed, t)
		}
	}
	return changed, err
}
