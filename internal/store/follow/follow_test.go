package follow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/follow"
	"cairn/internal/store/storetest"
)

// TestLiveFollowersBeginAtTheHeadSeeEverythingAndStoreNothing runs two live followers.
func TestLiveFollowersBeginAtTheHeadSeeEverythingAndStoreNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		storetest.MustWrite(t, s, "a", "b")
		var seen [2][]int64
		var stops []func()
		for i := range seen {
			stops = append(stops, following(t, s, follow.Follower{Name: "view", Live: true, Batch: func(_ context.Context, changes []store.Change) ([]follow.Refusal, error) {
				for _, c := range changes {
					seen[i] = append(seen[i], c.Seq)
				}
				return nil, nil
			}}))
		}
		time.Sleep(time.Second)
		storetest.MustWrite(t, s, "c")
		time.Sleep(time.Second)
		storetest.MustWrite(t, s, "d", "e")
		time.Sleep(time.Second)
		all, err := follow.Followers(t.Context(), s)
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
func following(t *testing.T, s *store.Store, f follow.Follower) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- follow.Run(ctx, s, f) }()
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
		storetest.MustWrite(t, s, "a")
		var at []time.Time
		stop := following(t, s, follow.Follower{Name: "f", Batch: func(context.Context, []store.Change) ([]follow.Refusal, error) {
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
		if lag, err := follow.Lag(t.Context(), s, "f"); lag != 1 || err != nil {
			t.Errorf("it lags by %d, %v", lag, err)
		}
	})
}

// Idle is called at the start, after a write, when Wake receives a value, and when the time
// that it returned has passed. Its error is reported until it succeeds.
func TestIdleRunsWhenAllIsReadWhenItIsWokenAndWhenItsTimeHasPassed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		begin := time.Now()
		var at []string
		read := 0
		var broken atomic.Bool
		wake := make(chan struct{}, 1)
		stop := following(t, s, follow.Follower{
			Name: "f", Live: true, Poll: time.Hour, Wake: wake,
			Batch: func(_ context.Context, changes []store.Change) ([]follow.Refusal, error) {
				read += len(changes)
				return nil, nil
			},
			Idle: func(context.Context) (time.Duration, error) {
				at = append(at, fmt.Sprint(time.Since(begin), " ", read))
				if broken.Load() {
					return 0, errors.New("it is broken")
				}
				return time.Minute, nil
			},
		})
		failing := func() string {
			all, err := follow.Followers(t.Context(), s)
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			return all[0].Error
		}
		synctest.Wait()
		time.Sleep(10 * time.Second)
		wake <- struct{}{}
		time.Sleep(10 * time.Second)
		storetest.MustWrite(t, s, "a")
		time.Sleep(70 * time.Second)
		synctest.Wait()
		if want := "[0s 0 10s 0 20s 1 1m20s 1]"; fmt.Sprint(at) != want || failing() != "" {
			t.Errorf("it ran at %v, want %s; it reports %q", at, want, failing())
		}
		broken.Store(true)
		time.Sleep(time.Minute)
		if failing() != "it is broken" {
			t.Errorf("it reports %q", failing())
		}
		broken.Store(false)
		time.Sleep(time.Minute)
		if failing() != "" {
			t.Errorf("repaired, it reports %q", failing())
		}
		stop()
	})
}

func TestRefusedChangeIsTriedAgainAfterAMinuteThenMoreSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		storetest.MustWrite(t, s, "a")
		begin := time.Now()
		var at []time.Duration
		stop := following(t, s, follow.Follower{Name: "f", Poll: 10 * time.Second, Batch: func(_ context.Context, changes []store.Change) ([]follow.Refusal, error) {
			at = append(at, time.Since(begin).Round(time.Minute))
			return []follow.Refusal{{Seq: changes[0].Seq}}, nil // without a reason
		}})
		time.Sleep(4*time.Hour + time.Minute)
		stop()
		want := "[0s 1m0s 3m0s 7m0s 15m0s 31m0s 1h3m0s 2h3m0s 3h3m0s]"
		if got := fmt.Sprint(at); got != want {
			t.Errorf("tried at %s, want %s", got, want)
		}
		aside, err := follow.FailedChanges(t.Context(), s)
		if err != nil || len(aside) != 1 || aside[0].Attempts != len(at) {
			t.Errorf("set aside: %+v, %v", aside, err)
		}
	})
}

