package store_test

import (
	"context"
	"database/sql"
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

// gate is a write that has begun and stays until it is opened, so that others
// queue behind it. It needs a synctest bubble.
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

// then runs a closure after a note of an id.
func then(id string, fn closure) closure {
	return func(ctx context.Context, tx *store.Tx) error {
		if err := storetest.Note(ctx, tx, id); err != nil {
			return err
		}
		return fn(ctx, tx)
	}
}

func ddl(t testing.TB, s *store.Store, queries ...string) {
	t.Helper()
	err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for _, q := range queries {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestConcurrentWritersShareCommitsAndOneErrorHurtsNobodyElse(t *testing.T) {
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
			case i%10 == 4 && codeOf(err) != "internal":
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
			then("d", func(ctx context.Context, tx *store.Tx) error { // an error it can live with
				_, err := tx.Exec(ctx, "INSERT INTO symbols (id, text) SELECT id, text FROM symbols")
				if err == nil {
					t.Error("a duplicate was stored")
				}
				return nil
			}),
			note("e"),
		)
		if results[0] != nil || !errors.Is(results[1], refused) || codeOf(results[2]) != "internal" || results[3] != nil || results[4] != nil {
			t.Errorf("results: %v", results)
		}
		expectIDs(t, s, "a", "d", "e")
		if got := together(t, s, then("f", func(context.Context, *store.Tx) error { return refused }), note("g")); got[1] != nil {
			t.Errorf("after a first that failed: %v", got)
		}
		expectIDs(t, s, "a", "d", "e", "g")

		mustWrite(t, s, "x", "b", "c", "f") // the words of what was undone are not taken for stored
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
func TestClosureThatEndsItsGoroutineBlocksNobody(t *testing.T) {
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
		mustWrite(t, s, "c")
		if got := ids(t, s); slices.Contains(got, "a") || (results[1] == nil) != slices.Contains(got, "b") || !slices.Contains(got, "c") {
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
		unaware := &leaving{Context: t.Context()} // has left, but has not taken its write back yet
		unaware.looks.Store(1)
		go func() { left <- write(unaware, s, store.Full, "unaware") }()
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
		expectIDs(t, s, "stays")
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
		expectIDs(t, s, "a", "b", "c")
	})
}

// leaving is a context that is found to have ended at its n-th look.
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

// The one that leads a shared commit may leave, too.
func TestCallerThatLeavesAtAnyPointWritesWhollyOrNot(t *testing.T) {
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
			go func() { first <- write(ctx, s, store.Full, id, id+"+") }()
			synctest.Wait()
			go func() { second <- write(t.Context(), s, store.Full, id+" stays") }()
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
		expectIDs(t, s, want...)
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
		leave() // ten places
		synctest.Wait()
		for n := range 12 {
			submit(t.Context(), fmt.Sprint("successor", n))
		}
		synctest.Wait()
		open()
		wg.Wait()
		if refused.Load() != 22 || left.Load() != 10 || stored.Load() != 4096 || len(ids(t, s)) != 4096 {
			t.Errorf("refused %d, left %d, stored %d, in the log %d", refused.Load(), left.Load(), stored.Load(), len(ids(t, s)))
		}
	})
}

func TestCloseFinishesWhatWasAcceptedAndRefusesTheRest(t *testing.T) {
	t.Parallel()
	for range 5 {
		path := storetest.Path(t)
		s, err := store.Open(t.Context(), store.Config{Path: path})
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
					} else if err = write(t.Context(), s, store.Sync(n%2), fmt.Sprintf("%d-%d", g, n)); err == nil && acknowledged.Add(1) == 200 {
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
		expectCode(t, write(t.Context(), s, store.Full, "late"), store.CodeClosed)
		expectCode(t, s.Read(t.Context(), func(context.Context, *store.Tx) error { return nil }), store.CodeClosed)
		wg.Wait()
		if got := len(ids(t, storetest.Open(t, store.Config{Path: path}))); got != int(acknowledged.Load()) {
			t.Errorf("%d writes acknowledged, %d in the log", acknowledged.Load(), got)
		}
	}
}

func TestErrorInCommitReachesAllAndStoresNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		ddl(t, s, "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
			"CREATE TABLE child (parent INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)")
		orphan := func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO child VALUES (7)")
			return err
		}
		for i, err := range together(t, s, note("a"), then("b", orphan), note("c")) {
			if f := fault.As(err); f == nil || !strings.Contains(f.Message, "FOREIGN KEY") {
				t.Errorf("write %d: %v", i, err)
			}
		}
		if err := s.Write(t.Context(), store.Full, then("d", orphan)); err == nil {
			t.Error("alone it was stored")
		}
		mustWrite(t, s, "e")
		expectIDs(t, s, "e")
		ddl(t, s, "DROP TABLE child", "DROP TABLE parent")
	})
}

