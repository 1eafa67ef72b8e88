package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cairn/internal/store"
)

func (r *rig) resumes(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 10)
	if lag := b.lag(t); lag != b.head(t) {
		t.Errorf("before it ever ran it lags by %d of %d", lag, b.head(t))
	}
	first := b.start(t, b.follower(t))
	gapless(t, first.until(t, 10), 1, 10)
	first.finish(t)

	path := b.s.Path()
	if err := b.s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	b.s = Open(t, store.Config{Path: path, Clock: b.clock.Now})
	b.write(t, 5)
	if lag := b.lag(t); lag != 5 {
		t.Errorf("it lags by %d, want 5", lag)
	}
	second := b.start(t, b.follower(t))
	gapless(t, second.until(t, 15), 11, 15)
	second.finish(t)
	if lag := b.lag(t); lag != 0 {
		t.Errorf("having handled everything it lags by %d", lag)
	}
	b.sameAsUndisturbed(t)
}

func (r *rig) killedBetween(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 8) // batches 1–3, 4–6, 7–8
	child := b.child(t, roleDieAfterBatch, 5)
	child.Expect(t, "start")
	child.Expect(t, "begin 1 3")
	child.Expect(t, "end 1 3")
	child.Expect(t, "begin 4 6")
	child.Expect(t, "end 4 6")
	if left, err := child.Wait(t); err == nil || len(left) > 0 {
		t.Fatalf("the child was to die: %v %q", err, left)
	}
	if lag := b.lag(t); lag != 5 {
		t.Errorf("killed before the second position was stored, it lags by %d, want 5", lag)
	}
	again := b.start(t, b.follower(t))
	gapless(t, again.until(t, 8), 4, 8)
	again.finish(t)
	b.sameAsUndisturbed(t)
}

func (r *rig) killedAnywhere(t *testing.T) {
	b := r.sandbox(t)
	handled := int64(0)
	for range 5 {
		b.write(t, 7)
		child := b.child(t, roleFollow, 0)
		child.Expect(t, "start")
		for range 1 + rand.IntN(6) { // 3 batches begin and end
			line, ok := child.Line(t)
			if !ok {
				t.Fatal("the child ended by itself")
			}
			handled = b.follows(t, line, handled)
			if handled == b.head(t) {
				break
			}
		}
		if err := child.Signal(); err != nil {
			t.Fatalf("kill the child: %v", err)
		}
		for {
			line, ok := child.Line(t)
			if !ok {
				break
			}
			handled = b.follows(t, line, handled)
		}
	}
	b.catchUp(t)
	b.sameAsUndisturbed(t)
}

// follows checks that a child's batch leaves no gap behind what was handled, and
// returns the new end of that.
func (b *sandbox) follows(t testing.TB, line string, handled int64) int64 {
	t.Helper()
	var word string
	var first, last int64
	if _, err := fmt.Sscan(line, &word, &first, &last); err != nil {
		t.Fatalf("the child sent %q: %v", line, err)
	}
	if first > handled+1 {
		t.Errorf("a batch begins at %d, though only %d changes were handled", first, handled)
	}
	if word == "end" {
		handled = max(handled, last)
	}
	return handled
}

func (r *rig) takesOver(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 2)
	one := b.child(t, roleFollow, 0)
	one.Expect(t, "start")
	one.Expect(t, "begin 1 2")
	one.Expect(t, "end 1 2")
	two := b.child(t, roleFollow, 0)
	two.Expect(t, "start")
	b.write(t, 1)
	one.Expect(t, "begin 3 3") // the lease is the first one's
	one.Expect(t, "end 3 3")
	b.write(t, 1)
	one.Expect(t, "begin 4 4") // and now it has stored 3
	one.Expect(t, "end 4 4")
	one.Kill()
	b.write(t, 1)
	line, _ := two.Line(t) // 4 again, if its position was not stored; 5 may come a moment later
	if line != "begin 4 4" && line != "begin 4 5" && line != "begin 5 5" {
		t.Errorf("the second process sent %q, want it to go on where the first was", line)
	}
	two.Kill()
	b.catchUp(t)
	b.sameAsUndisturbed(t)
}

func (r *rig) stops(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 2)
	f := b.follower(t)
	inner, entered, stopped := f.Batch, make(chan struct{}), make(chan struct{})
	f.Batch = func(ctx context.Context, changes []store.Change) ([]store.Refusal, error) {
		close(entered)
		<-stopped
		if ctx.Err() != nil {
			t.Errorf("the stop has ended the batch's context")
		}
		return inner(ctx, changes)
	}
	run := b.start(t, f)
	<-entered
	run.stop()
	close(stopped)
	run.finish(t)
	if lag := b.lag(t); lag != 0 {
		t.Errorf("the batch that was stopped has left a lag of %d", lag)
	}
	b.sameAsUndisturbed(t)
}

func (r *rig) fails(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 2)
	f := b.follower(t)
	inner, calls := f.Batch, 0
	f.Batch = func(ctx context.Context, changes []store.Change) ([]store.Refusal, error) {
		calls++
		gapless(t, changes, 1, 2)
		if lag := b.lag(t); lag != 2 {
			t.Errorf("at call %d it lags by %d, want 2", calls, lag)
		}
		refused, err := inner(ctx, changes)
		switch calls {
		case 1:
			return refused, errors.Join(err, errors.New("out of order"))
		case 2:
			panic("defect")
		}
		return refused, err
	}
	run := b.start(t, f)
	run.until(t, 2)
	run.finish(t)
	if lag := b.lag(t); calls != 3 || lag != 0 || len(b.aside(t)) != 0 {
		t.Errorf("after %d calls it lags by %d and has set aside %v", calls, lag, b.aside(t))
	}
	b.sameAsUndisturbed(t)
}

