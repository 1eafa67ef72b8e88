package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// TestLiveFollowersBeginAtTheHeadSeeEverythingAndStoreNothing runs two live followers.
func TestLiveFollowersBeginAtTheHeadSeeEverythingAndStoreNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		mustWrite(t, s, "a", "b")
		var seen [2][]int64
		var stops []func()
		for i := range seen {
			stops = append(stops, following(t, s, store.Follower{Name: "view", Live: true, Batch: func(_ context.Context, changes []store.Change) ([]store.Refusal, error) {
				for _, c := range changes {
					seen[i] = append(seen[i], c.Seq)
				}
				return nil, nil
			}}))
		}
		time.Sleep(time.Second)
		mustWrite(t, s, "c")
		time.Sleep(time.Second)
		mustWrite(t, s, "d", "e")
		time.Sleep(time.Second)
		all, err := s.Followers(t.Context())
		if err != nil || len(all) != 1 || !all[0].Live || all[0].Error != "" {
			t.Errorf("the account is %+v, %v", all, err)
		}
		for i, stop := range stops {
			stop()
			if fmt.Sprint(seen[i]) != "[3 4 5]" {
				t.Errorf("follower %d saw %v", i, seen[i])
			}
		}
		var rows int
		err = s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return tx.Get(ctx, []any{&rows}, "SELECT (SELECT count(*) FROM followers) + (SELECT count(*) FROM set_aside)")
		})
		if err != nil || rows != 0 {
			t.Errorf("live followers stored %d rows, %v", rows, err)
		}
	})
}

// following runs a follower in a synctest bubble until stop, which waits for it.
func following(t *testing.T, s *store.Store, f store.Follower) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Follow(ctx, f) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the follower ended with %v", err)
		}
	}
}

func TestFailingBatchBacksOffUpToTwentySecondsOrHalfAsMuchMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		mustWrite(t, s, "a")
		var at []time.Time
		stop := following(t, s, store.Follower{Name: "f", Batch: func(context.Context, []store.Change) ([]store.Refusal, error) {
			at = append(at, time.Now())
			return nil, errors.New("the other side is away")
		}})
		time.Sleep(10 * time.Minute) // in the bubble's time
		stop()
		var gaps []time.Duration
		for i := 1; i < len(at); i++ {
			gaps = append(gaps, at[i].Sub(at[i-1]))
		}
		late := gaps[len(gaps)/2:]
		if gaps[0] < 50*time.Millisecond || gaps[0] > 150*time.Millisecond || slices.Max(gaps) > 30*time.Second || slices.Min(late) < 10*time.Second {
			t.Errorf("it was tried after %v", gaps)
		}
		if lag, err := s.Lag(t.Context(), "f"); lag != 1 || err != nil {
			t.Errorf("it lags by %d, %v", lag, err)
		}
	})
}

func TestRefusedChangeIsTriedAgainAfterAMinuteThenMoreSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		mustWrite(t, s, "a")
		begin := time.Now()
		var at []time.Duration
		stop := following(t, s, store.Follower{Name: "f", Poll: 10 * time.Second, Batch: func(_ context.Context, changes []store.Change) ([]store.Refusal, error) {
			at = append(at, time.Since(begin).Round(time.Minute))
			return []store.Refusal{{Seq: changes[0].Seq}}, nil // without a reason
		}})
		time.Sleep(4*time.Hour + time.Minute)
		stop()
		want := "[0s 1m0s 3m0s 7m0s 15m0s 31m0s 1h3m0s 2h3m0s 3h3m0s]"
		if got := fmt.Sprint(at); got != want {
			t.Errorf("tried at %s, want %s", got, want)
		}
		aside, err := s.FailedChanges(t.Context())
		if err != nil || len(aside) != 1 || aside[0].Attempts != len(at) {
			t.Errorf("set aside: %+v, %v", aside, err)
		}
	})
}

func TestBusyLogDoesNotKeepARefusedChangeFromItsTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		mustWrite(t, s, "a")
		tries, written := 0, 0
		stop := following(t, s, store.Follower{Name: "f", Batch: func(ctx context.Context, changes []store.Change) ([]store.Refusal, error) {
			if written++; written < 400 { // there is always a new change
				time.Sleep(time.Second)
				mustWrite(t, s, fmt.Sprint("n", written))
			}
			if changes[0].Seq == 1 {
				if tries++; tries == 1 {
					return []store.Refusal{{Seq: 1, Err: errors.New("not now")}}, nil
				}
			}
			return nil, nil
		}})
		time.Sleep(3 * time.Minute)
		stop()
		if tries != 2 {
			t.Errorf("in three busy minutes it was tried %d times", tries)
		}
	})
}

