package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestReadSeesOneSnapshotAndCannotWrite(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.MustWrite(t, s, "a")
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		before, err := tx.Head(ctx)
		if err != nil {
			return err
		}
		storetest.MustWrite(t, s, "b") // with the test's context, as another caller would
		after, err := tx.Head(ctx)
		if before != after {
			t.Errorf("the head moved from %d to %d", before, after)
		}
		if _, err := tx.Exec(ctx, "DELETE FROM changes"); err == nil {
			t.Error("a reader has deleted")
		}
		if storetest.Note(ctx, tx, "c") == nil {
			t.Error("a reader has appended")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	storetest.ExpectIDs(t, s, "a", "b")
}

func TestStoreOpenedForReadingCannotWrite(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.MustWrite(t, s, "a")
	reading := storetest.Open(t, store.Config{Path: s.Path(), ReadOnly: true})
	storetest.ExpectCode(t, storetest.Write(t.Context(), reading, store.Full, "b"), store.CodeReadOnly)
	storetest.MustWrite(t, s, "c")
	storetest.ExpectIDs(t, reading, "a", "c")
}

// long takes seconds but ends: the pure Go driver interrupts a query once, and the
// interrupt is lost if the query has not started to step.
const long = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000000) SELECT count(*) FROM n"

func TestEndOfContextInterruptsAQueryAndKeepsTheConnection(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{MaxReaders: 1})
	storetest.MustWrite(t, s, "a")
	interrupted := 0
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		err := s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
			var n int
			return tx.Get(ctx, []any{&n}, long)
		})
		cancel()
		if err != nil {
			interrupted++
		}
		storetest.ExpectIDs(t, s, "a")
	}
	if interrupted < 18 {
		t.Errorf("of 20 queries %d were interrupted", interrupted)
	}
}

func TestReadersThatLeaveAtAnyInstantAffectNoOther(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{MaxReaders: 2})
	storetest.MustWrite(t, s, "a", "b", "c")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 60 {
				ctx, cancel := context.WithCancel(t.Context())
				gone := make(chan struct{})
				go func() { cancel(); close(gone) }()
				if g%2 == 0 {
					if err := s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
						_, err := tx.Changes(ctx, 0, 10)
						return err
					}); err != nil && ctx.Err() == nil {
						t.Errorf("a read that nobody left: %v", err)
					}
				} else if err := storetest.Write(ctx, s, store.Normal, fmt.Sprintf("%d-%d", g, n)); err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("a write: %v", err)
				}
				<-gone
				if err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					got, err := tx.Changes(ctx, 0, 3)
					if len(got) != 3 {
						t.Errorf("%d changes", len(got))
					}
					return err
				}); err != nil {
					t.Errorf("the next read: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestPanickingReaderLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{MaxReaders: 1})
	storetest.MustWrite(t, s, "a")
	for range 3 {
		err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Head(ctx); err != nil {
				return err
			}
			panic("defect")
		})
		if storetest.CodeOf(err) != "internal" {
			t.Errorf("got %v", err)
		}
		storetest.ExpectIDs(t, s, "a")
	}
}

func TestReaderWaitsForAFreeConnectionOrLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{MaxReaders: 1})
		storetest.MustWrite(t, s, "a")
		entered, opened, done := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			done <- s.Read(t.Context(), func(context.Context, *store.Tx) error {
				close(entered)
				<-opened
				return nil
			})
		}()
		<-entered
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Read(ctx, func(context.Context, *store.Tx) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for ever: %v", err)
		}
		go func() { done <- s.Read(t.Context(), func(context.Context, *store.Tx) error { return nil }) }()
		synctest.Wait()
		close(opened)
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseReleasesReadersThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := open(t.Context(), store.Config{Path: storetest.Path(t), MaxReaders: 1})
		if err != nil {
			t.Fatal(err)
		}
		entered, opened, first, second := make(chan struct{}), make(chan struct{}), make(chan error), make(chan error)
		go func() {
			first <- s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				close(entered)
				<-opened
				_, err := tx.Head(ctx)
				return err
			})
		}()
		<-entered
		go func() { second <- s.Read(t.Context(), func(context.Context, *store.Tx) error { return nil }) }()
		synctest.Wait()
		closing := make(chan error)
		go func() { closing <- s.Close() }()
		synctest.Wait()
		if err := <-second; !fault.HasCode(err, store.CodeClosed) {
			t.Errorf("the waiting reader got %v", err)
		}
		close(opened)
		if err := errors.Join(<-first, <-closing); err != nil {
			t.Errorf("the running reader and Close: %v", err)
		}
	})
}
