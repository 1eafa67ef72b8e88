package record

import (
	"fmt"
	"slices"
)

// States returns all states.
func States() []State { return []State{Open, Later, Resolved, Discarded} }

// CheckState returns an error for an unknown state.
func CheckState(field string, s State) error {
	if slices.Contains(States(), s) {
		return nil
	}
	return Invalid(field, fmt.Sprintf("%.40q is not a state; valid states are OPEN, LATER, RESOLVED and DISCARDED", s))
}

// Text redacts a text.
func (b *Kernel) Text(s string) string {
	if b.Config.Filter == nil {
		return s
	}
	s, _ = b.Config.Filter.Text(s)
	return s
}

// Line redacts a text that must stay within a limit and on one line.
func (b *Kernel) Line(s string, limit int) string {
	s = b.Text(s)
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i]
		}
	}
	return s
}
