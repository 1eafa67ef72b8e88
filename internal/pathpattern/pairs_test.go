package pathpattern

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Pairs returns the same as comparing each pattern with every other.
func TestPairsAreTheOverlappingPatterns(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"src", "src-x", "a", "b", "*", "**", "*.go", "a?"}
	for range 200 {
		var all []Pattern
		for range 1 + r.IntN(12) {
			text := parts[r.IntN(len(parts))]
			for range r.IntN(3) {
				text += "/" + parts[r.IntN(len(parts))]
			}
			p, err := Parse(text, Options{})
			if err != nil {
				continue
			}
			all = append(all, p)
		}
		var got, want []string
		for i, k := range Pairs(all) {
			got = append(got, fmt.Sprint(i, k))
		}
		for i := range all {
			for k := range i {
				if Overlap(all[i], all[k]) {
					want = append(want, fmt.Sprint(k, i))
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%v: %v, want %v", all, got, want)
		}
	}
}
