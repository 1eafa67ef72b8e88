package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// gate starts a write that runs until open is called, so that others queue after it. It
// needs a synctest bubble.
func gate(t *testing.T, s *store.Store) (open func()) {
	entered, opened, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- s.Write(t.Context(), store.Normal, func(context.Context, *store.Tx) error {
			close(entered)
			<-opened
			return nil
		})
	}()
	<-entered
	return func() {
		close(opened)
		if err := <-done; err != nil {
			t.Errorf("the write in front: %v", err)
		}
	}
}

type closure = func(context.Context, *store.Tx) error

// together runs closures in one shared commit and returns their results.
func together(t *testing.T, s *store.Store, all ...closure) []error {
	t.Helper()
	results := make([]error, len(all))
	open := gate(t, s)
	var wg sync.WaitGroup
	for i, fn := range all {
		wg.Go(func() { results[i] = s.Write(t.Context(), store.Normal, fn) })
		synctest.Wait() // queued, in this order
	}
	open()
	wg.Wait()
	return results
}

func note(id string) closure {
	return func(ctx context.Context, tx *store.Tx) error { return storetest.Note(ctx, tx, id) }
}

// then returns a closure that stores a note with the id and then runs fn.
func then(id string, fn closure) closure {
	return func(ctx context.Context, tx *store.Tx) error {
		if err := storetest.Note(ctx, tx, id); err != nil {
			return err
		}
		return fn(ctx, tx)
	}
}

func TestConcurrentWritersShareCommitsAndOneErrorAffectsNoOther(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	refuse := errors.New("refused")
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			err := s.Write(t.Context(), store.Sync(i%2), then(fmt.Sprint("a", i), func(context.Context, *store.Tx) error {
				switch i % 10 {
				case 3:
					return refuse
				case 4:
					panic("defect")
				}
				return nil
			}))
			switch {
			case i%10 == 3 && !errors.Is(err, refuse):
				t.Errorf("write %d: %v", i, err)
			case i%10 == 4 && storetest.CodeOf(err) != "internal":
				t.Errorf("write %d: %v", i, err)
			case i%10 != 3 && i%10 != 4 && err != nil:
				t.Errorf("write %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	changes := storetest.Changes(t, s)
	if len(changes) != 160 {
		t.Fatalf("%d changes", len(changes))
	}
	for i, c := range changes {
		if c.DeviceSeq != int64(i+1) {
			t.Fatalf("change %d has number %d", i, c.DeviceSeq)
		}
	}
}

func TestEachOfASharedCommitGetsItsOwnResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		refused := errors.New("refused")
		results := together(t, s,
			note("a"),
			then("b", func(context.Context, *store.Tx) error { return refused }),
			then("c", func(context.Context, *store.Tx) error { panic("defect") }),
			then("d", func(ctx context.Context, tx *store.Tx) error { // an error that does not end the transaction
				_, err := tx.Exec(ctx, "INSERT INTO symbols (id, text) SELECT id, text FROM symbols")
				if err == nil {
					t.Error("a duplicate was stored")
				}
				return nil
			}),
			note("e"),
		)
		if results[0] != nil || !errors.Is(results[1], refused) || storetest.CodeOf(results[2]) != "internal" || results[3] != nil || results[4] != nil {
			t.Errorf("results: %v", results)
		}
		storetest.ExpectIDs(t, s, "a", "d", "e")
		if got := together(t, s, then("f", func(context.Context, *store.Tx) error { return refused }), note("g")); got[1] != nil {
			t.Errorf("after a first that failed: %v", got)
		}
		storetest.ExpectIDs(t, s, "a", "d", "e", "g")

		storetest.MustWrite(t, s, "x", "b", "c", "f") // words of rolled-back closures must not count as stored
		for _, c := range storetest.Changes(t, s) {
			if c.Stream != "notes/"+c.ID {
				t.Errorf("%s is in stream %s", c.ID, c.Stream)
			}
		}
	})
}

func TestPanicIsReportedWithItsPlace(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	err := s.Write(t.Context(), store.Full, func(context.Context, *store.Tx) error { panic("defect") })
	if cause := errors.Unwrap(fault.As(err)); cause == nil || !strings.Contains(cause.Error(), "write_test.go") {
		t.Errorf("the cause is %v", cause)
	}
	if strings.Contains(err.Error(), "write_test.go") {
		t.Errorf("the user is shown %v", err)
	}
}

