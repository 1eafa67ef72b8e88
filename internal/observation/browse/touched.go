package browse

import (
	"context"
	"database/sql"
	"time"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// TouchedFile is a file and the time of its last write or edit by an agent.
type TouchedFile struct {
	Path string // relative to its worktree, with slashes; absolute if outside a worktree
	At   int64  // Unix seconds
}

// maxTouched is the maximum number of results of Touched and FileEdits.
const maxTouched = 1000

const selectTouchedSince = `SELECT o.path_key, max(o.timestamp) FROM observation_rows o
WHERE o.project_key = (SELECT key FROM projects WHERE id = ?) AND o.obs_type IN ('file_edit', 'file_write')
AND o.timestamp >= ? AND o.path_key IS NOT NULL
AND o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.interrupted' IS NULL GROUP BY o.path_key ORDER BY max(o.timestamp) DESC LIMIT +?`

// Touched lists the files of a project that agents wrote or edited since a time, latest first.
// It returns at most 1,000 files, nil if there are none. Failed and interrupted calls do not
// count.
func Touched(ctx context.Context, svc *observation.Service, projectID string, since time.Time) (files []TouchedFile, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var f TouchedFile
			err := r.Scan(&f.Path, &f.At)
			files = append(files, f)
			return err
		}, selectTouchedSince, projectID, since.Unix(), maxTouched)
	})
	return files, err
}

// FileEditsArgs are the arguments of FileEdits.
type FileEditsArgs struct {
	Project string // an id or alias; "" for all projects
	Since   int64  // Unix seconds, inclusive
	Until   int64  // Unix seconds, exclusive; 0 for now
	Limit   int    // maximum number of newest edits, clamped to 1–1,000
}

// FileEdit is a write or edit of a file by an agent.
type FileEdit struct {
	Path      string `json:"path"` // as in TouchedFile
	Project   string `json:"project"`
	At        int64  `json:"at"` // Unix seconds
	SessionID string `json:"session_id"`
	Branch    string `json:"branch,omitempty"` // branch of the session
}

const (
	selectPlacesOfEdits = `SELECT timestamp, id FROM observation_rows WHERE project_key = ?1 AND obs_type = ?2 AND timestamp >= ?6` + timelineEnd

	selectEdit = `SELECT o.path_key, p.id, o.timestamp, s.id, ` + sessionBranch + `
FROM observation_rows o JOIN sessions s ON s.key = o.session_key JOIN projects p ON p.key = o.project_key
WHERE o.id = ? AND o.path_key IS NOT NULL AND o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.interrupted' IS NULL`
)

// FileEdits lists edits of files by agents, newest first; the list is never nil. Failed and
// interrupted calls do not count. An unknown project is NotFound.
func FileEdits(ctx context.Context, svc *observation.Service, a FileEditsArgs) (list []FileEdit, err error) {
	list = []FileEdit{}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		id, err := observation.ProjectID(ctx, tx, a.Project)
		if err != nil {
			return err
		}
		keys, err := tx.Keys(ctx, selectTimelineProjects, id)
		if err != nil {
			return err
		}
		m := merging{ctx: ctx, tx: tx, args: RowsArgs{Limit: min(max(a.Limit, 1), maxTouched)}}
		for _, key := range keys {
			for _, kind := range []string{observation.TypeEdit, observation.TypeWrite} {
				if err := m.add(selectPlacesOfEdits, key, kind, a.Until, 0, m.args.Limit, a.Since); err != nil {
					return err
				}
			}
		}
		for _, p := range m.places {
			err := tx.Each(ctx, func(r *sql.Rows) error {
				var e FileEdit
				err := r.Scan(&e.Path, &e.Project, &e.At, &e.SessionID, &e.Branch)
				list = append(list, e)
				return err
			}, selectEdit, p.ID)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}
