package pathpattern

import "slices"

// Matches reports whether the pattern covers the path. A name such as tool://x covers no
// path.
func (p Pattern) Matches(path Path) bool {
	segments := path.plain
	if p.foldCase {
		segments = path.folding
	}
	if len(segments) == 0 {
		return false
	}
	for _, reading := range p.readings {
		if reading != nil && fits(reading, segments, segment.isDeep, segmentsCover) {
			return true
		}
	}
	return false
}

func segmentsCover(pattern []segment, path []pathSegment) bool {
	for i, s := range pattern {
		if s.tokens == nil {
			if s.text != path[i].text {
				return false
			}
		} else if !fits(s.tokens, path[i].runes, token.isStar, tokensCover) {
			return false
		}
	}
	return true
}

func tokensCover(tokens []token, text []rune) bool {
	for i := range tokens {
		if !tokens[i].covers(text[i]) {
			return false
		}
	}
	return true
}

// Overlap reports whether some path is covered by both patterns, or both are
// the same name such as tool://x. It is exact, symmetric, and true for a pattern
// and itself. Both must have been parsed with the same FoldCase.
//
// There is one exception to exactness: Overlap ignores that a combining mark joins the
// character before it in NFC. So "e*" and "?\u0301" overlap although the path that they
// share is spelled differently.
func Overlap(a, b Pattern) bool { return overlap(a, b, eachMeets) }

// overlap takes the comparison of tokens as an argument, so that a test can count the
// steps.
func overlap(a, b Pattern, meet func(a, b []token) bool) bool {
	if a.exact || b.exact {
		return a.exact && b.exact && a.text == b.text
	}
	segments := func(x, y []segment) bool {
		for i := range x {
			if !segmentsMeet(x[i], y[i], meet) {
				return false
			}
		}
		return true
	}
	for _, x := range a.readings {
		for _, y := range b.readings {
			if x != nil && y != nil && intersects(x, y, segment.isDeep, segments) {
				return true
			}
		}
	}
	return false
}

// segmentsMeet reports whether some segment of a path is covered by both, neither
// of them deep or barren.
func segmentsMeet(s, t segment, meet func(a, b []token) bool) bool {
	if s.tokens == nil {
		s, t = t, s
	}
	switch {
	case s.tokens == nil:
		return s.text == t.text
	case t.tokens == nil:
		return fits(s.tokens, literals(t.text), token.isStar, meet)
	}
	return tokensMeet(s.tokens, t.tokens, meet)
}

// tokensMeet is segmentsMeet for wildcards on both sides. It must exclude segments whose
// only common texts are "." and "..". With stars on both sides there are longer common
// texts. Otherwise the length is fixed, and one character must differ from a full stop.
func tokensMeet(a, b []token, meet func(a, b []token) bool) bool {
	if slices.ContainsFunc(b, token.isStar) {
		a, b = b, a
	}
	if len(b) > 2 || slices.ContainsFunc(b, token.isStar) {
		return intersects(a, b, token.isStar, meet)
	}
	for i := range b {
		rest, ok := b[i].exceptDot()
		if !ok {
			continue
		}
		other := slices.Clone(b)
		if other[i] = rest; intersects(a, other, token.isStar, meet) {
			return true
		}
	}
	return false
}

// intersects reports whether some word matches both sequences. A star matches any number
// of letters. Any other element matches one of its own letters, of which it has at least
// one. meet reports whether two sequences of equal length without stars have a letter in
// common at every place. It is called at most once for each pair of places.
//
// With stars on both sides, only the parts before the first star and after the last one
// can differ. Between them, each side's stars match any text of the other side.
func intersects[E any](a, b []E, isStar func(E) bool, meet func(a, b []E) bool) bool {
	atA, atB := slices.IndexFunc(a, isStar), slices.IndexFunc(b, isStar)
	switch {
	case atB < 0:
		return fits(a, b, isStar, meet)
	case atA < 0:
		return fits(b, a, isStar, meet)
	}
	n := min(atA, atB)
	if !meet(a[:n], b[:n]) {
		return false
	}
	a, b = afterLast(a, isStar), afterLast(b, isStar)
	n = min(len(a), len(b))
	return meet(a[len(a)-n:], b[len(b)-n:])
}

// fits reports whether a, which may have stars, matches b, which has none. The head of a
// must match the start of b, and its tail the end. Each part between two stars must match
// at the first free place that fits. meet is as for intersects.
func fits[A, B any](a []A, b []B, isStar func(A) bool, meet func([]A, []B) bool) bool {
	at := slices.IndexFunc(a, isStar)
	if at < 0 {
		return len(a) == len(b) && meet(a, b)
	}
	head, tail := a[:at], afterLast(a, isStar)
	if len(head)+len(tail) > len(b) || !meet(head, b[:at]) {
		return false
	}
	end := len(b) - len(tail)
	if !meet(tail, b[end:]) {
		return false
	}
	a, b = a[at+1:len(a)-len(tail)], b[at:end]
	for len(a) > 0 { // pieces, each with the star after it
		n := slices.IndexFunc(a, isStar)
		for len(b) >= n && !meet(a[:n], b[:n]) {
			b = b[1:]
		}
		if len(b) < n {
			return false
		}
		a, b = a[n+1:], b[n:]
	}
	return true
}

func afterLast[E any](a []E, isStar func(E) bool) []E {
	for i := len(a) - 1; i >= 0; i-- {
		if isStar(a[i]) {
			return a[i+1:]
		}
	}
	return a
}
