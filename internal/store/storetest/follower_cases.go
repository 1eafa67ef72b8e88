package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/follow"
)

func (r *rig) resumes(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 10)
	if b.waits(t) == 0 {
		t.Error("before it has run nothing waits")
	}
	var newest atomic.Int64 // the last change that the first run handled
	b.startAndFinish(t, func(changes []store.Change) {
		if len(changes) > 0 {
			newest.Store(changes[len(changes)-1].Seq)
		}
	})
	path := b.s.Path()
	if err := b.s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	b.s = Open(t, store.Config{Path: path, Clock: b.clock.Now})
	b.write(t, 5)
	if b.waits(t) == 0 {
		t.Error("after five more rows nothing waits")
	}
	b.startAndFinish(t, func(changes []store.Change) {
		if len(changes) > 0 && changes[0].Seq <= newest.Load() {
			t.Errorf("change %d was handled again, and the first run had reached %d", changes[0].Seq, newest.Load())
		}
	})
	b.sameAsUndisturbed(t)
}

// startAndFinish runs the follower until no work is left, and calls seen with the
// changes.
func (b *sandbox) startAndFinish(t *testing.T, seen func(changes []store.Change)) {
	t.Helper()
	r := b.start(t, func(_ context.Context, changes []store.Change) error {
		seen(changes)
		return nil
	})
	b.done(t)
	r.finish(t)
}

// killedAfterWork kills the follower after it has worked and before it returns.
func (r *rig) killedAfterWork(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 8)
	child := b.child(t, roleDieAfterWork, 0)
	child.Expect(t, "start")
	child.Expect(t, "begin")
	child.Expect(t, "end")
	if left, err := child.Wait(t); err == nil || len(left) > 0 {
		t.Fatalf("the child was to die: %v %q", err, left)
	}
	b.toldTrue(t)
	b.catchUp(t)
	b.sameAsUndisturbed(t)
}

// toldTrue fails the test if the follower reports no remaining work although a result is
// missing.
func (b *sandbox) toldTrue(t *testing.T) {
	t.Helper()
	if b.waits(t) == 0 {
		b.sameAsUndisturbed(t)
	}
}

func (r *rig) killedAnywhere(t *testing.T) {
	b := r.sandbox(t)
	typical := 20 * time.Millisecond
	for round := range 6 {
		b.write(t, 7)
		child := b.child(t, roleFollow, 0)
		child.Expect(t, "start")
		began := time.Now()
		if round == 0 { // measure the duration of an undisturbed run
			b.done(t)
			typical = time.Since(began)
		} else {
			<-time.After(rand.N(typical + typical/4)) // a random instant
		}
		child.Kill()
		b.toldTrue(t)
	}
	b.catchUp(t)
	b.sameAsUndisturbed(t)
}

func (r *rig) takesOver(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 2)
	one := b.child(t, roleFollow, 0)
	one.Expect(t, "start")
	b.done(t)
	two := b.child(t, roleFollow, 0)
	two.Expect(t, "start")
	b.write(t, 1)
	b.done(t)
	one.Kill()
	b.write(t, 1)
	b.done(t) // from the second round on
	two.Kill()
	b.catchUp(t)
	b.sameAsUndisturbed(t)
}

func (r *rig) stops(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 2)
	entered, stopped := make(chan struct{}), make(chan struct{})
	first := true
	run := b.start(t, func(ctx context.Context, _ []store.Change) error {
		if !first {
			return nil
		}
		first = false
		close(entered)
		<-stopped
		return ctx.Err()
	})
	<-entered
	run.stop()
	close(stopped)
	run.finish(t)
	if waits := b.waits(t); waits != 0 {
		t.Errorf("the work that was stopped has left a lag of %d", waits)
	}
	b.sameAsUndisturbed(t)
}

func (r *rig) fails(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 2)
	waits := b.waits(t)
	calls := 0
	run := b.start(t, func(context.Context, []store.Change) error {
		calls++
		if now := b.waits(t); calls < 3 && now != waits {
			t.Errorf("at call %d %d wait, want %d", calls, now, waits)
		}
		switch calls {
		case 1:
			return errors.New("out of order")
		case 2:
			b.expectFailure(t, "out of order")
			panic("defect")
		case 3:
			b.expectFailure(t, "defect")
		}
		return nil
	})
	b.done(t)
	run.finish(t)
	if left := b.waits(t); calls < 3 || left != 0 || len(b.aside(t)) != 0 {
		t.Errorf("after %d calls it lags by %d and has set aside %v", calls, left, b.aside(t))
	}
	b.expectFailure(t, "")
	b.sameAsUndisturbed(t)
}

