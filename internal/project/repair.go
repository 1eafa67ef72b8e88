package project

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/store"
)

const (
	selectWithoutUID = `SELECT 'project ' || r.id || ' has no uid' FROM projects r
WHERE r.uid IS NULL AND NOT EXISTS (SELECT 1 FROM project_aliases a WHERE a.alias = r.id) ORDER BY r.id`

	selectLastDocument = `SELECT c.doc FROM changes c WHERE c.stream = (SELECT id FROM symbols WHERE text = 'project/' || ?)
AND c.kind = (SELECT id FROM symbols WHERE text = 'project') AND c.doc IS NOT NULL ORDER BY c.seq DESC LIMIT 1`

	selectStanding = `SELECT ` + projectColumns + ` FROM projects r
WHERE NOT EXISTS (SELECT 1 FROM project_aliases a WHERE a.alias = r.id) ORDER BY r.created_at, r.key`
)

// Check reports what is wrong with the identity of projects; nothing for an intact store.
func Check(ctx context.Context, tx *store.Tx) ([]string, error) {
	if pending, err := NeedsRekey(ctx, tx); err != nil || pending {
		return nil, err
	}
	return tx.Texts(ctx, selectWithoutUID)
}

// Repair gives the projects of a salvaged store the keys, root and remote back that the
// change log names, and those that follow from their rows. Checkouts come back when they
// are seen again. It is idempotent.
func Repair(ctx context.Context, tx *store.Tx) error {
	if pending, err := NeedsRekey(ctx, tx); err != nil || pending {
		return err
	}
	var all []Project
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var q Project
		err := r.Scan(scanProject(&q)...)
		all = append(all, q)
		return err
	}, selectStanding)
	for _, q := range all {
		if err == nil {
			err = q.repair(ctx, tx)
		}
	}
	return err
}

func (q *Project) repair(ctx context.Context, tx *store.Tx) error {
	var text string
	var d document
	err := tx.Get(ctx, []any{&text}, selectLastDocument, q.ID)
	if err := ignoreNone(err); err != nil {
		return err
	}
	if err == nil && json.Unmarshal([]byte(text), &d) != nil || d.MergedInto != "" {
		d = document{}
	}
	if q.Root == "" && d.Root != "" {
		q.Root, q.OriginURL = d.Root, d.OriginURL
		if err := q.setPlace(ctx, tx); err != nil {
			return err
		}
	}
	e := Exported{Keys: d.Keys, Identity: q.Identity, Root: q.Root, OriginURL: q.OriginURL}
	var missing []string
	for _, key := range e.allKeys() {
		_, taken, err := owner(ctx, tx, key)
		if err != nil {
			return err
		}
		if !taken {
			missing = append(missing, key)
		}
	}
	return addKeys(ctx, tx, q.Key, missing)
}
