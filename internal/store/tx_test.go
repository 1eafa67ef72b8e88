package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// limitPages limits the growth of the file on the writing connection to a number of pages.
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

// big returns a note that needs some hundred pages.
func big(ctx context.Context, tx *store.Tx) error {
	_, err := tx.Append(ctx, store.Change{Stream: "s", Kind: "big", ID: "big", Op: store.OpPut, Doc: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)})
	return err
}

// SQLite rolls back the whole transaction, including savepoints.
func TestFullDiskInASharedCommitStoresNothingAndIsSurvived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		storetest.MustWrite(t, s, "before")
		limitPages(t, s, 5)
		results := together(t, s, note("a"), then("b", big), note("c"))
		for i, err := range results {
			storetest.ExpectCode(t, err, store.CodeFull)
			if fault.As(err).Message != "disk full" {
				t.Errorf("write %d: %v", i, err)
			}
		}
		storetest.ExpectIDs(t, s, "before")
		storetest.MustWrite(t, s, "after")
		storetest.ExpectIDs(t, s, "before", "after")
	})
}

// A closure that continues after such an error would write outside any transaction.
func TestClosureThatIgnoresAFullDiskStoresNothing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.MustWrite(t, s, "before")
	limitPages(t, s, 5)
	err := s.Write(t.Context(), store.Full, then("a", func(ctx context.Context, tx *store.Tx) error {
		storetest.ExpectCode(t, fault.Wrap(big(ctx, tx), fault.Internal, "failed", ""), "failed")
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
	storetest.ExpectCode(t, err, store.CodeFull)
	storetest.MustWrite(t, s, "after")
	storetest.ExpectIDs(t, s, "before", "after")
	var stray int
	err = s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&stray}, "SELECT count(*) FROM symbols WHERE text = 'stray'")
	})
	if err != nil || stray != 0 {
		t.Errorf("%d stray rows, %v", stray, err)
	}
}

func TestDurabilityIsAsRequestedByTheWrite(t *testing.T) {
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
	limitPages(t, s, 5) // a transaction that SQLite ends, on a connection set to Normal
	storetest.ExpectCode(t, s.Write(t.Context(), store.Normal, big), store.CodeFull)
	expect(store.Full, 2)
	expect(store.Normal, 1)

	synctest.Test(t, func(t *testing.T) { // a write that arrives while a less durable commit waits for the lock
		s := storetest.Open(t, store.Config{})
		db := storetest.Raw(t, s.Path())
		storetest.RawExec(t, db, "BEGIN IMMEDIATE")
		first, second := make(chan error), make(chan error)
		go func() { first <- storetest.Write(t.Context(), s, store.Normal, "a") }()
		synctest.Wait()
		var got int
		go func() {
			second <- s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
				return tx.Get(ctx, []any{&got}, "PRAGMA synchronous")
			})
		}()
		synctest.Wait()
		storetest.RawExec(t, db, "ROLLBACK")
		if err := errors.Join(<-first, <-second); err != nil || got != 2 {
			t.Errorf("synchronous is %d, %v", got, err)
		}
	})

	synctest.Test(t, func(t *testing.T) { // a write that needs Full makes its whole batch Full
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
	s, other := storetest.Open(t, store.Config{MaxReaders: 1}), storetest.Open(t, store.Config{})
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
		if storetest.CodeOf(err) != "internal" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := inWrite(other, write); err != nil {
		t.Errorf("write inside another store's: %v", err)
	}
	storetest.MustWrite(t, s, "a")
	storetest.ExpectIDs(t, s, "a")
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
	storetest.MustWrite(t, s, "b")
	storetest.ExpectIDs(t, s, "b")
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
	storetest.ExpectIDs(t, s)
}

func TestQueryMayRunAgainWhileItsRowsAreRead(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.Exec(t, s, "CREATE TABLE tree (id INTEGER PRIMARY KEY, parent INTEGER)",
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
	storetest.Exec(t, s, "DROP TABLE tree")
}

func TestRowsLeftOpenAreClosedWithTheClosure(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{MaxReaders: 1})
	storetest.MustWrite(t, s, "a", "b")
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
			if err := s.Write(t.Context(), store.Normal, leave); err != nil && storetest.CodeOf(err) != "internal" {
				t.Error(err)
			}
			if err := s.Read(t.Context(), leave); err != nil && storetest.CodeOf(err) != "internal" {
				t.Error(err)
			}
		}
	}
	storetest.MustWrite(t, s, "c")
	db := storetest.Raw(t, s.Path()) // no process holds an old snapshot
	var busy, log, moved int
	if err := db.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved); err != nil || busy != 0 {
		t.Errorf("checkpoint: busy %d, %v", busy, err)
	}
}
