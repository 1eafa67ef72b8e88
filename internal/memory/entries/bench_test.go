package entries_test

import (
	"fmt"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/memorytest"
)

// BenchmarkAcknowledgedAdd adds entries one after the other; 2,000 with -benchtime 2000x
// (memories §14).
func BenchmarkAcknowledgedAdd(b *testing.B) {
	for _, hub := range []bool{false, true} {
		b.Run(fmt.Sprint("hub=", hub), func(b *testing.B) {
			d := memorytest.NewDesk(b)
			if hub {
				d.Joined()
			}
			times := make([]time.Duration, 0, b.N)
			for b.Loop() {
				begun := time.Now()
				d.Add("a line of a conversation, about as long as they are")
				times = append(times, time.Since(begun))
			}
			memorytest.Percentiles(b, times)
		})
	}
}

// BenchmarkInflightList lists 25 of many inflight entries in this process.
func BenchmarkInflightList(b *testing.B) {
	d := memorytest.NewDesk(b).Joined()
	for i := range 500 {
		if _, _, err := d.AddEntry(b.Context(), memory.Caller{}, contents.NewEntry{MemoryID: d.MemoryID, RawEntry: fmt.Sprint("entry ", i), Tags: map[string]string{"k": "v"}}); err != nil {
			b.Fatal(err)
		}
	}
	var times []time.Duration
	for b.Loop() {
		begun := time.Now()
		if out, err := d.ListInflight(b.Context(), memory.Caller{}, d.MemoryID, 25); err != nil || out.Count != 25 {
			b.Fatal(out.Count, err)
		}
		times = append(times, time.Since(begun))
	}
	memorytest.Percentiles(b, times)
}
