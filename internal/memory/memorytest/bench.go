package memorytest

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Percentiles reports the times of single calls in milliseconds.
func Percentiles(b *testing.B, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	for _, p := range []int{50, 95, 99} {
		b.ReportMetric(float64(times[(len(times)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}