// A test's own t.FailNow does this to a closure.
func TestClosureThatEndsItsGoroutineBlocksNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		open := gate(t, s)
		results := make([]error, 2)
		var wg sync.WaitGroup
		wg.Go(func() {
			results[0] = errors.New("did not return")
			results[0] = s.Write(t.Context(), store.Full, then("a", func(context.Context, *store.Tx) error {
				runtime.Goexit()
				return nil
			}))
		})
		synctest.Wait()
		wg.Go(func() { results[1] = s.Write(t.Context(), store.Full, note("b")) })
		synctest.Wait()
		open()
		wg.Wait()
		storetest.MustWrite(t, s, "c")
		if got := storetest.IDs(t, s); slices.Contains(got, "a") || (results[1] == nil) != slices.Contains(got, "b") || !slices.Contains(got, "c") {
			t.Errorf("the log holds %q, results %v", got, results)
		}
	})
}

func TestCallerThatLeavesWhileQueuedDoesNotWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		open := gate(t, s)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- s.Write(ctx, store.Full, note("left")) }()
		synctest.Wait()
		stays := make(chan error)
		go func() { stays <- s.Write(t.Context(), store.Full, note("stays")) }()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that left got %v", err)
		}
		unaware := &leaving{Context: t.Context()} // the caller has left, but has not withdrawn its write yet
		unaware.looks.Store(1)
		go func() { left <- storetest.Write(unaware, s, store.Full, "unaware") }()
		synctest.Wait()
		open()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that left unaware got %v", err)
		}
		if err := <-stays; err != nil {
			t.Errorf("the caller that stayed got %v", err)
		}
		if err := s.Write(ctx, store.Full, note("late")); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that had left before got %v", err)
		}
		storetest.ExpectIDs(t, s, "stays")
	})
}

func TestCallerThatLeavesWhileItsWriteRunsGetsTheResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		ctx, leave := context.WithCancel(t.Context())
		err := s.Write(ctx, store.Full, func(inner context.Context, tx *store.Tx) error {
			leave()
			if inner.Err() != nil {
				t.Error("the closure's context has ended")
			}
			return storetest.Note(ctx, tx, "a") // with the ended one
		})
		if err != nil {
			t.Errorf("led by its caller: %v", err)
		}

		open := gate(t, s)
		ctx, leave = context.WithCancel(t.Context())
		first, second := make(chan error), make(chan error)
		go func() { first <- s.Write(t.Context(), store.Full, note("b")) }()
		synctest.Wait()
		go func() {
			second <- s.Write(ctx, store.Full, func(_ context.Context, tx *store.Tx) error {
				leave()
				return storetest.Note(ctx, tx, "c")
			})
		}()
		synctest.Wait()
		open()
		if err := errors.Join(<-first, <-second); err != nil {
			t.Errorf("run by another: %v", err)
		}
		storetest.ExpectIDs(t, s, "a", "b", "c")
	})
}

// leaving is a context that ends at its n-th check.
type leaving struct {
	context.Context
	looks atomic.Int32
}

func (l *leaving) Err() error {
	if l.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// The caller that leads a shared commit may also leave.
func TestCallerThatLeavesAtAnyPointWritesAtomically(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		var want []string
		whole := 0
		for looks := range int32(12) {
			ctx, id := &leaving{Context: t.Context()}, fmt.Sprint("n", looks)
			ctx.looks.Store(looks)
			open := gate(t, s)
			first, second := make(chan error), make(chan error)
			go func() { first <- storetest.Write(ctx, s, store.Full, id, id+"+") }()
			synctest.Wait()
			go func() { second <- storetest.Write(t.Context(), s, store.Full, id+" stays") }()
			synctest.Wait()
			open()
			switch err := <-first; {
			case err == nil:
				want = append(want, id, id+"+")
				whole++
			case !errors.Is(err, context.Canceled):
				t.Errorf("leaving at look %d: %v", looks, err)
			}
			if err := <-second; err != nil {
				t.Errorf("the neighbour of one leaving at look %d: %v", looks, err)
			}
			want = append(want, id+" stays")
		}
		if whole == 0 || whole == 12 {
			t.Errorf("%d of 12 were stored: the test does not meet both cases", whole)
		}
		storetest.ExpectIDs(t, s, want...)
	})
}

