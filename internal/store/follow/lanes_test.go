package follow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/follow"
	"cairn/internal/store/storetest"
)

// laned is a follower whose lanes are streams. It records its calls.
type laned struct {
	*store.Store
	mu    sync.Mutex
	turns []string                            // "lane:position", in the order in which they ended
	fail  map[string]error                    // by lane
	asked map[string]int                      // number of started turns
	quiet map[string]int                      // number of calls of Quiet
	rest  time.Duration                       // pause after a turn
	hold  func(ctx context.Context, l string) // called at the start of a turn
}

func newLaned(t *testing.T) *laned {
	return &laned{Store: storetest.Open(t, store.Config{}), fail: map[string]error{}, asked: map[string]int{}, quiet: map[string]int{}}
}

// follower returns a follower that handles the changes of each lane one by one. It sets aside
// those with the id "odd".
func (l *laned) follower() follow.Follower {
	return follow.Follower{Name: "f", Poll: time.Second, Lanes: &follow.Lanes{
		Of:     func(c store.Change) []string { return []string{c.Stream} },
		Behind: l.behind, Turn: l.turn, Retry: l.retry, Drain: 30 * time.Second, QuietAfter: 5 * time.Second,
		Rest: func(time.Duration, int64) time.Duration { return l.rest },
		Quiet: func(_ context.Context, lane string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.quiet[lane]++
		},
		Failed: func(string, error, time.Duration) {},
	}}
}

func (l *laned) changes(ctx context.Context, lane string) (out []store.Change, err error) {
	err = l.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		c, _, err := follow.CursorOf(ctx, tx, "f", lane)
		if err != nil {
			return err
		}
		all, err := tx.Changes(ctx, c.Position, 1000)
		out = slices.DeleteFunc(all, func(c store.Change) bool { return c.Stream != lane })
		return err
	})
	return out, err
}

func (l *laned) behind(ctx context.Context) (lanes []string, err error) {
	for _, lane := range []string{"a", "b"} {
		left, err := l.changes(ctx, lane)
		if err != nil {
			return nil, err
		}
		if len(left) > 0 {
			lanes = append(lanes, lane)
		}
	}
	return lanes, nil
}

func (l *laned) turn(ctx context.Context, lane string, _ <-chan struct{}) (follow.Turned, error) {
	l.mu.Lock()
	l.asked[lane]++
	fail, hold := l.fail[lane], l.hold
	l.mu.Unlock()
	if hold != nil {
		hold(ctx, lane)
	}
	if fail != nil || ctx.Err() != nil {
		return follow.Turned{}, errors.Join(fail, ctx.Err())
	}
	todo, err := l.changes(ctx, lane)
	for _, c := range todo {
		if err != nil {
			break
		}
		err = l.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
			if c.ID == "odd" {
				if err := follow.SetAside(ctx, tx, "f", lane, follow.Refusal{Seq: c.Seq, Err: errors.New("odd")}); err != nil {
					return err
				}
			}
			return follow.Advance(ctx, tx, "f", lane, follow.Cursor{Position: c.Seq, Mark: "m" + c.ID})
		})
		l.mu.Lock()
		l.turns = append(l.turns, fmt.Sprint(lane, ":", c.ID))
		l.mu.Unlock()
	}
	return follow.Turned{}, err
}

func (l *laned) retry(ctx context.Context, lane string, seqs []int64) error {
	for _, seq := range seqs {
		err := l.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.turns = append(l.turns, fmt.Sprint(lane, " again"))
			if l.fail["odd"] != nil {
				return follow.SetAside(ctx, tx, "f", lane, follow.Refusal{Seq: seq, Err: l.fail["odd"]})
			}
			return follow.Settle(ctx, tx, "f", seq)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *laned) add(t *testing.T, lane string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		storetest.Append(t, l.Store, store.Change{Stream: lane, Kind: "k", ID: id, Op: store.OpPut, Doc: []byte("{}")})
	}
}

