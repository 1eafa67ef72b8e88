package looks

import (
	"math"
	"math/bits"
	"strings"

	"cairn/internal/redact/shape"
)

// IsName reports whether v is a name made of words rather than a key. It has no digit
// between its letters, and its letters are not strange.
func IsName(v string) bool {
	return !strings.ContainsAny(v, "0123456789") && Strangest(v).HalfBits < 12
}

// Random reports whether v is not just a name, a path, a version or a date. between
// is the text between a keyword and v. A value of 32 hexadecimal digits counts. Values of
// 40 and 64 do not, because they are hashes.
func Random(v, between string) bool {
	const bits = 3.5
	switch {
	case isDigest(v):
		return false
	case len(v) == 32 && AllHex(v):
		return sameName(between)
	case Shannon(v) <= bits:
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
	return Strangest(v).HalfBits >= needed
}

// sameName reports whether between, the text between a keyword and the value, contains no
// second name: "key = " and "_id: ", but not "service trace_id=".
func sameName(between string) bool {
	blank := false
	for i := range len(between) {
		if shape.IsWord(between[i]) && blank {
			return false
		}
		blank = blank || shape.IsBlank(between[i])
	}
	return true
}

// isDigest reports whether v is a UUID or as long as a Git or SHA-256 hash in
// hexadecimal. Such values are more often identifiers than secrets.
func isDigest(v string) bool {
	return shape.IsUUID(v) || (len(v) == 40 || len(v) == 64) && AllHex(v) && (v == strings.ToLower(v) || v == strings.ToUpper(v))
}

// AllHex reports whether v consists of hexadecimal digits.
func AllHex(v string) bool {
	return shape.CountClass(v, 0, len(v), 'X') == len(v)
}

// Spread reports whether s contains enough different bytes to reach an entropy of b bits
// per byte. It quickly excludes most words.
func Spread(s string, b float64) bool {
	var seen [4]uint64
	for i := range len(s) {
		seen[s[i]>>6] |= 1 << (s[i] & 63)
	}
	n := 0
	for _, w := range seen {
		n += bits.OnesCount64(w)
	}
	return float64(n) >= math.Exp2(b)
}

// Shannon returns the entropy of s in bits per byte.
func Shannon(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	total, sum := float64(len(s)), 0.0
	for _, n := range count {
		if n > 0 {
			sum -= float64(n) / total * math.Log2(float64(n)/total)
		}
	}
	return sum
}