// limitPages lets the writing connection's file grow by no more than this.
func limitPages(t testing.TB, s *store.Store, more int) {
	t.Helper()
	err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		var pages int
		if err := tx.Get(ctx, []any{&pages}, "PRAGMA page_count"); err != nil {
			return err
		}
		return tx.Get(ctx, []any{&pages}, fmt.Sprintf("PRAGMA max_page_count=%d", pages+more))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// big is a note that needs some hundred pages.
func big(ctx context.Context, tx *store.Tx) error {
	_, err := tx.Append(ctx, store.Change{Stream: "s", Kind: "big", ID: "big", Op: store.OpPut, Doc: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)})
	return err
}

// SQLite gives up the whole transaction, savepoints included.
func TestFullDiskInASharedCommitStoresNothingAndIsSurvived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		mustWrite(t, s, "before")
		limitPages(t, s, 5)
		results := together(t, s, note("a"), then("b", big), note("c"))
		for i, err := range results {
			expectCode(t, err, store.CodeFull)
			if fault.As(err).Message != "disk full" {
				t.Errorf("write %d: %v", i, err)
			}
		}
		expectIDs(t, s, "before")
		mustWrite(t, s, "after")
		expectIDs(t, s, "before", "after")
	})
}

// A closure that goes on after such an error would write outside of any
// transaction.
func TestClosureThatIgnoresAFullDiskStoresNothing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	mustWrite(t, s, "before")
	limitPages(t, s, 5)
	err := s.Write(t.Context(), store.Full, then("a", func(ctx context.Context, tx *store.Tx) error {
		expectCode(t, fault.Wrap(big(ctx, tx), fault.Internal, "failed", ""), "failed")
		for _, fn := range []closure{note("b"), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO symbols (text) VALUES ('stray')")
			return err
		}} {
			if fn(ctx, tx) == nil {
				t.Error("a statement ran after its transaction was lost")
			}
		}
		return nil
	}))
	expectCode(t, err, store.CodeFull)
	mustWrite(t, s, "after")
	expectIDs(t, s, "before", "after")
	var stray int
	err = s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&stray}, "SELECT count(*) FROM symbols WHERE text = 'stray'")
	})
	if err != nil || stray != 0 {
		t.Errorf("%d stray rows, %v", stray, err)
	}
}

func TestDurabilityIsWhatTheWriteAsksFor(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	expect := func(sync store.Sync, want int) {
		t.Helper()
		var got int
		err := s.Write(t.Context(), sync, func(ctx context.Context, tx *store.Tx) error {
			return tx.Get(ctx, []any{&got}, "PRAGMA synchronous")
		})
		if err != nil || got != want {
			t.Errorf("synchronous is %d, %v; want %d", got, err, want)
		}
	}
	expect(store.Full, 2)
	expect(store.Normal, 1)
	expect(store.Full, 2)
	expect(store.Normal, 1)
	limitPages(t, s, 5) // a transaction that SQLite ends, in a connection set to Normal
	expectCode(t, s.Write(t.Context(), store.Normal, big), store.CodeFull)
	expect(store.Full, 2)
	expect(store.Normal, 1)

	synctest.Test(t, func(t *testing.T) { // one that comes while a lesser commit waits for the lock
		s := storetest.Open(t, store.Config{})
		db := raw(t, s.Path())
		rawExec(t, db, "BEGIN IMMEDIATE")
		first, second := make(chan error), make(chan error)
		go func() { first <- write(t.Context(), s, store.Normal, "a") }()
		synctest.Wait()
		var got int
		go func() {
			second <- s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
				return tx.Get(ctx, []any{&got}, "PRAGMA synchronous")
			})
		}()
		synctest.Wait()
		rawExec(t, db, "ROLLBACK")
		if err := errors.Join(<-first, <-second); err != nil || got != 2 {
			t.Errorf("synchronous is %d, %v", got, err)
		}
	})

	synctest.Test(t, func(t *testing.T) { // one that needs Full makes its neighbours Full
		s := storetest.Open(t, store.Config{})
		open := gate(t, s)
		var wg sync.WaitGroup
		for _, sync := range []store.Sync{store.Normal, store.Full} {
			wg.Go(func() {
				var got int
				err := s.Write(t.Context(), sync, func(ctx context.Context, tx *store.Tx) error {
					return tx.Get(ctx, []any{&got}, "PRAGMA synchronous")
				})
				if err != nil || got != 2 {
					t.Errorf("synchronous is %d, %v", got, err)
				}
			})
			synctest.Wait()
		}
		open()
		wg.Wait()
	})
}

