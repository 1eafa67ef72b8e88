// Package backoff says how long to wait after failures, and waits.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Policy is the delay between attempts after failures. Followers, replication, transactions
// of the hub and Git commits use it.
type Policy struct {
	First  time.Duration // the wait after the first failure; doubled after each further one
	Max    time.Duration // the maximum wait, before Jitter
	Jitter float64       // random share of a wait that is added or subtracted: 0.5 is ±50 %
}

// Delay returns the wait after the nth failure in a row; n below 1 counts as 1.
func (p Policy) Delay(n int) time.Duration {
	d := p.Max
	if n = max(n, 1) - 1; n < 62 && p.First <= p.Max>>n {
		d = p.First << n
	}
	return time.Duration(float64(d) * (1 - p.Jitter + 2*p.Jitter*rand.Float64()))
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
