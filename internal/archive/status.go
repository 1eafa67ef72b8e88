package archive

import (
	"context"
	"path/filepath"

	"cairn/internal/archive/repository"
	"cairn/internal/store"
)

// Status is the progress of a project's archive.
type Status struct {
	Project   string         `json:"project"`
	Folder    string         `json:"folder"`
	Written   int64          `json:"written_seq"`     // files are written up to here by this process; Committed for other processes
	Committed int64          `json:"committed_seq"`   // main contains everything up to here
	Head      string         `json:"head"`            // the last acknowledged commit, "" for none
	Lag       int64          `json:"lag"`             // changes after Committed
	Unwritten int64          `json:"unwritten"`       // changes after Written
	Since     int64          `json:"since,omitempty"` // time of the first change after Committed, in Unix nanoseconds
	Aside     []FailedChange `json:"aside"`
}

// FailedChange is a change that cannot be archived.
type FailedChange struct {
	Seq      int64  `json:"seq"`
	Error    string `json:"error"`
	Attempts int    `json:"attempts"`
}

// Status returns the status of all projects with data to archive, by id, or of one
// project. For an unknown project it returns nothing. It opens no archive. Errors: those
// of store.Read.
func (a *Archiver) Status(ctx context.Context, project string) (out []Status, err error) {
	err = a.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = []Status{}
		ids, err := a.projects(ctx, tx, project)
		for _, id := range ids {
			var s Status
			if s, err = a.statusOf(ctx, tx, id); err != nil {
				return err
			}
			out = append(out, s)
		}
		return err
	})
	return out, err
}

func (a *Archiver) statusOf(ctx context.Context, tx *store.Tx, project string) (Status, error) {
	c, _, err := cursorOf(ctx, tx, project)
	written := max(c.committed, a.written(project))
	s := Status{Project: project, Folder: filepath.Base(a.folder(project)), Written: written, Committed: c.committed, Head: c.head}
	if err == nil {
		s.Lag, err = a.changesAfter(ctx, tx, project, c.committed)
	}
	if s.Unwritten = s.Lag; err == nil && written != c.committed { // counting costs the most
		s.Unwritten, err = a.changesAfter(ctx, tx, project, written)
	}
	if err == nil && s.Lag > 0 {
		s.Since, err = a.since(ctx, tx, project, c.committed)
	}
	if err == nil {
		s.Aside, err = failedChanges(ctx, tx, project)
	}
	return s, err
}

// SyncResult is the result of Sync.
type SyncResult struct {
	Projects []Status          `json:"projects"` // projects that were behind, with their present status
	Failed   map[string]string `json:"failed"`   // by project: why it could not be archived
}

// Sync archives everything written until now, of all projects or of one, whether or not
// another process follows. It calls progress before each project. A failed project does
// not stop the others. It is idempotent. Errors: those of the store and of ctx; errors of
// an archive are in Failed.
func (a *Archiver) Sync(ctx context.Context, project string, progress func(project string)) (SyncResult, error) {
	out := SyncResult{Projects: []Status{}, Failed: map[string]string{}}
	behind, err := a.behind(ctx)
	for _, id := range behind {
		if project != "" && id != project {
			continue
		}
		progress(id)
		l := a.worker(id)
		if _, err := l.catchUp(ctx, nil); ctx.Err() != nil {
			return out, ctx.Err()
		} else if err != nil {
			out.Failed[id] = err.Error()
		} else {
			l.rest(ctx)
		}
		s, err := a.Status(ctx, id)
		if err != nil {
			return out, err
		}
		out.Projects = append(out.Projects, s...)
	}
	return out, err
}

// VerifyResult is the result of verifying one archive.
type VerifyResult struct {
	Project string `json:"project"`
	OK      bool   `json:"ok"`
	Says    string `json:"says"` // git's report, "" if the archive is intact
}

// Verify has git check every object of the archives, of all projects or of one (git fsck
// --strict). It changes nothing. A missing archive is not OK, unless nothing was archived
// yet. Errors: those of the store and of ctx.
func (a *Archiver) Verify(ctx context.Context, project string, progress func(project string)) ([]VerifyResult, error) {
	out := []VerifyResult{}
	statuses, err := a.Status(ctx, project)
	for _, s := range statuses {
		if s.Head == "" {
			continue
		}
		progress(s.Project)
		v := VerifyResult{Project: s.Project, OK: true}
		r, err := repository.At(a.folder(s.Project))
		if err != nil {
			return out, err
		}
		if bad := r.Fsck(ctx); bad != nil {
			v.OK, v.Says = false, bad.Error()
		}
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		out = append(out, v)
	}
	return out, err
}
