// Package linediff compares texts line by line: the unified diff that people
// read, and the merge of two texts that began as one.
package linediff

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Unified is the unified diff of two texts under two names, "" if they are equal.
// Lines end in \n; a last one without is marked as in other tools.
func Unified(oldName, newName, before, after string) string {
	return udiff.Unified(oldName, newName, before, after)
}

// Merge brings the changes of two texts together that were both made from base,
// line by line. ok is false where both changed the same lines, or lines that
// touch, in different ways; equal changes count once. The result does not depend
// on which of the two comes first.
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
