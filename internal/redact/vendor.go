package redact

import "strings"

// vendor is a secret that is distinguished from other text only by its vendor's name.
type vendor struct {
	name    string
	keyword string // in lower case; found in any case, also inside a name
	parts   string // shape of the value, see match
}

// vendor searches for a value of the vendor's shape after its name, which ends at i. A
// run of letters that reads like a word is not a value.
func (s *scan) vendor(r *vendor, i int) {
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
		if end, ok := match(s.text, start, r.parts); ok {
			if v := s.text[start:end]; !isName(v) {
				s.add(r.name, start, end)
			}
			return
		}
	}
}

// isName reports whether v is a name made of words rather than a key. It has no digit
// between its letters, and its letters are not strange.
func isName(v string) bool {
	return !strings.ContainsAny(v, "0123456789") && strangest(v).halfBits < 12
}

// valueAfter returns the start of the value assigned to a name whose keyword ends at i. It
// skips up to reach bytes of name and blanks, quotes, a sign (= := : => == || ?= > or a
// comma), blanks and quotes.
func valueAfter(t string, i, reach int) (int, bool) {
	i = skip(t, i, reach, func(c byte) bool { return isWord(c) || c == '.' || c == '-' || isBlank(c) })
	i = skip(t, i, 6, func(c byte) bool { return isSpace(c) || isQuote(c) || c == '\\' })
	sign := skip(t, i, 4, func(c byte) bool { return strings.IndexByte("=:>|?,", c) >= 0 })
	switch t[i:sign] {
	case "", "|", "?", "::", ":::":
		return 0, false
	}
	return skip(t, sign, 6, func(c byte) bool { return isSpace(c) || isQuote(c) || c == '=' || c == '\\' }), true
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
	last := start + countClass(s.text, start, longest, 'V')
	if last < len(s.text) && strings.IndexByte("([{", s.text[last]) >= 0 { // a call
		return
	}
	v := strings.TrimRight(s.text[start:last], ".")
	if len(v) >= shortest && !isKubernetesName(v) && looksRandom(v, s.text[end:start]) {
		s.add("random_named_value", start, start+len(v))
	}
}

// looksRandom reports whether v is not just a name, a path, a version or a date. between
// is the text between a keyword and v. A value of 32 hexadecimal digits counts. Values of
// 40 and 64 do not, because they are hashes.
func looksRandom(v, between string) bool {
	const bits = 3.5
	switch {
	case isDigest(v):
		return false
	case len(v) == 32 && allHex(v):
		return sameName(between)
	case shannon(v) <= bits:
		return false
	}
	needed := min(max(len(v)-6, 6), 24) // half bits
	if !strings.ContainsAny(v, "0123456789") {
		if !strings.ContainsAny(v, "+/=") {
			return false
		}
		needed = max(needed, 16)
	}
	if strings.Contains(v, "/") && strings.ContainsAny(v, "._-") || strings.Contains(between, "\n") {
		needed = 24 // a path, or the beginning of the next line
	}
	return strangest(v).halfBits >= needed
}

// sameName reports whether between, the text between a keyword and the value, contains no
// second name: "key = " and "_id: ", but not "service trace_id=".
func sameName(between string) bool {
	blank := false
	for i := range len(between) {
		if isWord(between[i]) && blank {
			return false
		}
		blank = blank || isBlank(between[i])
	}
	return true
}

// isDigest reports whether v is a UUID or as long as a Git or SHA-256 hash in
// hexadecimal. Such values are more often identifiers than secrets.
func isDigest(v string) bool {
	return isUUID(v) || (len(v) == 40 || len(v) == 64) && allHex(v) && (v == strings.ToLower(v) || v == strings.ToUpper(v))
}

func allHex(v string) bool {
	return countClass(v, 0, len(v), 'X') == len(v)
}
