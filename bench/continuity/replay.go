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

// assistTime lets the assistance for a prompt finish on a busy machine: this package measures
// its content, not its speed.
const assistTime = 10 * time.Second

// replay is a store that is filled in the order of time.
type replay struct {
	store    *store.Store
	journal  *observation.Service
	importer *capture.Importer
	filter   *redact.Filter
	clock    atomic.Int64 // Unix nanoseconds
	known    map[*repository]map[string]bool

	events []event // ordered by time
	stored int     // number of events in the store
}

// newReplay creates an empty store in dir. The caller must close it.
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

// until stores the events before a moment and sets the clock to it. Sessions that received
// events get their digests, as at the end of a turn.
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

// note stores the files that an event names, whatever the result of the call.
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

// question is the input of namers.
type question struct {
	*replay
	repo    *repository
	project project.Project // has no key until something of it is stored
	place   project.Location
	session string
	branch  string // checked-out branch, "" if the transcript does not contain it
	prompt  string // "" at the start
	event   *event // the event with which the moment begins
	told    answer // at the prompt: the injected text of the start
	shown   answer // the injected text of this moment
}

// ask stores everything before an event of a session and returns the question for that moment.
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

// file returns the key of a stored path. It is "" without a path and for paths outside the
// repository.
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
