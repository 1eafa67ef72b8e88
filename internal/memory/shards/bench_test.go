package shards_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/shards"
)

// BenchmarkOneBlockedMemory measures 100 memories next to one whose shard is blocked.
func BenchmarkOneBlockedMemory(b *testing.B) {
	for _, blocked := range []bool{false, true} {
		b.Run(fmt.Sprint("blocked=", blocked), func(b *testing.B) {
			d := memorytest.NewDesk(b)
			shard := shards.Of(d.MemoryID, d.Config.Settings.Shards)
			var others []*memorytest.Desk
			for len(others) < 100 {
				m := d.NewMemory(memory.Caller{}, d.VaultID, fmt.Sprint("m", len(others), "-", b.N, "-", time.Now().UnixNano()))
				if shards.Of(m, d.Config.Settings.Shards) != shard {
					others = append(others, d.With(m))
				}
			}
			release := make(chan struct{})
			if blocked {
				go func() { _ = d.Jobs.Run(b.Context(), d.MemoryID, func(context.Context) error { <-release; return nil }) }()
			}
			var times []time.Duration
			for i := 0; b.Loop(); i++ {
				begun := time.Now()
				others[i%100].Add("x")
				times = append(times, time.Since(begun))
			}
			close(release)
			memorytest.Percentiles(b, times)
		})
	}
}
