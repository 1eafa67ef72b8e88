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
	Written   int64   `json:"written_seq"`   // up to here files were written when the last commit was made
	Committed int64   `json:"committed_seq"` // up to here main holds everything
	Head      string  `json:"head"`          // the last commit that was acknowledged, "" for none
	Lag       int64   `json:"lag"`           // changes after Committed
	Unwritten int64   `json:"unwritten"`     // changes after Written
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
func (a *Archivist) Status(ctx context.Context, project string) (out []Status, err error) {
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

func (a *Archivist) statusOf(ctx context.Context, tx *store.Tx, project string) (Status, error) {
	c, written, _, err := cursorOf(ctx, tx, project)
	s := Status{Project: project, Folder: filepath.Base(a.folder(project)), Written: written, Committed: c.committed, Head: c.head}
	if err == nil {
		s.Lag, err = a.changesAfter(ctx, tx, project, c.committed)
	}
	if err == nil {
		s.Unwritten, err = a.changesAfter(ctx, tx, project, written)
	}
	if err == nil {
		s.Aside, err = asides(ctx, tx, c.key)
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
func (a *Archivist) Sync(ctx context.Context, project string, progress func(project string)) (Synced, error) {
	out := Synced{Projects: []Status{}, Failed: map[string]string{}}
	behind, err := a.behind(ctx)
	for _, id := range behind {
		if project != "" && id != project {
			continue
		}
		progress(id)
		l := a.line(id)
		if err := l.catchUp(ctx); ctx.Err() != nil {
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
