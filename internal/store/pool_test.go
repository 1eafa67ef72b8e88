package store_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// There are two slots for five readers. The second slot is for readers that have waited for a
// second.
func TestReadersAreBoundedAndTheirWaitIsMeasured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{MaxReaders: 2, MinReaders: 1})
		storetest.MustWrite(t, s, "a")
		before := s.Pool()
		if before.Acquired.Count == 0 || before.Capacity != 3 || before.Now != 0 {
			t.Errorf("before: %+v", before)
		}
		release := make(chan struct{})
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				if err := s.Read(t.Context(), func(context.Context, *store.Tx) error { <-release; return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if p := s.Pool(); p.Now != 1 || p.Pending != 4 || p.Acquired.Count != before.Acquired.Count+1 {
			t.Errorf("while one reads: %+v", p)
		}
		time.Sleep(2 * time.Second) // in the bubble's time
		p := s.Pool()
		if p.Now != 2 || p.Pending != 3 || p.Open != 3 || p.Acquired.Count != before.Acquired.Count+2 {
			t.Errorf("while two read: %+v", p)
		}
		close(release)
		group.Wait()
		p = s.Pool()
		if p.Now != 0 || p.Pending != 0 || p.Peak != 2 || p.Acquired.Count != before.Acquired.Count+5 || p.Acquired.Quantile(1) < 1500*time.Millisecond {
			t.Errorf("afterwards: %+v", p)
		}
		if p.Open != 3 {
			t.Errorf("%d connections are open", p.Open)
		}
		if err := s.CloseIdle(t.Context()); err != nil {
			t.Error(err)
		}
		if p := s.Pool(); p.Open != 2 {
			t.Errorf("%d connections are kept", p.Open)
		}
	})
}

// The waits of cancelled callers are measured too.
func TestTheWaitForTheWriterIsMeasured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{})
		storetest.MustWrite(t, s, "a")
		before := s.Pool().Acquired.Count
		release := make(chan struct{})
		var group sync.WaitGroup
		write := func(ctx context.Context, do func()) {
			group.Go(func() {
				err := s.Write(ctx, store.Normal, func(context.Context, *store.Tx) error { do(); return nil })
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			})
		}
		write(t.Context(), func() { <-release })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		write(ctx, func() {})
		write(t.Context(), func() {})
		synctest.Wait()
		if p := s.Pool(); p.Now != 1 || p.Pending != 2 || p.Acquired.Count != before+1 {
			t.Errorf("while one writes: %+v", p)
		}
		time.Sleep(time.Second) // in the bubble's time
		cancel()
		synctest.Wait()
		close(release)
		group.Wait()
		p := s.Pool()
		if p.Now != 0 || p.Pending != 0 || p.Acquired.Count != before+3 || p.Acquired.Quantile(.9) < 750*time.Millisecond {
			t.Errorf("afterwards: %d more, %v", p.Acquired.Count-before, p.Acquired.Quantile(.9))
		}
	})
}

// However many reading connections a store keeps, their page caches are small.
func TestReadersTogetherCacheLittle(t *testing.T) {
	t.Parallel()
	for kept, want := range map[int]int{1: -2000, 4: -2000, 25: -491, 1000: -256} {
		s := storetest.Open(t, store.Config{MaxReaders: 1000, MinReaders: kept})
		var got int
		err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return tx.Get(ctx, []any{&got}, "PRAGMA cache_size")
		})
		if err != nil || got != want {
			t.Errorf("of %d: %d, want %d (%v)", kept, got, want, err)
		}
	}
}
