package observation

import (
	"fmt"
	"strings"
	"testing"

	"cairn/internal/tooloutput"
)

// BenchmarkNewOutput measures the cost of storing an output in a hook. The lines differ in more
// than their numbers.
func BenchmarkNewOutput(b *testing.B) {
	words := strings.Fields("window refund ledger worker queue stream cursor parser signal branch merge uploaded objects expected session")
	word := func(i int) string { return words[i%len(words)] + words[i/len(words)%len(words)] }
	var text strings.Builder
	for i := 0; text.Len() < 1_000_000; i++ {
		fmt.Fprintf(&text, "2026-03-04 10:15:%02d INFO %s %d %s in 1.%ds\n", i%60, word(i), i, word(7*i), i)
		fmt.Fprintf(&text, "--- PASS: Test%s (0.01s)\n    src/%s/%s.go:%d: %s %s\n", word(i), word(3*i), word(5*i), i, word(11*i), word(13*i))
	}
	for _, n := range []int{500, 18_000, 64_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := testFilter(b)
			for b.Loop() {
				tooloutput.Pack(NewOutput(text.String()[:n], f).digest)
			}
		})
	}
}
