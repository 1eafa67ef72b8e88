package observation

import (
	"context"
	"database/sql"
	"time"

	"cairn/internal/store"
)

// TouchedFile is a file and when an agent last wrote or edited it.
type TouchedFile struct {
	Path string // relative to its worktree, with slashes; absolute outside of one
	At   int64  // Unix seconds
}

// maxTouched is how many files Touched lists.
const maxTouched = 1000

const selectTouchedSince = `SELECT o.path_key, max(o.timestamp) FROM observation_rows o
WHERE o.project_key = (SELECT key FROM projects WHERE id = ?) AND o.obs_type IN ('file_edit', 'file_write')
AND o.timestamp >= ? AND o.path_key IS NOT NULL
AND o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.interrupted' IS NULL GROUP BY o.path_key ORDER BY max(o.timestamp) DESC LIMIT +?`

// Touched lists the files of a project that agents wrote or edited since a time, the
// last one first, at most 1,000; nil for none. Failed and interrupted calls do not count.
func (j *Service) Touched(ctx context.Context, projectID string, since time.Time) (files []TouchedFile, err error) {
	err = j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var f TouchedFile
			err := r.Scan(&f.Path, &f.At)
			files = append(files, f)
			return err
		}, selectTouchedSince, projectID, since.Unix(), maxTouched)
	})
	return files, err
}
