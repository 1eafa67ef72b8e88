package store

import (
	"sync"
	"time"
)

// UsageGauge is how much of something limited is in use, over time. It is to be made with
// its Capacity, and any number of goroutines may use it.
type UsageGauge struct {
	Capacity int64

	mu        sync.Mutex
	now, peak int64
	since     time.Time // when it came to four fifths, zero while it is below
}

// Add changes how much is in use.
func (l *UsageGauge) Add(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(l.now + n)
}

// Set says how much is in use.
func (l *UsageGauge) Set(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(n)
}

func (l *UsageGauge) set(n int64) {
	l.now, l.peak = n, max(l.peak, n)
	switch {
	case n*5 < l.Capacity*4:
		l.since = time.Time{}
	case l.since.IsZero():
		l.since = time.Now()
	}
}

// Usage is how much of a UsageGauge is in use.
type Usage struct {
	Now, Peak, Capacity int64
	High                time.Duration // for which four fifths and more have been in use without a break
}

// Percent is the share that is in use; more than 100 where the capacity is no limit.
func (u Usage) Percent() float64 {
	if u.Capacity == 0 {
		return 0
	}
	return 100 * float64(u.Now) / float64(u.Capacity)
}

// Read says how much is in use.
func (l *UsageGauge) Read() Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := Usage{Now: l.now, Peak: l.peak, Capacity: l.Capacity}
	if !l.since.IsZero() {
		u.High = time.Since(l.since)
	}
	return u
}
