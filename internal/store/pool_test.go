package store_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestQuantilesAreExactToAQuarter(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var h store.Histogram
	if d := h.Read(); d.Quantile(.95) != 0 || d.Count != 0 {
		t.Errorf("nothing: %v", d)
	}
	var all []time.Duration
	var sum time.Duration
	for range 20_000 {
		d := time.Duration(random.ExpFloat64() * float64(5*time.Millisecond))
		h.Add(d)
		all, sum = append(all, d), sum+d
	}
	slices.Sort(all)
	d := h.Read()
	for _, share := range []float64{.01, .5, .95, .99, 1} {
		want := all[int(share*float64(len(all)-1))]
		if got := d.Quantile(share); got < want*3/4 || got > want*5/4 {
			t.Errorf("the quantile of %v is %v, not %v", share, got, want)
		}
	}
	if d.Count != int64(len(all)) || d.Sum != sum {
		t.Errorf("%d, %v; want %d, %v", d.Count, d.Sum, len(all), sum)
	}
	ends, below := d.Buckets()
	for i, end := range ends {
		n, _ := slices.BinarySearch(all, end)
		if below[i] != int64(n) || i > 0 && end != 2*ends[i-1] {
			t.Errorf("below %v are %d, not %d", end, below[i], n)
		}
	}
}

// TestHistogramsWithBoundsCountExactly counts durations up to and including each bound.
func TestHistogramsWithBoundsCountExactly(t *testing.T) {
	t.Parallel()
	h := store.Histogram{Bounds: []time.Duration{time.Millisecond, 250 * time.Millisecond, 10 * time.Minute}}
	for _, d := range []time.Duration{-1, 0, time.Millisecond, time.Millisecond + 1, time.Second, 10 * time.Minute, time.Hour} {
		h.Add(d)
	}
	d := h.Read()
	ends, upto := d.Buckets()
	if !slices.Equal(ends, h.Bounds) || !slices.Equal(upto, []int64{3, 4, 6}) || d.Count != 7 {
		t.Errorf("%v %v of %d", ends, upto, d.Count)
	}
	if q := d.Quantile(1); q != 10*time.Minute {
		t.Errorf("the longest is %v", q)
	}
	h.Add(0)
	later := h.Read()
	later = later.Since(d)
	if _, upto := later.Buckets(); later.Count != 1 || !slices.Equal(upto, []int64{1, 1, 1}) {
		t.Errorf("since then %v", upto)
	}
}

func TestHistogramsTakeEveryDuration(t *testing.T) {
	t.Parallel()
	var h store.Histogram
	for _, d := range []time.Duration{-time.Second, 0, 1, time.Microsecond, 4 * time.Microsecond, time.Hour, 1<<63 - 1} {
		h.Add(d)
	}
	d := h.Read()
	ends, below := d.Buckets()
	if ends[0] != 4*time.Microsecond || below[0] != 4 || below[len(below)-1] != 5 || d.Count != 7 || d.Quantile(1) < time.Minute {
		t.Errorf("%v %v, %v", ends, below, d.Quantile(1))
	}
}

func TestALoadTellsForHowLongItIsHigh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := store.UsageGauge{Capacity: 10}
		l.Set(7)
		time.Sleep(time.Minute) // in the bubble's time
		if u := l.Read(); u.High != 0 || u.Now != 7 || u.Percent() != 70 {
			t.Errorf("at 70 %%: %+v", u)
		}
		l.Add(1)
		time.Sleep(time.Minute)
		l.Add(4)
		time.Sleep(time.Minute)
		if u := l.Read(); u.High != 2*time.Minute || u.Percent() != 120 {
			t.Errorf("at 120 %%: %+v", u)
		}
		l.Add(-5)
		time.Sleep(time.Minute)
		if u := l.Read(); u.High != 0 || u.Now != 7 || u.Peak != 12 {
			t.Errorf("at 70 %% again: %+v", u)
		}
	})
}

// There are two slots for five readers. The second slot is for readers that have waited for a
// second.
func TestReadersAreBoundedAndTheirWaitIsMeasured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{MaxReaders: 2, MinReaders: 1})
		mustWrite(t, s, "a")
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
		mustWrite(t, s, "a")
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
