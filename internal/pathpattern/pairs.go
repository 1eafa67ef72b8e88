package pathpattern

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Pairs returns the pairs of overlapping patterns, by index, the lower one first. It
// compares only patterns where the literal prefix of one is a prefix of the other's.
func Pairs(patterns []Pattern) iter.Seq2[int, int] {
	order := make([]int, len(patterns))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(patterns[a].prefix, patterns[b].prefix), cmp.Compare(a, b))
	})
	return func(yield func(int, int) bool) {
		for at, i := range order {
			for _, k := range order[at+1:] {
				if !strings.HasPrefix(patterns[k].prefix, patterns[i].prefix) {
					break
				}
				if Overlap(patterns[i], patterns[k]) && !yield(min(i, k), max(i, k)) {
					return
				}
			}
		}
	}
}
