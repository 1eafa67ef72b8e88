package service

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"cairn/internal/mail/reservations"
)

// crowd creates n active reservations of BlueDog: files, folders and patterns in 100 packages.
func (d *desk) crowd(n int) {
	d.Helper()
	for made := 0; made < n; {
		paths := []string{}
		for ; len(paths) < min(200, n); made++ {
			path := fmt.Sprintf("src/pkg%d/f%d.go", made%100, made/100)
			switch made % 10 {
			case 8:
				path = fmt.Sprintf("src/pkg%d/d%d/**", made%100, made/100)
			case 9:
				path = fmt.Sprintf("src/pkg%d/*_%d.go", made%100, made/100)
			}
			paths = append(paths, path)
		}
		if g := d.reserveAs(reservations.ReserveArgs{AgentName: "BlueDog", Paths: paths}); len(g.Granted) != len(paths) {
			d.Fatalf("%d of %d: %v", len(g.Granted), len(paths), g.Conflicts)
		}
	}
}

// report adds percentiles to the benchmark's mean.
func report(b *testing.B, all []time.Duration) {
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2])/1e6, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100])/1e6, "p99-ms")
}
