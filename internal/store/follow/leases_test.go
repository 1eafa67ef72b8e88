package follow_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/follow"
	"cairn/internal/store/storetest"
)

// leasesOf returns leases that act like those of a separate process.
func leasesOf(t *testing.T, s *store.Store, life time.Duration) *follow.Leases {
	t.Helper()
	l, err := follow.NewLeases(s, "copier", life, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// taken takes the given lanes and lists all held lanes.
func taken(t *testing.T, l *follow.Leases, lanes ...int) (held []int) {
	t.Helper()
	if err := l.Take(t.Context(), lanes...); err != nil {
		t.Fatal(err)
	}
	for _, one := range l.Held() {
		held = append(held, one.Lane)
	}
	slices.Sort(held)
	return held
}

// check runs CheckLeases in a transaction that needs the given leases.
func check(t *testing.T, s *store.Store, leases ...follow.Lease) error {
	t.Helper()
	return s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		return follow.CheckLeases(ctx, tx, "copier", leases)
	})
}

func TestALaneBelongsToOneProcessUntilItsLeaseEndsOrIsReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		one, two := leasesOf(t, s, 0), leasesOf(t, s, 0)
		if got := taken(t, one, 1, 2, 255); !slices.Equal(got, []int{1, 2, 255}) {
			t.Fatalf("held are %v", got)
		}
		if got := taken(t, two, 2, 3); !slices.Equal(got, []int{3}) {
			t.Errorf("another process holds %v, and lane 2 was held", got)
		}
		late, ok := one.Of(2)
		if err := check(t, s, late); !ok || err != nil {
			t.Errorf("the holder: %v %v", ok, err)
		}
		if !follow.IsFollowed(t.Context(), s, "copier") || follow.IsFollowed(t.Context(), s, "other") {
			t.Error("who runs is not reported")
		}
		if _, ok := two.Of(2); ok {
			t.Error("two processes hold lane 2")
		}
		time.Sleep(59 * time.Second) // in the bubble's time
		if got := taken(t, two, 2); len(got) != 1 {
			t.Errorf("within its life a lease was taken: %v", got)
		}
		time.Sleep(2 * time.Second)
		if got := taken(t, two, 2); !slices.Equal(got, []int{2, 3}) {
			t.Errorf("after its life a lease was not taken: %v", got)
		}
		if err := check(t, s, late); !fault.HasCode(err, follow.CodeLeaseLost) || fault.KindOf(err) != fault.Conflict {
			t.Errorf("a late holder: %v", err)
		}
		one.Forget(late)
		if one.Losses() != 1 || len(one.Held()) != 2 {
			t.Errorf("%d losses, held %v", one.Losses(), one.Held())
		}
		two.Close()
		if got := taken(t, one, 2); !slices.Equal(got, []int{1, 2, 255}) {
			t.Errorf("what was returned was not taken: %v", got)
		}
		again, _ := one.Of(2)
		if again.Epoch <= late.Epoch || check(t, s, again) != nil {
			t.Errorf("taken again it has epoch %d after %d, %v", again.Epoch, late.Epoch, check(t, s, again))
		}
		one.Close()
		if follow.IsFollowed(t.Context(), s, "copier") {
			t.Error("it runs after all leases were returned")
		}
		if files, err := filepath.Glob(s.Path() + "-replicator-*"); err != nil || len(files) > 0 {
			t.Errorf("left behind: %v %v", files, err)
		}
	})
}

func TestLeasesAreRenewedWhileTheirHolderLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		one, two := leasesOf(t, s, 30*time.Second), leasesOf(t, s, 0)
		taken(t, one, 7)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { one.Keep(ctx); close(ended) }()
		time.Sleep(10 * time.Minute)
		if got := taken(t, two, 7); len(got) != 0 {
			t.Errorf("a lease that is renewed was taken")
		}
		stop()
		<-ended
		time.Sleep(31 * time.Second)
		if got := taken(t, two, 7); len(got) != 1 {
			t.Error("a lease that is not renewed was not taken")
		}
		ctx, stop = context.WithCancel(t.Context())
		go one.Keep(ctx)
		time.Sleep(11 * time.Second)
		if _, ok := one.Of(7); ok || one.Losses() != 1 {
			t.Errorf("it does not know that it has lost its lease: %d losses", one.Losses())
		}
		stop()
		synctest.Wait()
		one.Close()
		two.Close()
	})
}

