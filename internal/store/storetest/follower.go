package storetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// Subject is a follower that RunFollower tries to break.
type Subject struct {
	// New creates the follower over an open store. dir is an existing folder for its other
	// data, initially empty. If it is created again over the same dir, it continues there,
	// also in another process. end, if not nil, is called when it stops.
	New func(t testing.TB, s *store.Store, dir string) (f follow.Follower, end func() error)

	// Start replaces New for the replication, which also pulls, and shares its streams by leases.
	// run runs it until ctx ends. Each piece of its work goes through around, whose error is
	// the result of that piece.
	Start func(t testing.TB, s *store.Store, dir string, around func(work func() error) error) (run func(ctx context.Context) error)

	// Prepare, if not nil, writes the data that the rows need, before any follower runs.
	Prepare func(t testing.TB, s *store.Store)

	// Write writes the n-th row, n = 1, 2, 3 …. The follower must accept it, and the
	// order of the rows must not matter.
	Write func(t testing.TB, s *store.Store, n int)

	// Waits returns how much work the follower has left; nil means the follower's lag.
	Waits func(t testing.TB, s *store.Store, dir string) int64

	// State returns all results of the follower. It must not depend on how often or in what
	// batches the changes came. Reset deletes the results in the store.
	State func(t testing.TB, s *store.Store, dir string) string
	Reset func(ctx context.Context, tx *store.Tx) error

	// Refused, if not nil, writes a row that the follower refuses until Repair has been
	// called.
	Refused func(t testing.TB, s *store.Store)
	Repair  func(t testing.TB, dir string)

	// Retry, if not nil, retries a refused row on behalf of the user. A follower with Retry
	// does not retry such a row itself.
	Retry func(t testing.TB, s *store.Store)
}

// RunFollower runs the suite. It starts the calling test again in child processes, so the
// test should do nothing expensive before this call, and nothing after it.
func RunFollower(t *testing.T, subject Subject) {
	if role := os.Getenv(roleVar); role != "" {
		runFollowerChild(t, subject, role)
		t.SkipNow() // the child has done its part
	}
	r := &rig{subject: subject, test: t.Name()}
	for name, test := range map[string]func(t *testing.T){
		"GoesOnWhereItWasAfterARestart":                     r.resumes,
		"KilledWhenItHasWorkedDoesItAgain":                  r.killedAfterWork,
		"KilledAtAnyInstantLosesNothingAndTellsTheTruth":    r.killedAnywhere,
		"OneProcessRunsAndAnotherTakesOverWhenItDies":       r.takesOver,
		"StopLetsTheWorkFinish":                             r.stops,
		"FailureIsTriedAgainMovesNothingAndIsAccountedFor":  r.fails,
		"WriteOfThisProcessWakesIt":                         r.wakes,
		"WriteOfAnotherProcessIsSeen":                       r.sees,
		"ItsRefusalStopsNothingAndIsTriedAgainOnceRepaired": r.repairs,
	} {
		if name[:3] != "Its" || subject.Refused != nil {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
		}
	}
}

// rig is the suite for one subject.
type rig struct {
	subject Subject
	test    string // the test to start again in a child
}

// sandbox is the store and the folder of one test.
type sandbox struct {
	*rig
	s     *store.Store
	dir   string
	clock *Clock
	count int // rows written

	repaired bool // Repair was called
}

// sandbox returns a new sandbox in which the follower has run once, before the first row.
func (r *rig) sandbox(t *testing.T) *sandbox {
	t.Helper()
	clock := &Clock{}
	clock.Move(time.Duration(1_700_000_000) * time.Second)
	b := &sandbox{rig: r, clock: clock, dir: realDir(t), s: Open(t, store.Config{Clock: clock.Now})}
	if r.subject.Prepare != nil {
		r.subject.Prepare(t, b.s)
	}
	b.catchUp(t)
	return b
}

// realDir returns a folder of the test by a path without links.
func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// write writes n more rows.
func (b *sandbox) write(t testing.TB, n int) {
	t.Helper()
	for range n {
		b.count++
		b.subject.Write(t, b.s, b.count)
	}
}

// around calls a hook before each batch or run of a follower. The hook's error or panic
// is the result; without an error the follower continues.
func around(f follow.Follower, hook func(ctx context.Context, changes []store.Change) error) follow.Follower {
	if f.Lanes != nil {
		lanes := *f.Lanes
		turn := lanes.Turn
		lanes.Turn = func(ctx context.Context, lane string, woken <-chan struct{}) (follow.Turned, error) {
			if err := hook(ctx, nil); err != nil {
				return follow.Turned{}, err
			}
			return turn(ctx, lane, woken)
		}
		f.Lanes = &lanes
		return f
	}
	batch := f.Batch
	f.Batch = func(ctx context.Context, changes []store.Change) ([]follow.Refusal, error) {
		if err := hook(ctx, changes); err != nil {
			return nil, err
		}
		return batch(ctx, changes)
	}
	return f
}

