package pathpattern

import (
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// token is a part of a segment: one literal character, or one of the three wildcards,
// which have a negative r.
type token struct {
	r   rune
	set []span // of a class: sorted, disjoint, within the universe, closed over case if case does not matter
}

const (
	anyRune = -1 - iota // ?
	star                // *
	oneOf               // [...]
)

// span is a range of characters with both its ends.
type span struct{ lo, hi rune }

func (t token) isStar() bool { return t.r == star }

// universe returns every character that a segment may contain.
func universe() []span {
	return []span{{1, '/' - 1}, {'/' + 1, '\\' - 1}, {'\\' + 1, 0xD7FF}, {0xE000, unicode.MaxRune}}
}

// maxCased is the maximum number of letters that are folded in one pattern's classes.
// Real patterns have far fewer. A class beyond the limit counts as "?", which covers
// more.
const maxCased = 4096

// charClass is a class as it is written.
type charClass struct {
	spans   []span
	negated bool
}

// readClass parses the class at the start of text, a "[", and returns its length in
// bytes. ok is false if the class is not closed.
func readClass(text string) (class charClass, n int, ok bool) {
	i := 1
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		class.negated = true
		i++
	}
	for first := i; i < len(text); {
		lo, size := utf8.DecodeRuneInString(text[i:])
		if lo == ']' && i > first {
			return class, i + 1, true
		}
		i += size
		hi := lo
		if i+1 < len(text) && text[i] == '-' && text[i+1] != ']' {
			hi, size = utf8.DecodeRuneInString(text[i+1:])
			i += 1 + size
		}
		if lo <= hi {
			class.spans = append(class.spans, span{lo, hi})
		}
	}
	return charClass{}, 0, false
}

func (c *compiler) class(class charClass) token {
	c.classes++
	spans := merged(class.spans)
	if c.foldCase {
		var ok bool
		if spans, ok = c.closed(spans); !ok {
			return token{r: anyRune}
		}
	}
	if class.negated {
		spans = complement(spans)
	}
	return token{r: oneOf, set: intersect(spans, universe())}
}

// closed adds every character that differs from a member only by case. ok is false if
// there are too many.
func (c *compiler) closed(spans []span) (all []span, ok bool) {
	all = slices.Clone(spans)
	for _, s := range spans {
		if s.lo <= 'ß' && 'ß' <= s.hi { // the only letter with a capital that is in no CaseRange
			all = append(all, span{'ẞ', 'ẞ'})
		}
		for _, letters := range unicode.CaseRanges {
			lo, hi := max(s.lo, rune(letters.Lo)), min(s.hi, rune(letters.Hi))
			if s.hi < rune(letters.Lo) {
				break
			}
			if hi < lo {
				continue
			}
			if c.cased += int(hi-lo) + 1; c.cased > maxCased {
				return nil, false
			}
			for r := lo; r <= hi; r++ {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					all = append(all, span{f, f})
				}
			}
		}
	}
	return merged(all), true
}

// merged sorts spans and joins adjacent ones.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	out := spans[:0]
	for _, s := range spans {
		if last := len(out) - 1; last >= 0 && s.lo <= out[last].hi+1 {
			out[last].hi = max(out[last].hi, s.hi)
			continue
		}
		out = append(out, s)
	}
	return out
}

func complement(spans []span) []span {
	var out []span
	next := rune(0)
	for _, s := range spans {
		if next < s.lo {
			out = append(out, span{next, s.lo - 1})
		}
		next = s.hi + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, span{next, unicode.MaxRune})
	}
	return out
}

func intersect(a, b []span) []span {
	var out []span
	for len(a) > 0 && len(b) > 0 {
		if lo, hi := max(a[0].lo, b[0].lo), min(a[0].hi, b[0].hi); lo <= hi {
			out = append(out, span{lo, hi})
		}
		if a[0].hi < b[0].hi {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

func touch(a, b []span) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].hi < b[0].lo:
			a = a[1:]
		case b[0].hi < a[0].lo:
			b = b[1:]
		default:
			return true
		}
	}
	return false
}

func contains(spans []span, r rune) bool {
	lo, hi := 0, len(spans)
	for lo < hi {
		if mid := (lo + hi) / 2; spans[mid].hi < r {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(spans) && spans[lo].lo <= r
}

// literals returns the tokens of a text without wildcards.
func literals(text string) []token {
	tokens := make([]token, 0, len(text))
	for _, r := range text {
		tokens = append(tokens, token{r: r})
	}
	return tokens
}

// eachMeets reports whether two sequences of tokens of equal length, without stars and
// empty classes, have a common character at every place.
func eachMeets(a, b []token) bool {
	for i := range a {
		if u := &b[i]; u.r >= 0 {
			if !a[i].covers(u.r) {
				return false
			}
		} else if !a[i].meets(u) {
			return false
		}
	}
	return true
}

func (t *token) meets(wild *token) bool {
	switch {
	case t.r >= 0:
		return wild.covers(t.r)
	case t.r == anyRune || wild.r == anyRune:
		return true
	}
	return touch(t.set, wild.set)
}

func (t *token) covers(r rune) bool {
	return t.r == r || t.r == anyRune || t.r == oneOf && contains(t.set, r)
}

// exceptDot returns the token without the full stop; ok is false if nothing is left.
func (t token) exceptDot() (rest token, ok bool) {
	switch t.r {
	case anyRune:
		t.set = universe()
	case oneOf:
	default:
		return t, t.r != '.'
	}
	set := intersect(t.set, complement([]span{{'.', '.'}}))
	return token{r: oneOf, set: set}, len(set) > 0
}

// isBarren reports whether a segment can only match "." or "..", which are not segments.
func isBarren(tokens []token) bool {
	for _, t := range tokens {
		if t.r == oneOf && len(t.set) == 0 {
			return true
		}
	}
	return !tokensMeet(tokens, []token{{r: star}}, eachMeets)
}

// fold returns the case-folded text. It folds each part independently and is idempotent.
func fold(t string) string {
	for i := range len(t) {
		if t[i] >= utf8.RuneSelf || 'A' <= t[i] && t[i] <= 'Z' {
			runes := []rune(t)
			for i, r := range runes {
				runes[i] = foldRune(r)
			}
			return string(runes)
		}
	}
	return t
}

// foldRune returns the same character for all characters that differ only by case
// (Unicode's simple case folding): the lower-case one if they are ASCII letters, else the
// first.
func foldRune(r rune) rune {
	if r >= utf8.RuneSelf {
		first := r
		for f := unicode.SimpleFold(r); f != first; f = unicode.SimpleFold(f) {
			r = min(r, f)
		}
	}
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}
