package cputime

import (
	"context"
	"time"
)

// WithLimit ends ctx when this process has used limit of CPU time since the call, but at
// the latest after most of clock time. CPU time excludes the time in which the system does not
// schedule the process. With clock time a guard under load would find nothing. Systems without
// CPU times use the clock instead.
func WithLimit(ctx context.Context, limit, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, most)
	began := Spent()
	go func() {
		for left := limit; left > 0; left = limit - (Spent() - began) {
			t := time.NewTimer(max(left, limit/8))
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return
			}
		}
		cancel()
	}()
	return ctx, cancel
}
