package archive

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// TestAProjectRestsAfterATurnUnlessItIsFlooded, and a stop ends the rest.
func TestAProjectRestsAfterATurnUnlessItIsFlooded(t *testing.T) {
	t.Parallel()
	_, lines := linesOf(t, Config{}, 1)
	l := lines[0]
	rested := func(turn time.Duration, stopped bool) time.Duration {
		f := &following{draining: make(chan struct{})}
		f.busy.Store(3)
		if stopped {
			close(f.draining)
		}
		began := time.Now()
		f.pause(t.Context(), l, turn)
		return time.Since(began)
	}
	turn := func(prefix string, changes int) {
		t.Helper()
		var ids []string
		for i := range changes {
			ids = append(ids, fmt.Sprintf("%s/%d", prefix, i))
		}
		l.write1(t, ids...)
		if err := l.catchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	turn("a", 1)
	if d := rested(10*time.Millisecond, false); d < 3*10*time.Millisecond*restFactor {
		t.Errorf("after a turn of 10 ms, beside two others, a project rested for %s", d)
	}
	if d := rested(time.Hour, true); d >= longestRest {
		t.Errorf("a stop had to wait for %s", d)
	}
	turn("b", maxChanges+1)
	if d := rested(time.Hour, false); d >= longestRest {
		t.Errorf("a project of which a whole batch was to be archived rested for %s", d)
	}
	turn("c", 1)
	if l.flooded.Load() {
		t.Error("the next turn had one change, and counts as flooded")
	}
}

// TestWhatAnotherProcessArchivesStays also while this one has the repository open: it
// takes nothing back, neither at its next turn nor when it tidies up.
func TestWhatAnotherProcessArchivesStays(t *testing.T) {
	t.Parallel()
	a, lines := linesOf(t, Config{}, 1)
	here := lines[0]
	other := New(a.Config)
	t.Cleanup(func() { _ = other.Close() })
	there := other.line(here.project)
	expect := func(when string, ids ...string) {
		t.Helper()
		tree, err := there.repo.Tree(t.Context())
		for _, id := range ids {
			if err != nil || tree[id] == "" {
				t.Errorf("%s: %s is gone from %v, %v", when, id, tree, err)
			}
		}
	}
	archive := func(l *line, id string) {
		t.Helper()
		l.write1(t, id)
		if err := l.catchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	archive(here, "a")
	archive(there, "b")
	there.rest(t.Context()) // Git's index is newer than what the first knows
	here.rest(t.Context())
	expect("after tidying up", "a", "b")
	archive(here, "c")
	archive(there, "d")
	there.rest(t.Context())
	archive(here, "e")
	expect("after a turn", "a", "b", "c", "d", "e")
}

// TestAStopArchivesTheLastWritesAlsoBeforeTheElection, unless another process is the
// follower, which then archives them.
func TestAStopArchivesTheLastWritesAlsoBeforeTheElection(t *testing.T) {
	t.Parallel()
	a, lines := linesOf(t, Config{}, 1)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	follow := func(write string, want int) {
		t.Helper()
		lines[0].write1(t, write)
		if err := a.Follow(stopped); err != nil {
			t.Fatal(err)
		}
		if behind, err := a.behind(t.Context()); err != nil || len(behind) != want {
			t.Errorf("after %s: behind are %v, %v", write, behind, err)
		}
	}
	for n := range 20 { // the election is sometimes faster than the stop
		follow(fmt.Sprint("a", n), 0)
	}
	held, err := a.Store.WithLease(FollowerName, func() error {
		follow("b", 1)
		return nil
	})
	if !held || err != nil {
		t.Fatalf("the lease was not free: %v", err)
	}
	follow("c", 0)
}
