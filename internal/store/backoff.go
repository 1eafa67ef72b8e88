package store

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is the delay between attempts after failures. Followers, replication, transactions
// of the hub and Git commits use it.
type Backoff struct {
	First  time.Duration // the wait after the first failure; doubled after each further one
	Max    time.Duration // the maximum wait, before Jitter
	Jitter float64       // random share of a wait that is added or subtracted: 0.5 is ±50 %
}

// Delay returns the wait after the nth failure in a row; n below 1 counts as 1.
func (b Backoff) Delay(n int) time.Duration {
	d := b.Max
	if n = max(n, 1) - 1; n < 62 && b.First <= b.Max>>n {
		d = b.First << n
	}
	return time.Duration(float64(d) * (1 - b.Jitter + 2*b.Jitter*rand.Float64()))
}

// Pause waits for d, until wake receives, or until ctx ends; wake may be nil. It returns false
// if ctx has ended.
func Pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-wake:
	}
	return ctx.Err() == nil
}
