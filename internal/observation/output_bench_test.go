package observation

import (
	"strings"
	"testing"
)

func BenchmarkNewOutput(b *testing.B) {
	line := "2026-03-04 10:15:32 INFO worker 7 uploaded 132 objects to assets in 1.23s\n--- PASS: TestWindow (0.01s)\n"
	for name, n := range map[string]int{"500B": 5, "18KB": 180, "64KB": 640, "1MB": 10_000} {
		text := strings.Repeat(line, n)
		b.Run(name, func(b *testing.B) {
			f := testFilter(b)
			for b.Loop() {
				o := newOutput(text, f)
				packDigest(o.digest)
			}
		})
	}
}
