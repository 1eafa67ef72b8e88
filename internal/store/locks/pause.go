package locks

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses between attempts to get a lock that other processes hold.
const (
	shortestPause = 200 * time.Microsecond
	longestPause  = 2 * time.Millisecond
)

// Pause waits a moment before another attempt to get a lock. It returns false if there is
// no time for one.
func Pause(ctx context.Context, until time.Time) bool {
	if !time.Now().Before(until) {
		return false
	}
	t := time.NewTimer(shortestPause + rand.N(longestPause-shortestPause))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
