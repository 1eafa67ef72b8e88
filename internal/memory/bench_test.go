package memory

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// percentiles reports the times of single calls in milliseconds.
func percentiles(b *testing.B, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	for _, p := range []int{50, 95, 99} {
		b.ReportMetric(float64(times[(len(times)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}

// BenchmarkAcknowledgedAdd adds entries one after the other; 2,000 with -benchtime 2000x
// (memories §14).
func BenchmarkAcknowledgedAdd(b *testing.B) {
	for _, hub := range []bool{false, true} {
		b.Run(fmt.Sprint("hub=", hub), func(b *testing.B) {
			d := newDesk(b)
			if hub {
				d.joined()
			}
			times := make([]time.Duration, 0, b.N)
			for b.Loop() {
				begun := time.Now()
				d.add("a line of a conversation, about as long as they are")
				times = append(times, time.Since(begun))
			}
			percentiles(b, times)
		})
	}
}

// BenchmarkInflightList lists 25 of many inflight entries in this process.
func BenchmarkInflightList(b *testing.B) {
	d := newDesk(b).joined()
	for i := range 500 {
		if _, _, err := d.AddEntry(b.Context(), Caller{}, NewEntry{MemoryID: d.memory, RawEntry: fmt.Sprint("entry ", i), Tags: map[string]string{"k": "v"}}); err != nil {
			b.Fatal(err)
		}
	}
	var times []time.Duration
	for b.Loop() {
		begun := time.Now()
		if out, err := d.ListInflight(b.Context(), Caller{}, d.memory, 25); err != nil || out.Count != 25 {
			b.Fatal(out.Count, err)
		}
		times = append(times, time.Since(begun))
	}
	percentiles(b, times)
}

// BenchmarkOneBlockedMemory measures 100 memories next to one whose shard is blocked.
func BenchmarkOneBlockedMemory(b *testing.B) {
	for _, blocked := range []bool{false, true} {
		b.Run(fmt.Sprint("blocked=", blocked), func(b *testing.B) {
			d := newDesk(b)
			shard := shardOf(d.memory, d.config.Settings.Shards)
			var others []*desk
			for len(others) < 100 {
				m := d.newMemory(Caller{}, d.vault, fmt.Sprint("m", len(others), "-", b.N, "-", time.Now().UnixNano()))
				if shardOf(m, d.config.Settings.Shards) != shard {
					others = append(others, d.with(m))
				}
			}
			release := make(chan struct{})
			if blocked {
				go func() { _ = d.shards.run(b.Context(), d.memory, func(context.Context) error { <-release; return nil }) }()
			}
			var times []time.Duration
			for i := 0; b.Loop(); i++ {
				begun := time.Now()
				others[i%100].add("x")
				times = append(times, time.Since(begun))
			}
			close(release)
			percentiles(b, times)
		})
	}
}