// account returns the state of the lanes from Followers, as "lane position mark-less error
// attempts".
func (l *laned) account(t *testing.T) (out []string) {
	t.Helper()
	all, err := follow.Followers(t.Context(), l.Store)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		out = append(out, fmt.Sprintf("%s %d %q %d", p.Lane, p.Position, p.Error, p.Attempts))
	}
	return out
}

func (l *laned) expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// did returns the turns so far.
func (l *laned) did() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.turns)
}

// count returns the number for lane a.
func (l *laned) count(of map[string]int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return of["a"]
}

func TestAFailingLaneHoldsUpNoOtherAndIsAccountedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLaned(t)
		l.add(t, "a", "1")
		l.fail["a"] = errors.New("no room")
		stop := following(t, l.Store, l.follower())
		time.Sleep(10 * time.Minute)
		l.add(t, "b", "2")
		time.Sleep(2 * time.Second)
		l.expect(t, "turns", l.did(), "[b:2]")
		// 1, 2, 4 … 32 s and then a minute.
		if n := l.count(l.asked); n < 14 || n > 16 {
			t.Errorf("in ten minutes it was tried %d times", n)
		}
		l.expect(t, "the account", l.account(t), fmt.Sprintf(`[a 0 "no room" %d b 2 "" 0]`, l.count(l.asked)))
		all, err := follow.Followers(t.Context(), l.Store)
		if err != nil || all[0].NextTry <= all[0].Since || time.Unix(0, all[0].Since).After(time.Now().Add(-9*time.Minute)) {
			t.Errorf("%+v, %v", all[0], err)
		}
		stop()
		l.fail["a"] = nil
		stop = following(t, l.Store, l.follower())
		time.Sleep(time.Second)
		l.expect(t, "mended, by the next process", l.account(t), `[a 1 "" 0 b 2 "" 0]`)
		stop()
	})
}

func TestARetryIsSeenAtOnceByALaneThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLaned(t)
		l.add(t, "a", "1")
		l.fail["a"] = errors.New("no room")
		stop := following(t, l.Store, l.follower())
		defer stop()
		time.Sleep(10 * time.Minute)
		l.mu.Lock()
		l.fail["a"] = nil
		l.mu.Unlock()
		changes, lanes, err := follow.Retry(t.Context(), l.Store, "f")
		if changes != 0 || lanes != 1 || err != nil {
			t.Error(changes, lanes, err)
		}
		time.Sleep(2 * time.Second)
		l.expect(t, "turns", l.did(), "[a:1]")
	})
}

func TestWhatALaneSetAsideIsTriedWhenItIsDueAndWhenSomebodyWants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLaned(t)
		l.fail["odd"] = errors.New("still odd")
		l.add(t, "a", "1", "odd", "3")
		stop := following(t, l.Store, l.follower())
		defer stop()
		time.Sleep(59 * time.Second)
		l.expect(t, "before it is due", l.did(), "[a:1 a:odd a:3]")
		time.Sleep(5 * time.Second)
		l.expect(t, "when it is due", l.did(), "[a:1 a:odd a:3 a again]")
		aside, err := follow.FailedChanges(t.Context(), l.Store)
		if err != nil || len(aside) != 1 || aside[0].Lane != "a" || aside[0].Attempts != 2 || aside[0].Error != "still odd" ||
			time.Until(aside[0].NextTry) < time.Minute {
			t.Errorf("%+v, %v", aside, err)
		}
		l.mu.Lock()
		l.fail["odd"] = nil
		l.mu.Unlock()
		if changes, _, err := follow.Retry(t.Context(), l.Store, ""); changes != 1 || err != nil {
			t.Error(changes, err)
		}
		time.Sleep(2 * time.Second)
		if aside, err := follow.FailedChanges(t.Context(), l.Store); len(aside) > 0 || err != nil {
			t.Errorf("%+v, %v", aside, err)
		}
	})
}

func TestAStopEndsARestAndLetsLanesFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLaned(t)
		l.rest = time.Hour
		l.add(t, "a", "1")
		stop := following(t, l.Store, l.follower())
		time.Sleep(time.Second)
		l.add(t, "a", "2") // while it pauses
		time.Sleep(time.Minute)
		l.expect(t, "while it rests", l.did(), "[a:1]")
		stop()
		l.expect(t, "after the stop", l.did(), "[a:1 a:2]")
	})
}

func TestAStopGivesALaneThatHangsALimitedTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLaned(t)
		l.hold = func(ctx context.Context, _ string) { <-ctx.Done() }
		l.add(t, "a", "1")
		stop := following(t, l.Store, l.follower())
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("it was given %v", took)
		}
		l.expect(t, "the account", l.account(t), "[]") // a stop is not a failure
	})
}

func TestAQuietLaneIsToldSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLaned(t)
		l.add(t, "a", "1")
		stop := following(t, l.Store, l.follower())
		time.Sleep(20 * time.Second)
		l.expect(t, "after 5 s", l.count(l.quiet), 1)
		l.add(t, "a", "2")
		time.Sleep(20 * time.Second)
		l.expect(t, "after the next turn", l.count(l.quiet), 2)
		stop()
		l.expect(t, "at the end", l.count(l.quiet), 3)
	})
}

// TestOneProcessRunsTheLanesAndAnotherTakesOver also stops a process before its turn. Its last
// work depends on whether another process runs the lanes.
func TestOneProcessRunsTheLanesAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLaned(t)
		l.add(t, "a", "1")
		stopOne := following(t, l.Store, l.follower())
		time.Sleep(time.Second)
		if !follow.IsFollowed(t.Context(), l.Store, "f") || follow.IsFollowed(t.Context(), l.Store, "g") {
			t.Error("f is followed, and g is not")
		}
		stopTwo := following(t, l.Store, l.follower())
		l.add(t, "b", "2")
		time.Sleep(time.Minute)
		l.expect(t, "each change is handled once", l.did(), "[a:1 b:2]")
		stopOne()
		l.add(t, "a", "3")
		time.Sleep(2 * time.Second)
		l.expect(t, "by the second process", l.did(), "[a:1 b:2 a:3]")
		stopTwo()
		l.add(t, "a", "4")
		ended, end := context.WithCancel(t.Context())
		end()
		if err := follow.Run(ended, l.Store, l.follower()); err != nil {
			t.Error(err)
		}
		l.expect(t, "by one that stops at once", l.did(), "[a:1 b:2 a:3 a:4]")
	})
}

func TestALaneThatMovesTakesItsAccountAlong(t *testing.T) {
	t.Parallel()
	l := newLaned(t)
	l.add(t, "a", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	for range 2 { // it is idempotent
		err := l.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			for lane, position := range map[string]int64{"from": 5, "into": 9, "other": 3} {
				if err := follow.Advance(ctx, tx, "f", lane, follow.Cursor{Position: position, Mark: lane}); err != nil {
					return err
				}
			}
			if err := follow.SetAside(ctx, tx, "f", "from", follow.Refusal{Seq: 1}); err != nil {
				return err
			}
			if err := follow.MoveLane(ctx, tx, "f", "from", "into"); err != nil {
				return err
			}
			if err := follow.MoveLane(ctx, tx, "f", "nobody", "other"); err != nil {
				return err
			}
			c, _, err := follow.CursorOf(ctx, tx, "f", "into")
			l.expect(t, "the cursor", c.Mark, "from")
			aside, aerr := follow.AsideIn(ctx, tx, "f", "into")
			l.expect(t, "set aside", len(aside), 1)
			return errors.Join(err, aerr)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := l.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		return follow.KeepLanes(ctx, tx, "f", []string{"other"})
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := follow.Followers(t.Context(), l.Store)
	aside, aerr := follow.FailedChanges(t.Context(), l.Store)
	if len(all) != 1 || all[0].Lane != "other" || len(aside) > 0 || errors.Join(err, aerr) != nil {
		t.Errorf("%+v, %+v, %v", all, aside, errors.Join(err, aerr))
	}
}
