package project

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/store"
)

const (
	selectMadeUp  = `SELECT key FROM projects WHERE key < 1 ORDER BY key`
	deleteProject = `DELETE FROM projects WHERE key = ?`

	selectWithoutUID = `SELECT 'project ' || r.id || ' has no uid' FROM projects r
WHERE r.uid IS NULL AND NOT EXISTS (SELECT 1 FROM project_aliases a WHERE a.alias = r.id) ORDER BY r.id`

	selectLastDocument = `SELECT c.doc FROM changes c WHERE c.stream = (SELECT id FROM symbols WHERE text = 'project/' || ?)
AND c.kind = (SELECT id FROM symbols WHERE text = 'project') AND c.doc IS NOT NULL ORDER BY c.seq DESC LIMIT 1`

	// A project that a salvage recovered only from the index.
	nameAgain = `UPDATE projects SET name = d.doc ->> '$.name', created_at = d.doc ->> '$.created_at', created_ns = d.doc ->> '$.created_ns',
description = d.doc ->> '$.description' FROM (SELECT r.key AS key, (SELECT c.doc FROM changes c
  WHERE c.stream = (SELECT id FROM symbols WHERE text = 'project/' || r.id) AND c.kind = (SELECT id FROM symbols WHERE text = 'project')
  AND c.doc IS NOT NULL ORDER BY c.seq DESC LIMIT 1) AS doc FROM projects r WHERE r.created_at = 0) d
WHERE d.key = projects.key AND json_valid(d.doc) AND d.doc ->> '$.name' IS NOT NULL AND d.doc ->> '$.created_at' > 0`

	selectStanding = `SELECT ` + projectColumns + ` FROM projects r
WHERE NOT EXISTS (SELECT 1 FROM project_aliases a WHERE a.alias = r.id) ORDER BY r.created_at, r.key`
)

// Check returns the inconsistencies in the identity of projects, none for an intact
// store.
func Check(ctx context.Context, tx *store.Tx) ([]string, error) {
	if pending, err := NeedsRekey(ctx, tx); err != nil || pending {
		return nil, err
	}
	return tx.Texts(ctx, selectWithoutUID)
}

// Repair restores names, times, keys, root and remote of a salvaged store's projects from
// the change log, and keys from their rows. Checkouts are stored again when they are next
// seen. Placeholder projects that the salvage created are deleted if no part refers to
// them. It is idempotent.
func Repair(ctx context.Context, tx *store.Tx) error {
	if err := dropMadeUp(ctx, tx); err != nil {
		return err
	}
	if pending, err := NeedsRekey(ctx, tx); err != nil || pending {
		return err
	}
	if _, err := tx.Exec(ctx, nameAgain); err != nil {
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

// dropMadeUp deletes the placeholder projects of a salvage that no row refers to.
func dropMadeUp(ctx context.Context, tx *store.Tx) error {
	var madeUp []int64
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var key int64
		err := r.Scan(&key)
		madeUp = append(madeUp, key)
		return err
	}, selectMadeUp)
	if err == nil {
		madeUp, err = tx.Unreferred(ctx, "projects", "key", madeUp)
	}
	for _, key := range madeUp {
		if err == nil {
			_, err = tx.Exec(ctx, deleteProject, key)
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

const (
	dropBadSummary = `UPDATE sessions SET summary = NULL WHERE summary IS NOT NULL AND NOT json_valid(summary)`
	dateSession    = `UPDATE sessions SET started_at = CASE WHEN started_at = 0 THEN ifnull(nullif(?2, 0), last_seen) ELSE started_at END,
last_seen = CASE WHEN last_seen = 0 THEN ?3 ELSE last_seen END WHERE key = ?1`
)

// DropBadSummaries deletes the digests of sessions that are not valid JSON. It is
// idempotent.
func DropBadSummaries(ctx context.Context, tx *store.Tx) error {
	_, err := tx.Exec(ctx, dropBadSummary)
	return err
}

// DateSession sets the times of a placeholder session of a salvage to those of its first
// and last event, in Unix seconds, 0 for none. It keeps times that the session has.
func DateSession(ctx context.Context, tx *store.Tx, key, first, last int64) error {
	_, err := tx.Exec(ctx, dateSession, key, first, last)
	return err
}
