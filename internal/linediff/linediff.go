// Package linediff compares texts line by line: it returns unified diffs and merges two
// texts that have a common base.
package linediff

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Unified returns the unified diff of two texts with the given names, or "" if they are
// equal. Lines end in \n; a missing one at the end is marked as in other tools.
func Unified(oldName, newName, before, after string) string {
	return udiff.Unified(oldName, newName, before, after)
}

// Merge combines the line changes of two texts that were both made from base. Equal
// changes are applied once. ok is false if both texts changed the same or adjacent lines
// in different ways. The result does not depend on the order of a and b.
func Merge(base, a, b string) (merged string, ok bool) {
	x, y := udiff.Lines(base, a), udiff.Lines(base, b)
	var out strings.Builder
	at := 0
	take := func(e udiff.Edit) {
		out.WriteString(base[at:e.Start])
		out.WriteString(e.New)
		at = e.End
	}
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0] == y[0]:
			take(x[0])
			x, y = x[1:], y[1:]
		case x[0].End < y[0].Start:
			take(x[0])
			x = x[1:]
		case y[0].End < x[0].Start:
			take(y[0])
			y = y[1:]
		default:
			return "", false
		}
	}
	for _, e := range append(x, y...) {
		take(e)
	}
	out.WriteString(base[at:])
	return out.String(), true
}
