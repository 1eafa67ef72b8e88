package consistency

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/store"
)

// Invariants of the rows. Each query selects descriptions of violations.
func invariants() []string {
	return []string{
		`SELECT 'project ' || p.id || ' is at tick ' || p.tick || ', its ticks in the log are others'
FROM projects p LEFT JOIN (SELECT project_key, count(*) AS n, min(tick) AS low, max(tick) AS high FROM record_ticks GROUP BY project_key) t
ON t.project_key = p.key WHERE p.tick <> ifnull(t.n, 0) OR t.n > 0 AND (t.low <> 1 OR t.high <> p.tick)`,

		`SELECT 'tick ' || t.tick || ' of project ' || p.id || ' is not in its log'
FROM record_ticks t JOIN projects p ON p.key = t.project_key LEFT JOIN changes c ON c.seq = t.seq
LEFT JOIN symbols s ON s.id = c.stream
WHERE s.text IS NOT ifnull(p.records_stream, 'records/' || p.id) OR c.doc IS NOT NULL AND c.doc ->> '$.tick' IS NOT t.tick`,

		`SELECT 'record ' || r.number || ' of project ' || p.id || ' is above the last number given, ' || p.last_record
FROM records r JOIN projects p ON p.key = r.project_key WHERE r.number > p.last_record OR r.number < 1`,

		`SELECT 'session ' || s.id || ' holds record ' || a.number || ' of project ' || p.id || ', which it cannot'
FROM activations a JOIN sessions s ON s.key = a.session_key JOIN projects p ON p.key = a.project_key
LEFT JOIN record_sessions m ON m.project_key = a.project_key AND m.session_key = a.session_key
LEFT JOIN records r ON r.project_key = a.project_key AND r.number = a.number
WHERE m.closed IS NOT 0 OR r.version IS NULL OR a.base_version > r.version OR a.base_version < 1`,

		`SELECT 'session ' || s.id || ' is ahead of project ' || p.id
FROM record_sessions m JOIN sessions s ON s.key = m.session_key JOIN projects p ON p.key = m.project_key
WHERE m.last_sync_tick > p.tick OR m.save_tick > p.tick`,

		`SELECT 'the words of record ' || r.number || ' are not in the index' FROM records r WHERE r.key NOT IN (SELECT rowid FROM records_fts)`,
		`SELECT 'the index holds words of no record' FROM records_fts f WHERE f.rowid NOT IN (SELECT key FROM records)`,
	}
}

const (
	selectAllProjects = `SELECT ` + `p.key, p.id FROM projects p WHERE p.last_record > 0`
	selectAllRecords  = `SELECT ` + record.RecordColumns + ` FROM records r WHERE r.project_key = ? ORDER BY r.number`
)

// Check reads all records and reports inconsistencies in ticks, numbers, paths, words and
// activations, and rows that differ from the change log. Intact records have no findings.
// It changes nothing.
func Check(ctx context.Context, tx *store.Tx) (findings []string, err error) {
	for _, query := range invariants() {
		found, err := tx.Texts(ctx, query)
		if findings = append(findings, found...); err != nil {
			return findings, err
		}
	}
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var p project.Project
		if err := rows.Scan(&p.Key, &p.ID); err != nil {
			return err
		}
		s, err := record.ScopeOf(ctx, tx, p)
		if err != nil {
			return err
		}
		found, err := checkProject(ctx, s)
		findings = append(findings, found...)
		return err
	}, selectAllProjects)
	return findings, err
}

// checkProject compares a project's records with their newest versions in the log.
func checkProject(ctx context.Context, s *record.CallTx) (found []string, err error) {
	report := func(r *record.Stored, what string) {
		found = append(found, fmt.Sprintf("%s of project %s %s", r.ID, s.Project.ID, what))
	}
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		r, err := record.ScanRecord(rows)
		if err != nil {
			return err
		}
		newest, err := s.Newest(ctx, r.ID, s.Until)
		if err != nil {
			return err
		}
		switch {
		case newest.Entry == nil || newest.Version == 0: // blanked by a purge
		case !equal(&newest.Record, &r.Record):
			report(&r, "differs from the change log")
		}
		path, err := s.PathOf(ctx, r.ParentID, r.Number)
		if err == nil && !bytes.Equal(path, r.Path) {
			report(&r, "is not below its parent")
		}
		return err
	}, selectAllRecords, s.Project.Key)
	return found, err
}

// equal compares two versions. It compares metadata by meaning, because rows restored by
// an older cairn have the log's spelling.
func equal(a, b *record.Record) bool {
	plainA, plainB := *a, *b
	plainA.Metadata, plainB.Metadata = record.Canonical(a.Metadata), record.Canonical(b.Metadata)
	x, errX := record.ColumnsOf(&plainA)
	y, errY := record.ColumnsOf(&plainB)
	return errors.Join(errX, errY) == nil && fmt.Sprint(x) == fmt.Sprint(y) && a.ID == b.ID && record.Deref(a.ParentID) == record.Deref(b.ParentID) &&
		a.Created == b.Created
}