func TestMoreThan4096WaitingWritesAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		open := gate(t, s)
		ctx, leave := context.WithCancel(t.Context())
		var refused, stored, left atomic.Int32
		var wg sync.WaitGroup
		submit := func(ctx context.Context, id string) {
			wg.Go(func() {
				switch err := s.Write(ctx, store.Normal, note(id)); {
				case err == nil:
					stored.Add(1)
				case errors.Is(err, context.Canceled):
					left.Add(1)
				case fault.HasCode(err, store.CodeOverloaded) && fault.KindOf(err) == fault.Unavailable:
					refused.Add(1)
				default:
					t.Errorf("%s: %v", id, err)
				}
			})
		}
		for n := range 4096 {
			if n < 10 {
				submit(ctx, fmt.Sprint("leaves", n))
			} else {
				submit(t.Context(), fmt.Sprint("waits", n))
			}
		}
		synctest.Wait()
		for n := range 20 {
			submit(t.Context(), fmt.Sprint("surplus", n))
		}
		synctest.Wait()
		if got := refused.Load(); got != 20 {
			t.Errorf("%d of 20 surplus writes were refused", got)
		}
		leave() // this frees ten places in the queue
		synctest.Wait()
		for n := range 12 {
			submit(t.Context(), fmt.Sprint("successor", n))
		}
		synctest.Wait()
		open()
		wg.Wait()
		if refused.Load() != 22 || left.Load() != 10 || stored.Load() != 4096 || len(storetest.IDs(t, s)) != 4096 {
			t.Errorf("refused %d, left %d, stored %d, in the log %d", refused.Load(), left.Load(), stored.Load(), len(storetest.IDs(t, s)))
		}
	})
}

func TestCloseFinishesWhatWasAcceptedAndRefusesTheRest(t *testing.T) {
	t.Parallel()
	for range 5 {
		path := storetest.Path(t)
		s, err := open(t.Context(), store.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		var acknowledged atomic.Int32
		var wg sync.WaitGroup
		busy := make(chan struct{}, 1)
		for g := range 40 {
			wg.Go(func() {
				for n := 0; ; n++ {
					var err error
					if g%4 == 0 {
						err = s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
							_, err := tx.Head(ctx)
							return err
						})
					} else if err = storetest.Write(t.Context(), s, store.Sync(n%2), fmt.Sprintf("%d-%d", g, n)); err == nil && acknowledged.Add(1) == 200 {
						busy <- struct{}{}
					}
					if fault.HasCode(err, store.CodeClosed) {
						return
					}
					if err != nil {
						t.Errorf("got %v", err)
						return
					}
				}
			})
		}
		<-busy
		var closing sync.WaitGroup
		for range 3 {
			closing.Go(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		}
		closing.Wait()
		storetest.ExpectCode(t, storetest.Write(t.Context(), s, store.Full, "late"), store.CodeClosed)
		storetest.ExpectCode(t, s.Read(t.Context(), func(context.Context, *store.Tx) error { return nil }), store.CodeClosed)
		wg.Wait()
		if got := len(storetest.IDs(t, storetest.Open(t, store.Config{Path: path}))); got != int(acknowledged.Load()) {
			t.Errorf("%d writes acknowledged, %d in the log", acknowledged.Load(), got)
		}
	}
}

func TestErrorInCommitReachesAllAndStoresNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		storetest.Exec(t, s, "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
			"CREATE TABLE child (parent INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)")
		orphan := func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO child VALUES (7)")
			return err
		}
		refused := errors.New("refused")
		refuse := func(context.Context, *store.Tx) error { return refused }
		for i, err := range together(t, s, refuse, note("a"), then("b", orphan), refuse, note("c")) {
			if i == 0 { // before another closure had written; a later one may be refused because of rows that were never stored
				if !errors.Is(err, refused) {
					t.Errorf("a refusal of its own: %v", err)
				}
				continue
			}
			if f := fault.As(err); f == nil || !strings.Contains(f.Message, "FOREIGN KEY") {
				t.Errorf("write %d: %v", i, err)
			}
		}
		if err := s.Write(t.Context(), store.Full, then("d", orphan)); err == nil {
			t.Error("alone it was stored")
		}
		storetest.MustWrite(t, s, "e")
		storetest.ExpectIDs(t, s, "e")
		storetest.Exec(t, s, "DROP TABLE child", "DROP TABLE parent")
	})
}

func TestClockThatStepsBackBreaksNothing(t *testing.T) {
	t.Parallel()
	clock := &storetest.Clock{}
	clock.Move(1_700_000_000 * time.Second)
	s := storetest.Open(t, store.Config{Clock: clock.Now})
	var want []string
	for n := range 6 {
		want = append(want, fmt.Sprint("n", n))
		storetest.MustWrite(t, s, want[n])
		clock.Move(-time.Duration(n) * time.Hour)
	}
	storetest.ExpectIDs(t, s, want...)
	changes := storetest.Changes(t, s)
	if changes[5].At >= changes[2].At {
		t.Error("the changes do not carry the clock's times")
	}
}
