package shape

import "strings"

// Shape is a secret that is recognised by its prefix, alphabet and length.
type Shape struct {
	Name    string
	Literal string // the prefix
	Parts   string // the text after the prefix, see Match
	Flags   Flags
}

// Flags say how a shape is searched for.
type Flags uint8

// The flags of a shape.
const (
	AnyCase   Flags = 1 << iota // the literal is in lower case and matches any case
	Inside                      // may begin inside a word
	Needs0to9                   // has a digit near its start, which excludes words with hyphens
	KeepName                    // literal is a name that is kept
	Alone                       // does not begin after a hyphen, as in cache-key-…
)

// Middle is a secret that is recognised by a literal inside it.
type Middle struct {
	Name    string
	Before  string // the text before the literal, read backwards: parts of fixed length
	Literal string
	Parts   string // the text after the literal
}

// Match reports whether text has the given parts from i on, and returns where they end. A
// part is a literal in quotes ('-us'), or a class of bytes (see InClass) and their number.
// "x40" means forty, "d8-10" eight to ten, "w20+" twenty or more. Parts are matched
// greedily, without backtracking. A last part without "+" must not be followed by more
// bytes of its class or of a word.
func Match(text string, i int, parts string) (int, bool) {
	return (*RunCache)(nil).Match(text, i, parts)
}

// Match is the function Match with the cache.
func (r *RunCache) Match(text string, i int, parts string) (int, bool) {
	for parts != "" {
		if parts[0] == '\'' {
			n := strings.IndexByte(parts[1:], '\'')
			if !strings.HasPrefix(text[i:], parts[1:n+1]) {
				return 0, false
			}
			i, parts = i+n, parts[n+2:]
			continue
		}
		class, low, high, rest := Part(parts)
		n := r.Count(text, i, high, class)
		if n < low {
			return 0, false
		}
		i, parts = i+n, rest
		if rest == "" && high < Unbounded && i < len(text) && (IsWord(text[i]) || InClass(class, text[i])) {
			return 0, false
		}
	}
	return i, true
}

// RunCache caches the last counted run of each class, so that a run with many possible
// starts is counted once. A nil cache stores nothing.
type RunCache [len(Classes)]struct{ start, end int }

// Count is CountClass with the cache.
func (r *RunCache) Count(text string, i, limit int, class byte) int {
	if r == nil || limit < Unbounded {
		return CountClass(text, i, limit, class)
	}
	run := &r[strings.IndexByte(Classes, class)]
	if i < run.start || i >= run.end {
		run.start, run.end = i, i+CountClass(text, i, limit, class)
	}
	return run.end - i
}

// MatchBack is match for parts of fixed length that end before i. The last part is given
// first. The match must begin at the start of a word.
func MatchBack(text string, i int, parts string) (int, bool) {
	for parts != "" {
		if parts[0] == '\'' {
			n := strings.IndexByte(parts[1:], '\'')
			if !strings.HasSuffix(text[:i], parts[1:n+1]) {
				return 0, false
			}
			i, parts = i-n, parts[n+2:]
			continue
		}
		class, low, _, rest := Part(parts)
		if i < low || CountClass(text, i-low, low, class) < low {
			return 0, false
		}
		i, parts = i-low, rest
	}
	return i, true
}

// Unbounded is the limit of a part that may have any length.
const Unbounded = 1 << 30

// Part reads the first class and its numbers from parts.
func Part(parts string) (class byte, low, high int, rest string) {
	class, rest = parts[0], parts[1:]
	low, rest = number(rest)
	high = low
	if rest != "" && rest[0] == '-' {
		high, rest = number(rest[1:])
	} else if rest != "" && rest[0] == '+' {
		high, rest = Unbounded, rest[1:]
	}
	return class, low, high, rest
}

func number(s string) (int, string) {
	n := 0
	for s != "" && IsDigit(s[0]) {
		n, s = 10*n+int(s[0]-'0'), s[1:]
	}
	return n, s
}

// CountClass returns how many bytes of the class are at i, at most limit.
func CountClass(text string, i, limit int, class byte) int {
	n := 0
	for i+n < len(text) && n < limit && InClass(class, text[i+n]) {
		n++
	}
	return n
}

// Classes contains the letters of all classes of bytes, see InClass.
const Classes = "dxXuzawsbeGBFVJ%"

// InClass reports whether c belongs to a class of bytes:
//
//	d digits                 x, X hexadecimal, lower or any case
//	u capitals and digits    z letters              a letters and digits
//	w a and _                s a and -              b w and -
//	e b and =                G e and .              B a, + and /
//	F B, =, - and _          V F and .              J F, \ and line ends
//	% a and %
func InClass(class, c byte) bool {
	switch class {
	case 'd':
		return IsDigit(c)
	case 'x':
		return IsDigit(c) || 'a' <= c && c <= 'f'
	case 'X':
		return IsHex(c)
	case 'u':
		return IsDigit(c) || IsUpper(c)
	case 'z':
		return IsLetter(c)
	}
	return IsAlnum(c) || strings.IndexByte(classSigns(class), c) >= 0
}

// classSigns returns the characters of a class other than letters and digits.
func classSigns(class byte) string {
	switch class {
	case 'w':
		return "_"
	case 's':
		return "-"
	case 'b':
		return "_-"
	case 'e':
		return "_-="
	case 'G':
		return "_-=."
	case 'B':
		return "+/"
	case 'F':
		return "+/=-_"
	case 'V':
		return "+/=-_."
	case 'J':
		return "+/=-_\\\r\n"
	case '%':
		return "%"
	}
	return ""
}

// Vendor is a secret that is distinguished from other text only by its vendor's name.
type Vendor struct {
	Name    string
	Keyword string // in lower case; found in any case, also inside a name
	Parts   string // shape of the value, see Match
}
