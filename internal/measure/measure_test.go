package measure_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/measure"
)

func TestQuantilesAreExactToAQuarter(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var h measure.Histogram
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
	h := measure.Histogram{Bounds: []time.Duration{time.Millisecond, 250 * time.Millisecond, 10 * time.Minute}}
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
	var h measure.Histogram
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
		l := measure.UsageGauge{Capacity: 10}
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
