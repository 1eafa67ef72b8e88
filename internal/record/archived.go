package record

import (
	"context"
	"database/sql"
	"path"
	"strings"

	"cairn/internal/store"
)

// StreamPrefix is how the streams of records begin.
const StreamPrefix = streamPrefix

const (
	selectWithRecords    = `SELECT p.id FROM projects p WHERE p.tick > 0 ORDER BY p.id`
	selectArchivedStream = `SELECT ifnull(p.records_stream, 'records/' || p.id) FROM projects p WHERE p.id = ? AND p.tick > 0`
)

// WithRecords are the ids of the projects that have records, in order.
func WithRecords(ctx context.Context, tx *store.Tx) (ids []string, err error) {
	return tx.Texts(ctx, selectWithRecords)
}

// StreamOf is the stream of the change log in which a project's records are, "" if
// it has none.
func StreamOf(ctx context.Context, tx *store.Tx, projectID string) (stream string, err error) {
	err = tx.Each(ctx, func(r *sql.Rows) error { return r.Scan(&stream) }, selectArchivedStream, projectID)
	return stream, err
}

// SourceOf tells of a path in a project's archive whether files of records lie
// there, and of a record's page the record's id, "" for other files.
func SourceOf(name string) (id string, ours bool) {
	rest, ours := strings.CutPrefix(name, pagesFolder)
	if !ours || strings.HasPrefix(name, historyFolder) {
		return "", ours
	}
	id, _, _ = strings.Cut(path.Base(rest), "-")
	if _, ok := numberOf(id); !ok {
		return "", true
	}
	return id, true
}