// run is a running follower.
type run struct {
	stop  context.CancelFunc
	ended chan error
}

// start runs the subject with small batches and frequent polls until it is stopped, at
// the latest at the end of the test. hook may be nil.
func (b *sandbox) start(t *testing.T, hook func(ctx context.Context, changes []store.Change) error, change ...func(*follow.Follower)) *run {
	t.Helper()
	r := &run{ended: make(chan error, 1)}
	if hook == nil {
		hook = func(context.Context, []store.Change) error { return nil }
	}
	work := b.follow(t, hook, change)
	var ctx context.Context
	ctx, r.stop = context.WithCancel(t.Context())
	go func() { r.ended <- work(ctx) }()
	t.Cleanup(func() { r.finish(t) })
	return r
}

// follow returns the function that runs the subject.
func (b *sandbox) follow(t *testing.T, hook func(ctx context.Context, changes []store.Change) error, change []func(*follow.Follower)) func(ctx context.Context) error {
	t.Helper()
	if b.subject.Start != nil {
		return b.subject.Start(t, b.s, b.dir, func(work func() error) (err error) {
			defer catch(&err)
			if err = hook(context.Background(), nil); err == nil {
				err = work()
			}
			return err
		})
	}
	f, end := b.subject.New(t, b.s, b.dir)
	f.Limit, f.Poll = 3, 5*time.Millisecond
	for _, c := range change {
		c(&f)
	}
	f = around(f, hook)
	return func(ctx context.Context) error {
		err := follow.Run(ctx, b.s, f)
		if end != nil && err == nil {
			err = end()
		}
		return err
	}
}

// catch converts a panic to an error.
func catch(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v", p)
	}
}

// finish stops the follower and waits for it. It is idempotent.
func (r *run) finish(t testing.TB) {
	t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("the follower ended with %v", err)
	}
	r.ended <- nil
}

// waits returns how much work the follower has left.
func (b *sandbox) waits(t testing.TB) int64 {
	t.Helper()
	if b.subject.Waits != nil {
		return b.subject.Waits(t, b.s, b.dir)
	}
	f, end := b.subject.New(t, b.s, b.dir)
	lag, err := follow.Lag(t.Context(), b.s, f.Name)
	if end != nil && err == nil {
		err = end()
	}
	if err != nil {
		t.Fatalf("lag: %v", err)
	}
	return lag
}

// until waits until a condition holds, checking every few milliseconds.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// done waits until no work is left.
func (b *sandbox) done(t testing.TB) {
	t.Helper()
	until(t, "everything is handled", func() bool { return b.waits(t) == 0 })
}

// catchUp runs the follower until it has handled everything.
func (b *sandbox) catchUp(t *testing.T) {
	t.Helper()
	r := b.start(t, nil)
	b.done(t)
	r.finish(t)
	if waits := b.waits(t); waits != 0 {
		t.Errorf("having handled everything and stopped, it lags by %d", waits)
	}
}

func (b *sandbox) aside(t testing.TB) []follow.FailedChange {
	t.Helper()
	out, err := follow.FailedChanges(t.Context(), b.s)
	if err != nil {
		t.Fatalf("what was set aside: %v", err)
	}
	return out
}

// sameAsUndisturbed compares the follower's results with those of a new follower that reads
// the same log without disturbance.
func (b *sandbox) sameAsUndisturbed(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := b.s.CopyTo(t.Context(), path); err != nil {
		t.Fatalf("copy the store: %v", err)
	}
	c := &sandbox{rig: b.rig, dir: realDir(t), s: Open(t, store.Config{Path: path, Clock: b.clock.Now})}
	err := c.s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for _, q := range []string{"DELETE FROM followers", "DELETE FROM set_aside"} {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		if b.subject.Reset == nil {
			return nil
		}
		return b.subject.Reset(ctx, tx)
	})
	if err != nil {
		t.Fatalf("make the copy new: %v", err)
	}
	if b.repaired {
		b.subject.Repair(t, c.dir)
	}
	c.catchUp(t)
	if got, want := b.subject.State(t, b.s, b.dir), c.subject.State(t, c.s, c.dir); got != want {
		t.Errorf("the follower made\n%s\nwithout disturbance it makes\n%s", got, want)
	}
}