func TestTransactionInsideAnotherIsRefused(t *testing.T) {
	t.Parallel()
	s, other := storetest.Open(t, store.Config{Readers: 1}), storetest.Open(t, store.Config{})
	nothing := func(context.Context, *store.Tx) error { return nil }
	inWrite := func(s *store.Store, fn func(context.Context) error) error {
		return s.Write(t.Context(), store.Full, func(ctx context.Context, _ *store.Tx) error { return fn(ctx) })
	}
	inRead := func(s *store.Store, fn func(context.Context) error) error {
		return s.Read(t.Context(), func(ctx context.Context, _ *store.Tx) error { return fn(ctx) })
	}
	write := func(ctx context.Context) error { return s.Write(ctx, store.Full, nothing) }
	read := func(ctx context.Context) error { return s.Read(ctx, nothing) }
	for name, err := range map[string]error{
		"write in write": inWrite(s, write), "read in write": inWrite(s, read),
		"write in read": inRead(s, write), "read in read": inRead(s, read),
		"with another store between": inWrite(s, func(ctx context.Context) error {
			return other.Read(ctx, func(ctx context.Context, _ *store.Tx) error { return write(ctx) })
		}),
	} {
		if codeOf(err) != "internal" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := inWrite(other, write); err != nil {
		t.Errorf("write inside another store's: %v", err)
	}
	mustWrite(t, s, "a")
	expectIDs(t, s, "a")
}

func TestClosureCannotEndItsTransaction(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	for _, q := range []string{"COMMIT", " commit;", "END", "ROLLBACK", "rollback to caller", "SAVEPOINT x", "RELEASE caller", "BEGIN", "\n\tEnd Transaction"} {
		err := s.Write(t.Context(), store.Full, then("a", func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, q)
			return err
		}))
		if err == nil {
			t.Errorf("%q was executed", q)
		}
	}
	mustWrite(t, s, "b")
	expectIDs(t, s, "b")
}

func TestTransactionIsOfNoUseAfterItsClosure(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	var kept []*store.Tx
	keep := func(_ context.Context, tx *store.Tx) error { kept = append(kept, tx); return nil }
	if err := errors.Join(s.Write(t.Context(), store.Full, keep), s.Read(t.Context(), keep)); err != nil {
		t.Fatal(err)
	}
	for _, tx := range kept {
		if err := storetest.Note(t.Context(), tx, "a"); err == nil {
			t.Error("a change was appended")
		}
		if _, err := tx.Exec(t.Context(), "DELETE FROM symbols"); err == nil {
			t.Error("a statement was executed")
		}
		if _, err := tx.Head(t.Context()); err == nil {
			t.Error("a query was executed")
		}
	}
	expectIDs(t, s)
}

func TestQueryMayRunAgainWhileItsRowsAreRead(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	ddl(t, s, "CREATE TABLE tree (id INTEGER PRIMARY KEY, parent INTEGER)",
		"INSERT INTO tree VALUES (1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3), (7, 3)")
	const children = "SELECT id FROM tree WHERE parent = ? ORDER BY id"
	walk := func(ctx context.Context, tx *store.Tx) error {
		var got []int
		var visit func(parent int) error
		visit = func(parent int) error {
			return tx.Each(ctx, func(r *sql.Rows) error {
				var id, first int
				if err := r.Scan(&id); err != nil {
					return err
				}
				got = append(got, id)
				if err := tx.Get(ctx, []any{&first}, children, id); err != nil && !errors.Is(err, sql.ErrNoRows) {
					return err
				}
				return visit(id)
			}, children, parent)
		}
		err := visit(0)
		if want := []int{1, 2, 4, 5, 3, 6, 7}; !slices.Equal(got, want) {
			t.Errorf("walked %v, want %v", got, want)
		}
		return err
	}
	for range 2 {
		if err := errors.Join(s.Read(t.Context(), walk), s.Write(t.Context(), store.Normal, walk)); err != nil {
			t.Error(err)
		}
	}
	ddl(t, s, "DROP TABLE tree")
}

func TestRowsLeftOpenAreClosedWithTheClosure(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{Readers: 1})
	mustWrite(t, s, "a", "b")
	for _, end := range []func(){func() {}, func() { panic("defect") }} {
		leave := func(ctx context.Context, tx *store.Tx) error {
			for range 2 {
				rows, err := tx.Query(ctx, "SELECT seq FROM changes")
				if err != nil {
					return err
				}
				if !rows.Next() {
					t.Error("no rows")
				}
			}
			end()
			return nil
		}
		for range 2 {
			if err := s.Write(t.Context(), store.Normal, leave); err != nil && codeOf(err) != "internal" {
				t.Error(err)
			}
			if err := s.Read(t.Context(), leave); err != nil && codeOf(err) != "internal" {
				t.Error(err)
			}
		}
	}
	mustWrite(t, s, "c")
	db := raw(t, s.Path()) // nobody holds an old snapshot
	var busy, log, moved int
	if err := db.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved); err != nil || busy != 0 {
		t.Errorf("checkpoint: busy %d, %v", busy, err)
	}
}

func TestClockThatStepsBackBreaksNothing(t *testing.T) {
	t.Parallel()
	clock := &storetest.Clock{}
	clock.Move(1_700_000_000 * time.Second)
	s := storetest.Open(t, store.Config{Clock: clock.Now})
	var want []string
	for n := range 6 {
		want = append(want, fmt.Sprint("n", n))
		mustWrite(t, s, want[n])
		clock.Move(-time.Duration(n) * time.Hour)
	}
	expectIDs(t, s, want...)
	changes := storetest.Changes(t, s)
	if changes[5].At >= changes[2].At {
		t.Error("the changes do not carry the clock's times")
	}
}