// An error in a later attempt at one change must not delay the other changes.
func TestErrorInALaterTryHoldsUpNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		mustWrite(t, s, "a")
		var seen []int64
		f := store.Follower{Name: "f", Poll: time.Second, Batch: func(_ context.Context, changes []store.Change) ([]store.Refusal, error) {
			seen = append(seen, changes[0].Seq)
			if changes[0].Seq > 1 {
				return nil, nil
			}
			if len(seen) == 1 {
				return []store.Refusal{{Seq: 1, Err: errors.New("refused")}}, nil
			}
			panic("defect")
		}}
		stop := following(t, s, f)
		time.Sleep(90 * time.Second)
		mustWrite(t, s, "b")
		time.Sleep(10 * time.Millisecond)
		mustWrite(t, s, "c")
		time.Sleep(10 * time.Millisecond)
		stop()
		if fmt.Sprint(seen) != "[1 1 2 3]" {
			t.Errorf("handled %v", seen)
		}
		aside, err := s.FailedChanges(t.Context())
		if err != nil || len(aside) != 1 || aside[0].Attempts != 2 || !strings.Contains(aside[0].Error, "defect") {
			t.Errorf("set aside: %+v, %v", aside, err)
		}
	})
}

func TestStoppedBatchHasTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		mustWrite(t, s, "a")
		entered := make(chan struct{})
		stop := following(t, s, store.Follower{Name: "f", Batch: func(ctx context.Context, _ []store.Change) ([]store.Refusal, error) {
			close(entered)
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		<-entered
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("it was given %v", took)
		}
	})
}

// The batch was handled, then the store stays locked for longer than a write waits.
func TestPositionThatCannotBeStoredIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		mustWrite(t, s, "a")
		db := raw(t, s.Path())
		calls := 0
		stop := following(t, s, store.Follower{Name: "f", Batch: func(_ context.Context, changes []store.Change) ([]store.Refusal, error) {
			if calls++; calls == 1 {
				rawExec(t, db, "BEGIN IMMEDIATE")
			} else {
				rawExec(t, db, "ROLLBACK")
			}
			return nil, nil
		}})
		time.Sleep(time.Minute)
		stop()
		if lag, err := s.Lag(t.Context(), "f"); calls != 2 || lag != 0 || err != nil {
			t.Errorf("%d calls, lag %d, %v", calls, lag, err)
		}
	})
}

func TestFollowerThatWaitsForItsLeaseStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		mustWrite(t, s, "a")
		handled := make(chan string, 4)
		f := func(who string) store.Follower {
			return store.Follower{Name: "f", Batch: func(context.Context, []store.Change) ([]store.Refusal, error) {
				handled <- who
				return nil, nil
			}}
		}
		stopOne := following(t, s, f("one"))
		if who := <-handled; who != "one" {
			t.Errorf("%s handled it", who)
		}
		stopTwo := following(t, s, f("two"))
		time.Sleep(time.Minute)
		stopTwo()
		stopOne()
		if len(handled) > 0 {
			t.Errorf("%s handled it, too", <-handled)
		}
		stopThree := following(t, s, f("three")) // the lease was released
		mustWrite(t, s, "b")
		if who := <-handled; who != "three" {
			t.Errorf("%s handled it", who)
		}
		stopThree()
	})
}

func TestNameThatIsNoFileNameIsRefused(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	for _, name := range []string{"a/b", `a\b`, "../x", "c:d"} {
		expectCode(t, s.Follow(t.Context(), store.Follower{Name: name}), "invalid")
	}
}

func TestLagOfAFollowerThatNeverRanIsTheWholeLog(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	mustWrite(t, s, "a", "b")
	if lag, err := s.Lag(t.Context(), "never"); lag != 2 || err != nil {
		t.Errorf("it lags by %d, %v", lag, err)
	}
	if aside, err := s.FailedChanges(t.Context()); len(aside) != 0 || err != nil {
		t.Errorf("set aside: %v, %v", aside, err)
	}
	_, _, err := s.Retry(t.Context(), "never")
	expectCode(t, err, "not_found")
	for range 2 {
		if changes, lanes, err := s.Retry(t.Context(), ""); changes+lanes != 0 || err != nil {
			t.Error(changes, lanes, err)
		}
	}
}
