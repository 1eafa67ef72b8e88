package measure

import (
	"sync"
	"time"
)

// UsageGauge measures how much of a limited resource is in use, over time. Create it with
// its Capacity. It is safe for concurrent use.
type UsageGauge struct {
	Capacity int64

	mu        sync.Mutex
	now, peak int64
	since     time.Time // when the use reached four fifths, zero while it is below
}

// Add changes the amount in use.
func (l *UsageGauge) Add(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(l.now + n)
}

// Set sets the amount in use.
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

// Usage is a reading of a UsageGauge.
type Usage struct {
	Now, Peak, Capacity int64
	High                time.Duration // how long the use has been at least four fifths without interruption
}

// Percent returns the share in use; it may exceed 100 if the capacity is not a limit.
func (u Usage) Percent() float64 {
	if u.Capacity == 0 {
		return 0
	}
	return 100 * float64(u.Now) / float64(u.Capacity)
}

// Read returns the present usage.
func (l *UsageGauge) Read() Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := Usage{Now: l.now, Peak: l.peak, Capacity: l.Capacity}
	if !l.since.IsZero() {
		u.High = time.Since(l.since)
	}
	return u
}
