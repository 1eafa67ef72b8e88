package measure

import (
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// slots is the number of slots of a Histogram: four for each doubling, from 1 µs to 67 s.
const slots = 100

// Histogram counts durations by ranges. Its zero value is ready for use, it never allocates,
// and it is safe for concurrent use.
type Histogram struct {
	// Bounds are the upper ends of the ranges, ascending and at most 99; longer durations have
	// a separate range. Without bounds, each range is a quarter of a power of two.
	Bounds []time.Duration

	counts [slots]atomic.Int64
	sum    atomic.Int64 // nanoseconds
}

// Add counts a duration; a negative one counts as 0. Without bounds, a longer duration counts
// as 67 s.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	slot := 0
	if h.Bounds == nil {
		slot = slotOf(d)
	} else {
		slot, _ = slices.BinarySearch(h.Bounds, d)
	}
	h.counts[slot].Add(1)
	h.sum.Add(int64(d))
}

// slotOf returns the slot of a duration in a histogram without bounds.
func slotOf(d time.Duration) int {
	us := uint64(d.Microseconds())
	if us < 4 {
		return int(us)
	}
	n := bits.Len64(us)
	return min((n-2)*4+int(us>>(n-3)&3), slots-1)
}

// endOf returns the upper end of a slot, exclusive, in a histogram without bounds.
func endOf(slot int) time.Duration {
	if slot < 4 {
		return time.Duration(slot+1) * time.Microsecond
	}
	return time.Duration((5+slot%4)<<(slot/4-1)) * time.Microsecond
}

// Read returns the counts so far. Durations that are added concurrently may be missing.
func (h *Histogram) Read() (d Distribution) {
	d.bounds = h.Bounds
	for i := range h.counts {
		d.counts[i] = h.counts[i].Load()
		d.Count += d.counts[i]
	}
	d.Sum = time.Duration(h.sum.Load())
	return d
}

// Distribution is a snapshot of a Histogram.
type Distribution struct {
	Count  int64
	Sum    time.Duration
	bounds []time.Duration
	counts [slots]int64
}

// end returns the upper end of a range. For the range beyond all bounds it returns the last
// bound.
func (d *Distribution) end(slot int) time.Duration {
	switch {
	case d.bounds == nil:
		return endOf(slot)
	case slot < len(d.bounds):
		return d.bounds[slot]
	}
	return d.bounds[len(d.bounds)-1]
}

// Since returns the difference to an earlier Read of the same Histogram.
func (d Distribution) Since(earlier Distribution) Distribution {
	for i := range d.counts {
		d.counts[i] -= earlier.counts[i]
	}
	d.Count, d.Sum = d.Count-earlier.Count, d.Sum-earlier.Sum
	return d
}

// Quantile returns the duration that the given share of all durations, such as 0.95, does not
// exceed. It is accurate to the width of a range. It returns 0 if nothing was counted.
func (d *Distribution) Quantile(share float64) time.Duration {
	rank, below := share*float64(d.Count), 0.0
	for i, n := range d.counts {
		if n == 0 || below+float64(n) < rank {
			below += float64(n)
			continue
		}
		var begin time.Duration
		if i > 0 {
			begin = d.end(i - 1)
		}
		return begin + time.Duration((rank-below)/float64(n)*float64(d.end(i)-begin))
	}
	return 0
}

// Buckets returns upper ends, and for each the number of durations that do not exceed it. The
// ends are the bounds. Without bounds they double from 4 µs up to 67 s.
func (d *Distribution) Buckets() (ends []time.Duration, upto []int64) {
	n := int64(0)
	for i, c := range d.counts[:slots-1] {
		n += c
		if d.bounds == nil && i%4 == 3 || i < len(d.bounds) {
			ends, upto = append(ends, d.end(i)), append(upto, n)
		}
	}
	return ends, upto
}
