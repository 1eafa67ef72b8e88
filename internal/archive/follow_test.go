package archive

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cairn/internal/store/follow"
)

// No pause follows a run with a full batch. The next run is not full.
func TestATurnWithAWholeBatchIsFull(t *testing.T) {
	t.Parallel()
	_, lines := linesOf(t, Config{}, 1)
	for i, changes := range []int{1, maxChanges + 1, 1} {
		var ids []string
		for n := range changes {
			ids = append(ids, fmt.Sprintf("%d/%d", i, n))
		}
		lines[0].write1(t, ids...)
		if did, err := lines[0].catchUp(t.Context(), nil); err != nil || did.Full != (changes > maxChanges) {
			t.Errorf("a turn of %d changes: %+v, %v", changes, did, err)
		}
	}
	if d := restAfter(10*time.Millisecond, 3); d != 3*restFactor*10*time.Millisecond {
		t.Errorf("after a turn of 10 ms, beside two others, a project rests for %s", d)
	}
	if d := restAfter(time.Hour, 1); d != longestRest {
		t.Errorf("after a long turn it rests for %s", d)
	}
}

// This process has the repository open and reverts nothing, neither in its next run nor
// when it tidies up.
func TestWhatAnotherProcessArchivesStays(t *testing.T) {
	t.Parallel()
	a, lines := linesOf(t, Config{}, 1)
	here := lines[0]
	other := New(a.Config)
	t.Cleanup(func() { _ = other.Close() })
	there := other.worker(here.project)
	expect := func(when string, ids ...string) {
		t.Helper()
		tree, err := there.repo.Tree(t.Context())
		for _, id := range ids {
			if err != nil || tree[id] == "" {
				t.Errorf("%s: %s is gone from %v, %v", when, id, tree, err)
			}
		}
	}
	archive := func(l *projectWorker, id string) {
		t.Helper()
		l.write1(t, id)
		if err := l.caughtUp(t); err != nil {
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

// If another process is the follower, that process archives them.
func TestAStopArchivesTheLastWritesAlsoBeforeTheElection(t *testing.T) {
	t.Parallel()
	a, lines := linesOf(t, Config{}, 1)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	archive := func(write string, want int) {
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
		archive(fmt.Sprint("a", n), 0)
	}
	held, err := follow.WithLease(a.Store, FollowerName, func() error {
		archive("b", 1)
		return nil
	})
	if !held || err != nil {
		t.Fatalf("the lease was not free: %v", err)
	}
	archive("c", 0)
}
