package archived

import (
	"context"
	"database/sql"
	"path"
	"strings"

	"cairn/internal/record"
	"cairn/internal/store"
)

const (
	selectWithRecords    = `SELECT p.id FROM projects p WHERE p.tick > 0 ORDER BY p.id`
	selectArchivedStream = `SELECT ifnull(p.records_stream, 'records/' || p.id) FROM projects p WHERE p.id = ? AND p.tick > 0`
)

// WithRecords returns the ids of the projects that have records, in order.
func WithRecords(ctx context.Context, tx *store.Tx) (ids []string, err error) {
	return tx.Texts(ctx, selectWithRecords)
}

// StreamOf returns the stream of a project's records in the change log, or "" if it has
// none.
func StreamOf(ctx context.Context, tx *store.Tx, projectID string) (stream string, err error) {
	err = tx.Each(ctx, func(r *sql.Rows) error { return r.Scan(&stream) }, selectArchivedStream, projectID)
	return stream, err
}

// SourceOf reports whether a path in a project's archive belongs to records. id is the
// record's id for the page of a record, "" for other files.
func SourceOf(name string) (id string, ours bool) {
	rest, ours := strings.CutPrefix(name, pagesFolder)
	if !ours || strings.HasPrefix(name, historyFolder) {
		return "", ours
	}
	id, _, _ = strings.Cut(path.Base(rest), "-")
	if _, ok := record.NumberOf(id); !ok {
		return "", true
	}
	return id, true
}
