package repository

import (
	"context"
	"time"

	"cairn/internal/backoff"
	"cairn/internal/fault"
)

// attempts is the maximum number of attempts of a commit.
const attempts = 7

// commitBackoff separates the attempts: 50 ms · 2ⁿ ± 25 % (contract mail §10.4).
var commitBackoff = backoff.Policy{First: 50 * time.Millisecond, Max: time.Minute, Jitter: .25}

// retry calls f until it succeeds, at most seven times, with pauses between, and returns
// its last error. It does not retry Invalid errors. It stops when ctx ends.
func retry(ctx context.Context, pause func(context.Context, time.Duration) error, f func(attempt int) error) error {
	for attempt := 1; ; attempt++ {
		err := f(attempt)
		if err == nil || attempt == attempts || ctx.Err() != nil || fault.KindOf(err) == fault.Invalid {
			return err
		}
		if pause(ctx, commitBackoff.Delay(attempt)) != nil {
			return err
		}
	}
}

// sleep waits for a time, or returns the error of ctx if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	backoff.Pause(ctx, d, nil)
	return ctx.Err()
}
