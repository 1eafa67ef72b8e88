package store

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// slots are the slots of a Histogram: four to each doubling, from 1 µs to 67 s.
const slots = 100

// Histogram counts durations, each to a quarter of its power of two. Its zero value
// is ready for use, it never allocates, and any number of goroutines may use it.
type Histogram struct {
	counts [slots]atomic.Int64
	sum    atomic.Int64 // nanoseconds
}

// Add counts a duration; a negative one counts as 0, one over 67 s as that long.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.counts[slotOf(d)].Add(1)
	h.sum.Add(int64(d))
}

func slotOf(d time.Duration) int {
	us := uint64(d.Microseconds())
	if us < 4 {
		return int(us)
	}
	n := bits.Len64(us)
	return min((n-2)*4+int(us>>(n-3)&3), slots-1)
}

// endOf is the duration below which those of a slot are.
func endOf(slot int) time.Duration {
	if slot < 4 {
		return time.Duration(slot+1) * time.Microsecond
	}
	return time.Duration((5+slot%4)<<(slot/4-1)) * time.Microsecond
}

// Read is what was counted until now. What is added meanwhile may be in it or not.
func (h *Histogram) Read() (d Distribution) {
	for i := range h.counts {
		d.counts[i] = h.counts[i].Load()
		d.Count += d.counts[i]
	}
	d.Sum = time.Duration(h.sum.Load())
	return d
}

// Distribution is what a Histogram has counted.
type Distribution struct {
	Count  int64
	Sum    time.Duration
	counts [slots]int64
}

// Since is what was counted after an earlier Read of the same Histogram.
func (d Distribution) Since(earlier Distribution) Distribution {
	for i := range d.counts {
		d.counts[i] -= earlier.counts[i]
	}
	d.Count, d.Sum = d.Count-earlier.Count, d.Sum-earlier.Sum
	return d
}

// Quantile is the duration that a share of all do not exceed, such as 0.95; it is
// exact to a quarter. 0 when nothing was counted.
func (d *Distribution) Quantile(share float64) time.Duration {
	rank, below := share*float64(d.Count), 0.0
	for i, n := range d.counts {
		if n == 0 || below+float64(n) < rank {
			below += float64(n)
			continue
		}
		var begin time.Duration
		if i > 0 {
			begin = endOf(i - 1)
		}
		return begin + time.Duration((rank-below)/float64(n)*float64(endOf(i)-begin))
	}
	return 0
}

// Buckets are the ends of ranges, each twice the one before it from 4 µs on, and
// how many durations were below each. The last one has everything but what was over
// 67 s.
func (d *Distribution) Doublings() (ends []time.Duration, below []int64) {
	n := int64(0)
	for i, c := range d.counts[:slots-1] {
		n += c
		if i%4 == 3 {
			ends, below = append(ends, endOf(i)), append(below, n)
		}
	}
	return ends, below
}
