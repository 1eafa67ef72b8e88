package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"cairn/bench/baresqlite"
	"cairn/internal/store"
)

// size measures the disk space per observation, by table and index.
func (b *bench) size(ctx context.Context) error {
	live, err := b.filledStore(ctx, b.small)
	if err != nil {
		return err
	}
	if err := b.sizeOf(ctx, "generated live sessions", live); err != nil {
		return err
	}
	corpus, err := b.realTranscripts()
	if err != nil || corpus == "" {
		return err
	}
	data := filepath.Join(b.dir, "size-corpus")
	if _, err := importFolder(ctx, data, corpus); err != nil {
		return err
	}
	return b.sizeOf(ctx, "real transcripts, imported", filepath.Join(data, "cairn.db"))
}

const (
	pageTotals = `SELECT (SELECT page_size FROM pragma_page_size) * page_count,
    (SELECT page_size FROM pragma_page_size) * (SELECT freelist_count FROM pragma_freelist_count)
FROM pragma_page_count`

	// FTS5's internal tables are grouped in one row, and so are SQLite's.
	sizesByObject = `SELECT CASE WHEN name LIKE 'observations_fts%' THEN 'observations_fts (all)' ELSE name END AS object,
    sum(pgsize), sum(payload), sum(unused)
FROM dbstat GROUP BY object ORDER BY 2 DESC`

	// Space of the searches for turns, printed lines and edited lines. The remainder is the
	// space of a row before these existed.
	sizeOfFinding = `SELECT ifnull(sum(pgsize), 0), ifnull(sum(payload), 0), ifnull(sum(unused), 0) FROM dbstat
WHERE name LIKE 'turn%' OR name LIKE 'output%' OR name IN ('observation_lines', 'stale_turns')`
)

func (b *bench) sizeOf(ctx context.Context, what, path string) (err error) {
	rows, err := countRows(ctx, path)
	if err != nil {
		return err
	}
	if rows == 0 {
		return errors.New("the store is empty")
	}
	db, err := sql.Open(baresqlite.Driver, "file:"+filepath.ToSlash(path)+"?mode=ro")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var total, free int
	if _, err := db.ExecContext(ctx, "SELECT 1 FROM dbstat LIMIT 0"); err != nil {
		return fmt.Errorf("sizes need an SQLite with dbstat, which make bench builds: %w", err)
	}
	if err := db.QueryRowContext(ctx, pageTotals).Scan(&total, &free); err != nil {
		return err
	}
	perRow := func(bytes int) float64 { return float64(bytes) / float64(rows) }
	t := newTable("size", fmt.Sprintf("disk per observation, %s: %s rows (%s)", what, grouped(rows), store.Driver),
		"bytes/row", "% of file", "content bytes/row", "unused bytes/row")
	t.add("whole file", perRow(total), 100.0, nil, nil).target("≤ 1,100 bytes", perRow(total) <= 1100)
	var size, payload, unused int
	if err := db.QueryRowContext(ctx, sizeOfFinding).Scan(&size, &payload, &unused); err != nil {
		return err
	}
	t.add("without outputs, lines and turns", perRow(total-size), 100*float64(total-size)/float64(total), nil, nil).target("≤ 700 bytes", perRow(total-size) <= 700)
	t.add("outputs, lines and turns", perRow(size), 100*float64(size)/float64(total), perRow(payload), perRow(unused))
	list, err := db.QueryContext(ctx, sizesByObject)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	for list.Next() {
		var name string
		var size, payload, unused int
		if err := list.Scan(&name, &size, &payload, &unused); err != nil {
			return err
		}
		if share := 100 * float64(size) / float64(total); share >= 0.5 {
			t.add(name, perRow(size), share, perRow(payload), perRow(unused))
		}
	}
	t.add("free pages", perRow(free), 100*float64(free)/float64(total), nil, nil)
	return errors.Join(list.Err(), b.publish(t))
}
