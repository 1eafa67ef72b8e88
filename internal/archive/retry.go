package archive

import (
	"context"
	"math/rand/v2"
	"time"

	"cairn/internal/fault"
)

// attempts is the maximum number of attempts of a commit. firstPause is the approximate
// pause after the first failure; it doubles each time (contract mail §10.4).
const (
	attempts   = 7
	firstPause = 50 * time.Millisecond
)

// retry calls f until it succeeds, at most seven times, with pauses of 50 ms · 2ⁿ ± 25 %,
// and returns its last error. It does not retry Invalid errors. It stops when ctx ends.
func retry(ctx context.Context, pause func(context.Context, time.Duration) error, f func(attempt int) error) error {
	wait := firstPause
	for attempt := 1; ; attempt++ {
		err := f(attempt)
		if err == nil || attempt == attempts || ctx.Err() != nil || fault.KindOf(err) == fault.Invalid {
			return err
		}
		if pause(ctx, wait*3/4+rand.N(wait/2)) != nil {
			return err
		}
		wait *= 2
	}
}

// sleep waits for a time, or returns the error of ctx if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
