package cairn

import (
	"context"
	"time"
)

// withCPULimit ends ctx once this process has used limit of CPU time since the
// call, at the latest after most by the clock. A process that the system does not let
// run has not worked: counted by the clock, a guard under load would say nothing. Where
// nothing tells the CPU time, the clock stands in for it.
func withCPULimit(ctx context.Context, limit, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, most)
	began := processorTime()
	go func() {
		for left := limit; left > 0; left = limit - (processorTime() - began) {
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
