package looks

import (
	"strings"

	"cairn/internal/redact/shape"
)

// stretch is the part of a word that is least similar to language.
type stretch struct {
	Start, End int // bytes in the word
	HalfBits   int // evidence that it is random, in half bits; 0 for none
}

// LongestChecked is the maximum number of bytes of a word that are read if only the
// decision matters.
const LongestChecked = 512

// Strange reports whether the stretch of word is a secret. It must be most of the word
// with some evidence, half of it with dense evidence, or a long part with much evidence.
// Longer words, names with many joints and names without a digit require more evidence.
func (r stretch) Strange(word string, some, much int) bool {
	const long = 18
	n := r.End - r.Start
	part := word[r.Start:r.End]
	if !strings.ContainsAny(part, "0123456789") {
		some += 8
	}
	joints := strings.Count(part, "-") + strings.Count(part, ".") + strings.Count(part, "_")
	bits := r.HalfBits - 5*max(0, joints-1-n/16)
	switch {
	case 4*n >= 3*len(word):
		return bits >= max(some, n-4)
	case 2*n >= len(word) && bits >= max(some+12, 2*n):
		return true
	}
	return n >= long && bits >= max(much, n)
}

// Evidence in half bits, in addition to that of bigrams. It is positive for features that
// are more frequent in random text than in names and words.
const (
	evidenceDigit     = 3  // a digit after a letter
	evidenceAfter     = 4  // a letter after a digit
	evidenceHump      = 4  // a capital after a small letter
	evidenceNext      = -3 // a letter after its neighbour in the alphabet
	evidencePath      = -5 // a slash
	evidenceSeparator = -4 // a dot, a hyphen, …
)

// Strangest finds the part of word with the most evidence of randomness. In that part the
// sequence of letters, digits and capitals is least similar to names and words (the
// greatest sum of consecutive terms). It skips random but public parts: UUIDs, runs of
// hexadecimal digits and matches of public.
func Strangest(word string) stretch {
	var best stretch
	start, sum, run := 0, 0, 0
	neutral := false
	for i := 0; i < len(word); i++ {
		c := word[i]
		if i >= run && (i == 0 || !shape.IsAlnum(word[i-1])) {
			if n := publicAt(word, i); n > 0 {
				i += n - 1
				start, sum, run = i+1, 0, i+1
				continue
			}
			run = i + shape.CountClass(word, i, len(word), 'a')
			neutral = HexRun(word[i:run])
		}
		switch {
		case c >= 0x80:
			sum = 0
		case neutral && i < run:
		case i == 0:
		default:
			sum += evidence(word[i-1], c)
		}
		if sum <= 0 {
			sum, start = 0, i+1
		} else if sum > best.HalfBits {
			best.HalfBits, best.Start, best.End = sum, start, i+1
		}
	}
	return best
}

// evidence returns the evidence of the byte c following p.
func evidence(p, c byte) int {
	switch {
	case !shape.IsAlnum(c):
		return evidenceOf(c)
	case !shape.IsAlnum(p), shape.IsDigit(c) && shape.IsDigit(p):
		return 0
	case shape.IsDigit(c):
		return evidenceDigit
	case shape.IsDigit(p):
		return evidenceAfter
	case shape.IsUpper(c) && !shape.IsUpper(p):
		return evidenceHump
	case c-p == 1 || p-c == 1:
		return evidenceNext
	}
	return int(bigrams[26*int(p|0x20-'a')+int(c|0x20-'a')]) - 'K'
}

func evidenceOf(c byte) int {
	switch c {
	case '/', '\\':
		return evidencePath
	case '+', '=', '!', '#', '$', '%', '^', '&', '*', '@', '~':
		return 0
	}
	return evidenceSeparator
}

// HexRun reports whether a run of letters and digits is a hexadecimal number. It must be
// long enough, contain a digit, and use one case.
func HexRun(s string) bool {
	const shortest = 6
	var digit, small, capital bool
	for i := range len(s) {
		c := s[i]
		switch {
		case shape.IsDigit(c):
			digit = true
		case 'a' <= c && c <= 'f':
			small = true
		case 'A' <= c && c <= 'F':
			capital = true
		default:
			return false
		}
	}
	return len(s) >= shortest && digit && !(small && capital)
}

// Whole returns the bytes of word to redact for the stretch. They are a value without its
// name, or the part of a path or URL that contains the stretch.
func (r stretch) Whole(word string) (int, int) {
	start, end := 0, len(word)
	if i := strings.IndexAny(word, "=:"); i > 0 && i <= r.Start && i < len(word)-1 {
		start = i + 1
	}
	if 5*(r.End-r.Start) >= 3*(end-start) && !strings.Contains(word, "://") {
		return start, end
	}
	const separators = "/=:&?@#|\\~*!$^%"
	if i := strings.LastIndexAny(word[:r.Start], separators); i >= 0 {
		start = max(start, i+1)
	}
	if i := strings.IndexAny(word[r.End:], separators); i >= 0 {
		end = r.End + i
	}
	return start, end
}
