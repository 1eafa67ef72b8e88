package storetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cairn/internal/store"
)

// Subject is a follower that RunFollower tries to break.
type Subject struct {
	// New makes the follower over an open store. What it makes goes to dir, an
	// existing folder, empty at first; made again over the same dir it goes on
	// there, in another process too.
	New func(t testing.TB, s *store.Store, dir string) store.Follower

	// Write writes the n-th of some rows, n = 1, 2, 3 …, with its one change, such
	// that the follower accepts it and the order of the rows does not matter.
	Write func(ctx context.Context, tx *store.Tx, n int) error

	// State tells everything that the follower has made in dir. It must not show
	// how often or in what batches the changes came.
	State func(t testing.TB, dir string) string

	// Refused, if not nil, writes a row whose change the follower refuses until
	// Mend has been called.
	Refused func(ctx context.Context, tx *store.Tx) error
	Mend    func(t testing.TB, dir string)
}

// RunFollower runs the suite. It starts the calling test again in child
// processes, so that test should do nothing of weight before this call, and
// nothing after it.
func RunFollower(t *testing.T, subject Subject) {
	if role := os.Getenv(roleVar); role != "" {
		runFollowerChild(t, subject, role)
		t.SkipNow() // the child has done its part
	}
	r := &rig{subject: subject, test: t.Name()}
	probe := r.sandbox(t)
	if subject.New(t, probe.s, probe.dir).Live {
		t.Run("StartsAtTheHeadAndStoresNothing", r.live)
		return
	}
	t.Run("ResumesAfterARestart", r.resumes)
	t.Run("KilledBetweenBatchAndPositionIsDeliveredAgain", r.killedBetween)
	t.Run("KilledAtAnyInstantLosesNothing", r.killedAnywhere)
	t.Run("OneProcessRunsAndAnotherTakesOverWhenItDies", r.takesOver)
	t.Run("StopLetsTheBatchFinish", r.stops)
	t.Run("FailedBatchIsRetriedAndMovesNothing", r.fails)
	t.Run("RefusedChangeIsSetAsideAndStopsNothing", r.refuses)
	t.Run("WriteOfThisProcessWakesIt", r.wakes)
	t.Run("WriteOfAnotherProcessIsSeen", r.sees)
	if subject.Refused != nil {
		t.Run("ItsOwnRefusalIsRetriedOnceMended", r.mends)
	}
}

// rig is the suite over one subject.
type rig struct {
	subject Subject
	test    string // the test to start again in a child
}

// sandbox is a store and a folder of one test.
type sandbox struct {
	*rig
	s     *store.Store
	dir   string
	clock *Clock
	count int // rows written
}

func (r *rig) sandbox(t *testing.T) *sandbox {
	t.Helper()
	clock := &Clock{}
	clock.Move(time.Duration(1_700_000_000) * time.Second)
	return &sandbox{rig: r, clock: clock, dir: t.TempDir(), s: Open(t, store.Config{Clock: clock.Now})}
}

// write writes n more rows, each in a transaction of its own.
func (b *sandbox) write(t testing.TB, n int) {
	t.Helper()
	for range n {
		b.count++
		err := b.s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			return b.subject.Write(ctx, tx, b.count)
		})
		if err != nil {
			t.Fatalf("write row %d: %v", b.count, err)
		}
	}
}

// follower is the subject with small batches that looks often.
func (b *sandbox) follower(t testing.TB) store.Follower {
	f := b.subject.New(t, b.s, b.dir)
	f.Limit, f.Poll = 3, 5*time.Millisecond
	return f
}

// run is a follower at work.
type run struct {
	seen  chan []store.Change // what Batch has handled without an error
	stop  context.CancelFunc
	ended chan error
}

// start runs a follower until stopped, at the latest at the end of the test.
func (b *sandbox) start(t *testing.T, f store.Follower) *run {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &run{seen: make(chan []store.Change, 1024), stop: stop, ended: make(chan error, 1)}
	inner := f.Batch
	f.Batch = func(ctx context.Context, changes []store.Change) ([]store.Refusal, error) {
		refused, err := inner(ctx, changes)
		if err == nil {
			r.seen <- changes
		}
		return refused, err
	}
	go func() { r.ended <- b.s.Follow(ctx, f) }()
	t.Cleanup(func() { r.finish(t) })
	return r
}

// finish stops the follower and waits for it. Repeating it is harmless.
func (r *run) finish(t testing.TB) {
	t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("the follower ended with %v", err)
	}
	r.ended <- nil
}

// until returns what was handled up to the change of a seq and with it.
func (r *run) until(t testing.TB, seq int64) []store.Change {
	t.Helper()
	var all []store.Change
	for {
		all = append(all, r.batch(t)...)
		if all[len(all)-1].Seq >= seq {
			return all
		}
	}
}

// batch returns the next batch that was handled.
func (r *run) batch(t testing.TB) []store.Change {
	t.Helper()
	return await(t, r.seen)
}

// head is the seq of the newest change.
func (b *sandbox) head(t testing.TB) (seq int64) {
	t.Helper()
	err := b.s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		seq, err = tx.Head(ctx)
		return err
	})
	if err != nil {
		t.Fatalf("read the head: %v", err)
	}
	return seq
}

// catchUp runs the follower until it has handled everything.
func (b *sandbox) catchUp(t *testing.T) {
	t.Helper()
	if b.lag(t) == 0 {
		return
	}
	r := b.start(t, b.follower(t))
	r.until(t, b.head(t))
	r.finish(t)
	if lag := b.lag(t); lag != 0 {
		t.Errorf("having handled everything and stopped, it lags by %d", lag)
	}
}

func (b *sandbox) lag(t testing.TB) int64 {
	t.Helper()
	lag, err := b.s.Lag(t.Context(), b.follower(t).Name)
	if err != nil {
		t.Fatalf("lag: %v", err)
	}
	return lag
}

func (b *sandbox) aside(t testing.TB) []store.Aside {
	t.Helper()
	out, err := b.s.SetAside(t.Context())
	if err != nil {
		t.Fatalf("what was set aside: %v", err)
	}
	return out
}

// sameAsUndisturbed compares what the follower has made with what a new one
// makes of the same log without any disturbance.
func (b *sandbox) sameAsUndisturbed(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := b.s.CopyTo(t.Context(), path); err != nil {
		t.Fatalf("copy the store: %v", err)
	}
	c := &sandbox{rig: b.rig, dir: t.TempDir(), s: Open(t, store.Config{Path: path, Clock: b.clock.Now})}
	err := c.s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for _, q := range []string{"DELETE FROM followers", "DELETE FROM set_aside"} {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("make the copy new: %v", err)
	}
	c.catchUp(t)
	if got, want := b.subject.State(t, b.dir), c.subject.State(t, c.dir); got != want {
		t.Errorf("the follower made\n%s\nwithout disturbance it makes\n%s", got, want)
	}
}

// seqs are the positions of changes.
func seqs(changes []store.Change) []int64 {
	out := make([]int64, len(changes))
	for i, c := range changes {
		out[i] = c.Seq
	}
	return out
}

// gapless fails the test unless the changes are those from first to last.
func gapless(t testing.TB, changes []store.Change, first, last int64) {
	t.Helper()
	want := make([]int64, 0, last-first+1)
	for seq := first; seq <= last; seq++ {
		want = append(want, seq)
	}
	if got := seqs(changes); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("handled %v, want %v", got, want)
	}
}
