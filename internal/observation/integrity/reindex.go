package integrity

import (
	"context"
	"database/sql"
	"math"

	"cairn/internal/observation"
	"cairn/internal/store"
)

const (
	deleteAllWords = `DELETE FROM observations_fts`

	selectIndexed = `SELECT id, obs_type, content, ifnull(file_path, ''), ifnull(metadata, '')
FROM observation_rows WHERE id > ? ORDER BY id LIMIT +?`
)

// reindexBatch is how many rows one transaction indexes.
const reindexBatch = 5000

// Reindex rebuilds the searchable words of all rows and of their turns from the rows
// (observations §8.1). Until it returns, searches may miss rows. It is safe to retry. progress,
// if set, is called after each batch with the number of rows done.
func Reindex(ctx context.Context, svc *observation.Service, progress func(rows int)) error {
	err := svc.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for _, query := range []string{deleteAllWords, observation.DeleteAllTurnWords, observation.DeleteAllTurns, observation.MarkAllStale} {
			if _, err := tx.Exec(ctx, query); err != nil {
				return err
			}
		}
		return nil
	})
	for last, done := int64(0), 0; err == nil; {
		n := 0
		err = svc.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) (err error) {
			last, n, err = indexAfter(ctx, tx, last)
			return err
		})
		if n == 0 {
			break
		}
		if done += n; progress != nil {
			progress(done)
		}
	}
	if err == nil {
		_, err = svc.IndexTurns(ctx, math.MaxInt)
	}
	return err
}

// indexAfter indexes the next batch of rows after an id. It returns the last id and the number of
// rows.
func indexAfter(ctx context.Context, tx *store.Tx, after int64) (last int64, n int, err error) {
	last = after
	err = tx.Each(ctx, func(r *sql.Rows) error {
		row, err := scanIndexed(r, &last)
		if err != nil {
			return err
		}
		n++
		return observation.IndexText(ctx, tx, last, row.text())
	}, selectIndexed, after, reindexBatch)
	return last, n, err
}

// indexedRow contains the sources of a row's searchable text, as they were before the row was
// stored.
type indexedRow struct {
	content, path string
	meta          observation.Metadata
}

func (r *indexedRow) text() string { return observation.SearchableText(r.content, r.path, r.meta) }

// scanIndexed reads a row of selectIndexed.
func scanIndexed(r *sql.Rows, id *int64) (row indexedRow, err error) {
	var s observation.StoredRow
	var path, meta string
	if err := r.Scan(id, &s.ObsType, &s.Content, &path, &meta); err != nil {
		return row, err
	}
	s.Path = sql.NullString{String: path, Valid: path != ""}
	row.content, row.meta = s.Content, observation.StoredMetadata(meta)
	if path != "" {
		row.path = s.GivenPath()
	}
	return row, nil
}
