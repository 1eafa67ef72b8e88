package archive

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// FollowerName is the archive's among the followers of a store.
const FollowerName = "archive"

const (
	drainLimit = 30 * time.Second // at a stop; the rest is done at the next start
	firstDelay = time.Second      // after a failure, doubled up to lastDelay
	lastDelay  = time.Minute
	probeAgain = time.Minute // while the last probe found something missing
)

// Follow archives whatever is written to the store, by this and all other
// processes, until ctx ends; then it archives the rest, for 30 s at most, and
// returns nil. One process at a time does it per store, the others wait for that
// one's end. First it makes the numbers that the store gives next larger than
// those in ids.json, tries again what was set aside, and looks the newest entities
// up in their archives (see Probe); none of it keeps anybody waiting.
//
// What goes wrong with one project is counted, logged and tried again after up to
// a minute, and holds up no other project. Errors: those of store.Follow.
func (a *Archivist) Follow(ctx context.Context) error {
	f := &following{Archivist: a, draining: make(chan struct{}), lines: map[string]bool{}}
	working, halt := context.WithCancel(context.WithoutCancel(ctx))
	defer halt()
	elected, followed := make(chan struct{}), make(chan error, 1)
	go func() {
		followed <- a.Store.Follow(working, store.Follower{
			Name: FollowerName, Poll: time.Second, Limit: maxChanges, Elected: func() { close(elected) },
			Batch: func(_ context.Context, changes []store.Change) ([]store.Refusal, error) {
				f.collect(working, changes)
				return nil, nil
			},
		})
	}()
	select {
	case err := <-followed:
		return err
	case <-ctx.Done():
		halt()
		return <-followed
	case <-elected:
	}
	f.tenders.Go(func() { f.begin(ctx, working) })
	<-ctx.Done()
	f.drain(working, halt)
	halt()
	return errors.Join(<-followed, a.Close())
}

// following is one run of Follow while it is the follower.
type following struct {
	*Archivist
	draining chan struct{} // closed when all is to come to an end
	tenders  sync.WaitGroup

	mu    sync.Mutex
	lines map[string]bool // that are tended
	ended bool            // no other is tended any more
}

// begin does what is due when a process becomes the follower, and probes again while
// something is known to be missing.
func (f *following) begin(ctx, working context.Context) {
	if err := f.raiseNumbers(ctx); err != nil && ctx.Err() == nil {
		f.Log.Warn("the numbers of the archive could not be read", "error", err)
	}
	f.catchUp(working)
	if err := f.RetryAsides(ctx); err != nil && ctx.Err() == nil {
		f.Log.Warn("what was set aside could not be tried again", "error", err)
	}
	for {
		missing, err := f.ProbeNewest(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.Log.Warn("the archive could not be probed", "error", err)
		case missing > 0:
			f.Log.Warn("archived files are missing; run `cairn reconcile --rebuild`", "missing", missing)
		default:
			return
		}
		if sleep(ctx, probeAgain) != nil {
			return
		}
	}
}

// collect wakes the projects that changes are of.
func (f *following) collect(ctx context.Context, changes []store.Change) {
	seen := map[string]bool{}
	for _, c := range changes {
		if c.Project == "" || seen[c.Project] {
			continue
		}
		for _, p := range f.Parts {
			if strings.HasPrefix(c.Stream, p.Prefix) {
				seen[c.Project] = true
				f.tend(ctx, c.Project)
				break
			}
		}
	}
}

// catchUp wakes the projects that are behind.
func (f *following) catchUp(ctx context.Context) {
	projects, err := f.behind(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.Log.Warn("what is to be archived could not be read", "error", err)
		}
		return
	}
	for _, p := range projects {
		f.tend(ctx, p)
	}
}

// tend wakes a project, which has a goroutine of its own from its first change on.
func (f *following) tend(ctx context.Context, project string) {
	l := f.line(project)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lines[project] || f.ended {
		return
	}
	f.lines[project] = true
	f.tenders.Go(func() { f.attend(ctx, l) })
}

// attend archives a project whenever it is woken.
func (f *following) attend(ctx context.Context, l *line) {
	idle := time.NewTimer(IdleAfter)
	defer idle.Stop()
	for {
		select {
		case <-l.wake:
			if !f.persist(ctx, l) {
				return
			}
			if l.heals.Swap(false) {
				f.catchUp(ctx)
			}
			idle.Reset(IdleAfter)
			continue
		case <-idle.C:
			l.rest(ctx)
			continue
		case <-ctx.Done():
			return
		case <-f.draining:
		}
		select {
		case <-l.wake:
			if l.catchUp(ctx) != nil {
				return
			}
		default:
		}
		l.rest(ctx)
		return
	}
}

// persist catches up with a project, with pauses between the tries; false if all is
// to come to an end.
func (f *following) persist(ctx context.Context, l *line) bool {
	var delay time.Duration
	for {
		err := l.catchUp(ctx)
		if err == nil {
			return true
		}
		delay = min(max(2*delay, firstDelay), lastDelay)
		if ctx.Err() == nil && !errors.Is(err, errFull) {
			f.Log.Warn("a project could not be archived; it is tried again", "project", l.project, "after", delay, "error", err, "do", fault.As(err).Hint)
		}
		t := time.NewTimer(delay)
		select {
		case <-t.C:
			continue
		case <-ctx.Done():
		case <-f.draining:
		}
		t.Stop()
		return false
	}
}

// drain archives what was written last, for a limited time.
func (f *following) drain(ctx context.Context, halt func()) {
	late := time.AfterFunc(drainLimit, halt)
	defer late.Stop()
	f.catchUp(ctx)
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	close(f.draining)
	f.tenders.Wait()
}