func (r *rig) refuses(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 8)
	f := b.follower(t)
	inner, tries, tried := f.Batch, 0, make(chan int, 8)
	f.Batch = func(ctx context.Context, changes []store.Change) ([]store.Refusal, error) {
		i := slices.IndexFunc(changes, func(c store.Change) bool { return c.Seq == 2 })
		if i < 0 {
			return inner(ctx, changes)
		}
		tries++
		tried <- tries
		switch tries {
		case 1, 2:
			refused, err := inner(ctx, slices.Delete(slices.Clone(changes), i, i+1))
			return append(refused, store.Refusal{Seq: 2, Err: fmt.Errorf("try %d", tries)}), err
		case 3:
			return nil, errors.New("try 3")
		}
		return inner(ctx, changes)
	}
	for try := 1; try <= 4; try++ {
		run := b.start(t, f)
		if got := await(t, tried); got != try {
			t.Fatalf("try %d came, want %d", got, try)
		}
		b.write(t, 1)
		run.until(t, b.head(t)) // so the try has been noted, too
		run.finish(t)
		if lag := b.lag(t); lag != 0 {
			t.Errorf("the refused change holds up %d", lag)
		}
		if try < 4 {
			b.expectAside(t, 2, fmt.Sprint("try ", try), try)
		}
		b.clock.Move(time.Hour)
	}
	if left := b.aside(t); len(left) > 0 {
		t.Errorf("handled at last, it is still set aside: %v", left)
	}
	b.sameAsUndisturbed(t)
}

// expectAside fails the test unless one change is set aside, in this way.
func (b *sandbox) expectAside(t testing.TB, seq int64, message string, attempts int) {
	t.Helper()
	all := b.aside(t)
	if len(all) != 1 {
		t.Fatalf("set aside are %v, want one", all)
	}
	a := all[0]
	wait := a.NextTry.Sub(b.clock.Now())
	if a.Seq != seq || a.Error != message || a.Attempts != attempts || wait <= 0 || wait > time.Hour {
		t.Errorf("set aside is %+v, in %v; want seq %d, %q, attempt %d, within the hour", a, wait, seq, message, attempts)
	}
}

// mends is about a change that the follower itself refuses.
func (r *rig) mends(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 2)
	if err := b.s.Write(t.Context(), store.Normal, b.subject.Refused); err != nil {
		t.Fatalf("write what is refused: %v", err)
	}
	b.write(t, 2)
	b.catchUp(t)
	all := b.aside(t)
	if len(all) != 1 || all[0].Seq != 3 || all[0].Error == "" {
		t.Fatalf("set aside are %+v, want change 3 with its error", all)
	}
	b.subject.Mend(t, b.dir)
	if _, _, err := b.s.Retry(t.Context(), all[0].Follower); err != nil {
		t.Fatalf("retry: %v", err)
	}
	run := b.start(t, b.follower(t))
	if again := run.batch(t); len(again) != 1 || again[0].Seq != 3 {
		t.Errorf("retried were %v, want 3", seqs(again))
	}
	run.finish(t)
	if left := b.aside(t); len(left) > 0 {
		t.Errorf("mended and retried, it is still set aside: %+v", left)
	}
}

func (r *rig) wakes(t *testing.T) {
	b := r.sandbox(t)
	f := b.follower(t)
	f.Poll = time.Hour
	b.write(t, 1)
	run := b.start(t, f)
	run.until(t, 1)
	for seq := int64(2); seq < 5; seq++ {
		b.write(t, 1)
		run.until(t, seq)
	}
}

func (r *rig) sees(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 1)
	run := b.start(t, b.follower(t))
	run.until(t, 1)
	writer := b.child(t, roleWrite, 2)
	if _, err := writer.Wait(t); err != nil {
		t.Fatalf("the writing child: %v", err)
	}
	gapless(t, run.until(t, 4), 2, 4)
}

// live is about a live follower, of which two run here.
func (r *rig) live(t *testing.T) {
	b := r.sandbox(t)
	b.write(t, 3)
	one := b.start(t, b.follower(t))
	two := b.start(t, b.follower(t))
	for _, run := range []*run{one, two} {
		var first []store.Change
		for deadline := time.Now().Add(patience); first == nil; { // it begins when it begins
			if time.Now().After(deadline) {
				t.Fatalf("the follower saw nothing for %v", patience)
			}
			b.write(t, 1)
			select {
			case first = <-run.seen:
			default:
			}
		}
		if first[0].Seq <= 3 {
			t.Errorf("it began with %v, which was there before it", seqs(first))
		}
		if head := b.head(t); first[len(first)-1].Seq < head {
			gapless(t, append(first, run.until(t, head)...), first[0].Seq, head)
		}
	}
	one.finish(t)
	two.finish(t)
	var rows int
	err := b.s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&rows}, "SELECT (SELECT count(*) FROM followers) + (SELECT count(*) FROM set_aside)")
	})
	if err != nil || rows != 0 {
		t.Errorf("live followers stored %d rows, %v", rows, err)
	}
}

// await receives what must come.
func await[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("nothing happened for %v", patience)
	}
	return v
}