// The kernel releases the lock of a process that dies; its file stays.
func TestALeaseWhoseHolderHasDiedIsTakenImmediately(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	one, two := leasesOf(t, s, 0), leasesOf(t, s, 0)
	defer one.Close()
	defer two.Close()
	taken(t, one, 1)
	files, err := filepath.Glob(s.Path() + "-replicator-*")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	left := s.Path() + "-replicator-" + store.NewID()
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	follow.RemoveStaleLocks(s)
	for _, f := range files {
		if _, err := os.Stat(f); err != nil {
			t.Errorf("the file of a live holder: %v", err)
		}
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of a dead holder stays: %v", err)
	}
	if got := taken(t, two, 1); len(got) != 0 {
		t.Error("the lease of a live holder was taken")
	}
	if err := os.Remove(files[0]); err != nil { // a lock whose file was removed protects nothing
		t.Fatal(err)
	}
	if err := os.Remove(files[1]); err != nil {
		t.Fatal(err)
	}
	if got := taken(t, two, 1); len(got) != 1 {
		t.Error("the lease of a dead holder was not taken")
	}
}

func TestALaneFailsUntilItRecoversAndWhatWaitsForAPersonIsNotMadeDue(t *testing.T) {
	t.Parallel()
	clock := &storetest.Clock{}
	clock.Move(1_700_000_000 * time.Second)
	s := storetest.Open(t, store.Config{Clock: clock.Now})
	storetest.MustWrite(t, s, "a", "b", "c")
	do := func(what string, fn func(ctx context.Context, tx *store.Tx) error) {
		t.Helper()
		if err := s.Write(t.Context(), store.Normal, fn); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	lanes := func() (out []follow.Progress) {
		t.Helper()
		out, err := follow.Followers(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	next := clock.Now().Add(time.Hour)
	do("fail", func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(follow.Fail(ctx, tx, "copier", "x", errors.New("away"), next), follow.Fail(ctx, tx, "copier", "x", errors.New("still away"), next),
			follow.Fail(ctx, tx, "copier", "y", errors.New("refused"), time.Time{}),
			follow.SetAside(ctx, tx, "copier", "x", follow.Refusal{Seq: 1, Err: errors.New("odd")}),
			follow.SetAside(ctx, tx, "copier", "y", follow.Refusal{Seq: 2, Err: errors.New("wrong"), Final: true, Detail: `{"status":400}`}))
	})
	all := lanes()
	if len(all) != 2 || all[0].Error != "still away" || all[0].Attempts != 2 || all[0].Since != clock.Now().UnixNano() || all[0].NextTry != next.UnixNano() || all[1].NextTry != 0 {
		t.Errorf("the account is %+v", all)
	}
	aside, err := follow.FailedChanges(t.Context(), s)
	if err != nil || len(aside) != 2 || aside[0].NextTry.IsZero() || !aside[1].NextTry.IsZero() || aside[1].Lane != "y" {
		t.Errorf("set aside are %+v, %v", aside, err)
	}
	if changes, failing, err := follow.Retry(t.Context(), s, "copier"); changes != 1 || failing != 1 || err != nil {
		t.Errorf("made due: %d changes, %d lanes, %v", changes, failing, err)
	}
	do("recover", func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(follow.Recover(ctx, tx, "copier", "x"), follow.Recover(ctx, tx, "copier", "x"), follow.Recover(ctx, tx, "copier", "none"))
	})
	if all := lanes(); len(all) != 1 || all[0].Lane != "y" {
		t.Errorf("after lane x has recovered the account is %+v", all)
	}
	do("advance", func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(follow.Advance(ctx, tx, "copier", "x", follow.Cursor{Position: 2}), follow.Fail(ctx, tx, "copier", "x", errors.New("away"), next), follow.Recover(ctx, tx, "copier", "x"))
	})
	if all := lanes(); len(all) != 2 || all[0].Position != 2 || all[0].Error != "" || all[0].Attempts != 0 {
		t.Errorf("a lane with a cursor has recovered to %+v", all)
	}
	do("drop", func(ctx context.Context, tx *store.Tx) error { return follow.DropLanes(ctx, tx, "copier", "x", "y") })
	if aside, err := follow.FailedChanges(t.Context(), s); len(lanes()) != 0 || len(aside) != 0 || err != nil {
		t.Errorf("left are %+v and %+v, %v", lanes(), aside, err)
	}
}
