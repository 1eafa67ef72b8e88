package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

// vendor searches for a value of the vendor's shape after its name, which ends at i. A
// run of letters that reads like a word is not a value.
func (s *scan) vendor(r *shape.Vendor, i int) {
	const reach = 36 // bytes of name between the keyword and the sign
	value, ok := valueAfter(s.text, i, reach)
	if !ok {
		return
	}
	// The alphabet of some values contains "=", which valueAfter treats as a sign.
	for back := 0; back <= 2; back++ {
		start := value - back
		if back > 0 && s.text[start] != '=' {
			return
		}
		if end, ok := shape.Match(s.text, start, r.Parts); ok {
			if v := s.text[start:end]; !looks.IsName(v) {
				s.add(r.Name, start, end)
			}
			return
		}
	}
}

// valueAfter returns the start of the value assigned to a name whose keyword ends at i. It
// skips up to reach bytes of name and blanks, quotes, a sign (= := : => == || ?= > or a
// comma), blanks and quotes.
func valueAfter(t string, i, reach int) (int, bool) {
	i = shape.Skip(t, i, reach, func(c byte) bool { return shape.IsWord(c) || c == '.' || c == '-' || shape.IsBlank(c) })
	i = shape.Skip(t, i, 6, func(c byte) bool { return shape.IsSpace(c) || shape.IsQuote(c) || c == '\\' })
	sign := shape.Skip(t, i, 4, func(c byte) bool { return strings.IndexByte("=:>|?,", c) >= 0 })
	switch t[i:sign] {
	case "", "|", "?", "::", ":::":
		return 0, false
	}
	return shape.Skip(t, sign, 6, func(c byte) bool { return shape.IsSpace(c) || shape.IsQuote(c) || c == '=' || c == '\\' }), true
}

// randomNamed searches for a random-looking value after a name that contains a word such
// as "auth" or "key".
func (s *scan) randomNamed(_, end int) {
	const (
		reach    = 20
		shortest = 10
		longest  = 200
	)
	start, ok := valueAfter(s.text, end, reach)
	if !ok {
		return
	}
	last := start + shape.CountClass(s.text, start, longest, 'V')
	if last < len(s.text) && strings.IndexByte("([{", s.text[last]) >= 0 { // a call
		return
	}
	v := strings.TrimRight(s.text[start:last], ".")
	if len(v) >= shortest && !looks.IsKubernetesName(v) && looks.Random(v, s.text[end:start]) {
		s.add("random_named_value", start, start+len(v))
	}
}
