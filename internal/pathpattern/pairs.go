package pathpattern

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Pairs are the pairs of patterns that overlap, by their places in the list, the lower one
// first. Only patterns of which one's literal prefix begins the other's are compared.
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