// expectFailure fails the test unless the follower has exactly one failure, with this text.
// For "" it fails the test if there is a failure.
func (b *sandbox) expectFailure(t testing.TB, what string) {
	t.Helper()
	all, err := follow.Followers(t.Context(), b.s)
	if err != nil {
		t.Errorf("the account: %v", err)
	}
	all = slices.DeleteFunc(all, func(p follow.Progress) bool { return p.Error == "" })
	if what == "" && len(all) == 0 {
		return
	}
	if what == "" || len(all) != 1 || !strings.Contains(all[0].Error, what) || all[0].Attempts == 0 || all[0].Since == 0 || all[0].NextTry < all[0].Since {
		t.Errorf("the failures are %+v, want %q", all, what)
	}
}

// repairsByPerson tests a row that the follower itself refuses and does not retry until the
// user requests it.
func (r *rig) repairsByPerson(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 2)
	b.subject.Refused(t, b.s)
	b.write(t, 2)
	b.catchUp(t)
	all := b.aside(t)
	if len(all) != 1 || all[0].Error == "" || all[0].Attempts != 1 || !all[0].NextTry.IsZero() || all[0].Since.After(b.clock.Now()) {
		t.Fatalf("set aside are %+v, want the refused change with its error", all)
	}
	b.subject.Repair(t, b.dir)
	b.repaired = true
	if changes, lanes, err := follow.Retry(t.Context(), b.s, all[0].Follower); changes != 0 || lanes != 0 || err != nil {
		t.Errorf("made due without a person: %d changes, %d lanes, %v", changes, lanes, err)
	}
	b.catchUp(t)
	if again := b.aside(t); len(again) != 1 || again[0] != all[0] {
		t.Errorf("after another start set aside are %+v, want %+v", again, all)
	}
	run := b.start(t, nil)
	b.subject.Retry(t, b.s)
	until(t, "it is handled once repaired", func() bool { return len(b.aside(t)) == 0 })
	b.done(t)
	run.finish(t)
	b.sameAsUndisturbed(t)
}

// repairs tests a row that the follower itself refuses.
func (r *rig) repairs(t *testing.T) {
	if r.subject.Retry != nil {
		r.repairsByPerson(t)
		return
	}
	b := r.sandbox(t)
	b.write(t, 2)
	b.subject.Refused(t, b.s)
	b.write(t, 2)
	b.catchUp(t)
	all := b.aside(t)
	if len(all) != 1 || all[0].Error == "" || all[0].Attempts < 1 || !all[0].NextTry.After(b.clock.Now()) || all[0].Since.After(b.clock.Now()) {
		t.Fatalf("set aside are %+v, want the refused change with its error", all)
	}
	b.catchUp(t) // a start retries it
	if again := b.aside(t); len(again) != 1 || again[0].Seq != all[0].Seq || !again[0].Since.Equal(all[0].Since) {
		t.Errorf("refused again, set aside are %+v", again)
	}
	run := b.start(t, nil)
	until(t, "the start's try is over", func() bool {
		left := b.aside(t)
		return len(left) == 1 && left[0].Attempts >= 2 && left[0].NextTry.After(b.clock.Now())
	})
	b.subject.Repair(t, b.dir)
	b.repaired = true
	if changes, _, err := follow.Retry(t.Context(), b.s, all[0].Follower); err != nil || changes != 1 {
		t.Fatalf("retry: %d, %v", changes, err)
	}
	until(t, "it is handled once repaired", func() bool { return len(b.aside(t)) == 0 })
	run.finish(t)
	b.sameAsUndisturbed(t)
}

func (r *rig) wakes(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 1)
	b.start(t, nil, func(f *follow.Follower) { f.Poll = time.Hour })
	b.done(t)
	for range 4 {
		b.write(t, 1)
		b.done(t)
	}
}

func (r *rig) sees(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 1)
	b.start(t, nil)
	b.done(t)
	writer := b.child(t, roleWrite, 2)
	if _, err := writer.Wait(t); err != nil {
		t.Fatalf("the writing child: %v", err)
	}
	b.done(t)
	b.sameAsUndisturbed(t)
}