func TestBusyLogDoesNotKeepARefusedChangeFromItsTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		storetest.MustWrite(t, s, "a")
		tries, written := 0, 0
		stop := following(t, s, follow.Follower{Name: "f", Batch: func(ctx context.Context, changes []store.Change) ([]follow.Refusal, error) {
			if written++; written < 400 { // there is always a new change
				time.Sleep(time.Second)
				storetest.MustWrite(t, s, fmt.Sprint("n", written))
			}
			if changes[0].Seq == 1 {
				if tries++; tries == 1 {
					return []follow.Refusal{{Seq: 1, Err: errors.New("not now")}}, nil
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
		storetest.MustWrite(t, s, "a")
		var seen []int64
		f := follow.Follower{Name: "f", Poll: time.Second, Batch: func(_ context.Context, changes []store.Change) ([]follow.Refusal, error) {
			seen = append(seen, changes[0].Seq)
			if changes[0].Seq > 1 {
				return nil, nil
			}
			if len(seen) == 1 {
				return []follow.Refusal{{Seq: 1, Err: errors.New("refused")}}, nil
			}
			panic("defect")
		}}
		stop := following(t, s, f)
		time.Sleep(90 * time.Second)
		storetest.MustWrite(t, s, "b")
		time.Sleep(10 * time.Millisecond)
		storetest.MustWrite(t, s, "c")
		time.Sleep(10 * time.Millisecond)
		stop()
		if fmt.Sprint(seen) != "[1 1 2 3]" {
			t.Errorf("handled %v", seen)
		}
		aside, err := follow.FailedChanges(t.Context(), s)
		if err != nil || len(aside) != 1 || aside[0].Attempts != 2 || !strings.Contains(aside[0].Error, "defect") {
			t.Errorf("set aside: %+v, %v", aside, err)
		}
	})
}

func TestStoppedBatchHasTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		storetest.MustWrite(t, s, "a")
		entered := make(chan struct{})
		stop := following(t, s, follow.Follower{Name: "f", Batch: func(ctx context.Context, _ []store.Change) ([]follow.Refusal, error) {
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
		storetest.MustWrite(t, s, "a")
		db := storetest.Raw(t, s.Path())
		calls := 0
		stop := following(t, s, follow.Follower{Name: "f", Batch: func(_ context.Context, changes []store.Change) ([]follow.Refusal, error) {
			if calls++; calls == 1 {
				storetest.RawExec(t, db, "BEGIN IMMEDIATE")
			} else {
				storetest.RawExec(t, db, "ROLLBACK")
			}
			return nil, nil
		}})
		time.Sleep(time.Minute)
		stop()
		if lag, err := follow.Lag(t.Context(), s, "f"); calls != 2 || lag != 0 || err != nil {
			t.Errorf("%d calls, lag %d, %v", calls, lag, err)
		}
	})
}

func TestFollowerThatWaitsForItsLeaseStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		storetest.MustWrite(t, s, "a")
		handled := make(chan string, 4)
		f := func(who string) follow.Follower {
			return follow.Follower{Name: "f", Batch: func(context.Context, []store.Change) ([]follow.Refusal, error) {
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
		storetest.MustWrite(t, s, "b")
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
		storetest.ExpectCode(t, follow.Run(t.Context(), s, follow.Follower{Name: name}), "invalid")
	}
}

func TestLagOfAFollowerThatNeverRanIsTheWholeLog(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.MustWrite(t, s, "a", "b")
	if lag, err := follow.Lag(t.Context(), s, "never"); lag != 2 || err != nil {
		t.Errorf("it lags by %d, %v", lag, err)
	}
	if aside, err := follow.FailedChanges(t.Context(), s); len(aside) != 0 || err != nil {
		t.Errorf("set aside: %v, %v", aside, err)
	}
	_, _, err := follow.Retry(t.Context(), s, "never")
	storetest.ExpectCode(t, err, "not_found")
	for range 2 {
		if changes, lanes, err := follow.Retry(t.Context(), s, ""); changes+lanes != 0 || err != nil {
			t.Error(changes, lanes, err)
		}
	}
}

func TestFollowersThatHaveNotReadAChangeAreNamed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	seq := storetest.Append(t, s, store.Change{Stream: "a", Kind: "note", ID: "1", Op: store.OpPut})
	storetest.Exec(t, s, fmt.Sprintf(`INSERT INTO followers (name, lane, position, updated_at)
		VALUES ('embed', '', %[1]d, 0), ('replica', '', %[2]d, 0), ('archive', 'shop', %[1]d, 0)`, seq-1, seq))
	for _, lanes := range [][]string{nil, {"other"}, {"other", "shop"}} {
		behind, err := follow.LaggingFollowers(t.Context(), s, seq, lanes...)
		want := []follow.LaggingFollower{{Follower: "embed", Changes: 1}}
		if len(lanes) == 2 {
			want = slices.Insert(want, 0, follow.LaggingFollower{Follower: "archive", Changes: 1})
		}
		if err != nil || !slices.Equal(behind, want) {
			t.Errorf("of %v: got %v %v, want %v", lanes, behind, err, want)
		}
	}
}
