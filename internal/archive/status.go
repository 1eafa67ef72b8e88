package archive

import (
	"context"
	"path/filepath"

	"cairn/internal/store"
)

// Status is how far a project's archive is.
type Status struct {
	Project   string  `json:"project"`
	Folder    string  `json:"folder"`
	Written   int64   `json:"written_seq"`     // up to here this process has written files; Committed for others
	Committed int64   `json:"committed_seq"`   // up to here main holds everything
	Head      string  `json:"head"`            // the last commit that was acknowledged, "" for none
	Lag       int64   `json:"lag"`             // changes after Committed
	Unwritten int64   `json:"unwritten"`       // changes after Written
	Since     int64   `json:"since,omitempty"` // when the first of those after Committed was made, in Unix nanoseconds
	Aside     []Aside `json:"aside"`
}

// Aside is a change that cannot be archived.
type Aside struct {
	Seq      int64  `json:"seq"`
	Error    string `json:"error"`
	Attempts int    `json:"attempts"`
}

// Status tells it of all projects that have anything to archive, by id, or of one;
// none for an unknown one. It opens no archive. Errors: those of store.Read.
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
	if err == nil {
		s.Unwritten, err = a.changesAfter(ctx, tx, project, written)
	}
	if err == nil && s.Lag > 0 {
		s.Since, err = a.since(ctx, tx, project, c.committed)
	}
	if err == nil {
		s.Aside, err = asides(ctx, tx, project)
	}
	return s, err
}

// Synced is what Sync did.
type Synced struct {
	Projects []Status          `json:"projects"` // that were behind, as they are now
	Failed   map[string]string `json:"failed"`   // by project: why it could not be archived
}

// Sync archives everything that was written until now, of all projects or of one,
// beside a process that follows or without. It tells each project before its turn.
// A project that fails does not hold up the others. Repeating it is safe. Errors:
// those of the store and of ctx; what concerns an archive is told in Failed.
func (a *Archiver) Sync(ctx context.Context, project string, progress func(project string)) (Synced, error) {
	out := Synced{Projects: []Status{}, Failed: map[string]string{}}
	behind, err := a.behind(ctx)
	for _, id := range behind {
		if project != "" && id != project {
			continue
		}
		progress(id)
		l := a.line(id)
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

// Verified is what git says of one archive.
type Verified struct {
	Project string `json:"project"`
	OK      bool   `json:"ok"`
	Says    string `json:"says"` // what is wrong, "" if nothing is
}

// Verify has git check every object of the archives, of all projects or of one (git
// fsck --strict). It changes nothing. An archive that is not there is not OK, unless
// nothing was archived yet. Errors: those of the store and of ctx.
func (a *Archiver) Verify(ctx context.Context, project string, progress func(project string)) ([]Verified, error) {
	out := []Verified{}
	statuses, err := a.Status(ctx, project)
	for _, s := range statuses {
		if s.Head == "" {
			continue
		}
		progress(s.Project)
		v := Verified{Project: s.Project, OK: true}
		if _, bad := (git{program: "git", dir: a.folder(s.Project)}).run(ctx, "fsck", "--strict", "--full", "--no-dangling", "--no-progress"); bad != nil {
			v.OK, v.Says = false, bad.Error()
		}
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		out = append(out, v)
	}
	return out, err
}
