package continuity

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/capture"
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// assistTime lets the help for a prompt finish on a busy machine: its content is
// measured here, not its speed.
const assistTime = 10 * time.Second

// replay is one store that fills in the order of time.
type replay struct {
	store    *store.Store
	journal  *observation.Service
	importer *capture.Importer
	filter   *redact.Filter
	clock    atomic.Int64 // Unix nanoseconds
	known    map[*repository]map[string]bool

	events []event // in the order of time
	stored int     // how many of them the store holds
}

// newReplay makes an empty store in dir. Whoever calls it closes it.
func newReplay(ctx context.Context, dir string, filter *redact.Filter, events []event) (*replay, error) {
	r := &replay{filter: filter, events: events, known: map[*repository]map[string]bool{}}
	clock := func() time.Time { return time.Unix(0, r.clock.Load()) }
	if len(events) > 0 {
		r.clock.Store(events[0].At.UnixNano())
	}
	var err error
	r.store, err = store.Open(ctx, store.Config{Path: filepath.Join(dir, "cairn.db"), Clock: clock})
	if err != nil {
		return nil, err
	}
	r.journal = observation.New(r.store, observation.Config{Filter: filter, DedupWindow: observation.DefaultDedupWindow, AssistTime: assistTime})
	r.importer = capture.NewImporter(r.journal, capture.ImportOptions{})
	return r, nil
}

// until stores the events before a moment, which it makes the present. Sessions
// that got events get their digests, as at the end of a turn.
func (r *replay) until(ctx context.Context, moment time.Time) error {
	for ; r.stored < len(r.events) && r.events[r.stored].At.Before(moment); r.stored++ {
		e := &r.events[r.stored]
		p, err := capture.NewPreparer(r.journal).Prepare(e.Event)
		if err != nil {
			return err
		}
		if err := r.importer.Add(ctx, p); err != nil {
			return err
		}
		r.note(e)
	}
	r.clock.Store(moment.UnixNano())
	_, err := r.importer.EndFile(ctx, capture.ImportedFile{}, false)
	return err
}

// note keeps the files that an event names, whatever became of the call.
func (r *replay) note(e *event) {
	for i := range e.Calls {
		if e.Calls[i].Action == observation.Search {
			continue
		}
		if file, inside := e.relative(e.Calls[i].Path); inside {
			if r.known[e.repo] == nil {
				r.known[e.repo] = map[string]bool{}
			}
			r.known[e.repo][file] = true
		}
	}
}

// question is what namers know when they are asked.
type question struct {
	*replay
	repo    *repository
	project project.Project // without a key while nothing of it is stored
	place   project.Location
	session string
	branch  string // checked out, "" if the transcript does not tell
	prompt  string // "" at the start
	event   *event // that the moment begins with
	told    answer // at the prompt: what was injected at the start
	shown   answer // what is injected now
}

// ask stores what happened before an event of a session and makes the question
// of that moment.
func (r *replay) ask(ctx context.Context, e *event) (*question, error) {
	if err := r.until(ctx, e.At); err != nil {
		return nil, err
	}
	q := &question{replay: r, event: e, repo: e.repo, session: e.Session, branch: e.Branch}
	var err error
	if q.place, err = project.Locate(e.Cwd, ""); err != nil {
		return nil, err
	}
	err = r.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		p, ok, err := project.Current(ctx, tx, q.place)
		if !ok {
			p = project.Project{ID: q.place.Slug}
		}
		q.project = p
		return err
	})
	return q, err
}

// file is the key of a stored path, "" for none and outside the repository.
func (q *question) file(path *string) string {
	if path == nil {
		return ""
	}
	if key := q.place.PathKey(*path); !strings.HasPrefix(key, "/") && key != "." {
		return key
	}
	return ""
}

func (r *replay) close() error { return r.store.Close() }
