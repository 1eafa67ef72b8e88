package words

import "unicode/utf8"

// Edits returns how many letters must be added, removed, replaced or swapped with a
// neighbour to turn one word into another, at most most+1.
func Edits(a, b string, most int) int {
	if n := utf8.RuneCountInString(a) - utf8.RuneCountInString(b); n > most || -n > most {
		return most + 1
	}
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for k := range last {
		last[k] = k
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		best := i
		for k := 1; k <= len(y); k++ {
			change := 1
			if x[i-1] == y[k-1] {
				change = 0
			}
			row[k] = min(last[k]+1, row[k-1]+1, last[k-1]+change)
			if i > 1 && k > 1 && x[i-1] == y[k-2] && x[i-2] == y[k-1] {
				row[k] = min(row[k], before[k-2]+1)
			}
			best = min(best, row[k])
		}
		if best > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return min(last[len(y)], most+1)
}
