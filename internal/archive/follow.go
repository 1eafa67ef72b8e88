package archive

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// FollowerName is the lease of the archive's follower. How far it is each project's
// cursor tells.
const FollowerName = "archive"

const (
	pollEvery  = 500 * time.Millisecond // what other processes wrote is seen so soon
	drainLimit = 30 * time.Second       // at a stop; the rest is done at the next start
	firstDelay = time.Second            // after a failure, doubled up to lastDelay
	lastDelay  = time.Minute
	probeAgain = 15 * time.Second // while the last probe found something missing

	// A project that is written to all the time is archived in larger pieces, since
	// a turn costs much the same for any: after one it rests this many times as long
	// for each project that is at it, longestRest at most.
	restFactor  = 4
	longestRest = 2 * time.Second
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
			Lease: FollowerName, Poll: pollEvery, Limit: maxChanges, Elected: func() { close(elected) },
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
		return errors.Join(<-followed, f.drainUnelected(ctx))
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
	busy     atomic.Int64 // projects that have a turn or rest after one

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
		if c.Kind == "project" && len(c.Doc) > 0 {
			f.merged(ctx, c.Doc)
		}
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

// merged wakes the project that has taken another one over, and with it what was
// written long ago.
func (f *following) merged(ctx context.Context, doc []byte) {
	var p struct {
		MergedInto string `json:"merged_into"`
	}
	if json.Unmarshal(doc, &p) == nil && p.MergedInto != "" {
		f.tend(ctx, p.MergedInto)
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
			if !f.turn(ctx, l) {
				return
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

// turn catches up with a project, and lets it rest; false if all is to come to an end.
func (f *following) turn(ctx context.Context, l *line) bool {
	f.busy.Add(1)
	defer f.busy.Add(-1)
	began := time.Now()
	if !f.persist(ctx, l) {
		return false
	}
	if l.heals.Swap(false) {
		f.catchUp(ctx)
	}
	f.pause(ctx, l, time.Since(began))
	return true
}

// pause lets a project rest after a turn, unless so much came that the turn had a whole
// batch to do. What is written meanwhile is the next turn's.
func (f *following) pause(ctx context.Context, l *line, turn time.Duration) {
	if l.flooded.Load() {
		return
	}
	t := time.NewTimer(min(restFactor*turn*time.Duration(f.busy.Load()), longestRest))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-f.draining:
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

// drainUnelected archives the last writes of a process that stops before it became the
// follower. If another process is the follower, that process archives them.
func (f *following) drainUnelected(ctx context.Context) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
	defer cancel()
	_, err := f.Store.WithLease(FollowerName, func() error {
		done, err := f.Sync(limited, "", func(string) {})
		for project, why := range done.Failed {
			f.Log.Warn("a project could not be archived; the next server tries again", "project", project, "error", why)
		}
		return err
	})
	if limited.Err() != nil {
		err = nil // the next server archives the rest
	}
	return errors.Join(err, f.Close())
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
