package redact

import "strings"

// shape is a secret that is recognised by its prefix, alphabet and length.
type shape struct {
	name    string
	literal string // the prefix
	parts   string // the text after the prefix, see match
	flags   flags
}

type flags uint8

const (
	anyCase   flags = 1 << iota // the literal is in lower case and matches any case
	inside                      // may begin inside a word
	needs0to9                   // has a digit near its start, which excludes words with hyphens
	keepName                    // literal is a name that is kept
	alone                       // does not begin after a hyphen, as in cache-key-…
)

// earlyDigit is the number of bytes of a needs0to9 shape that are searched for a digit.
const earlyDigit = 64

func (s *scan) shape(r *shape, start, end int) {
	if r.flags&inside == 0 && !wordStart(s.text, start) || r.flags&alone != 0 && start > 0 && s.text[start-1] == '-' {
		return
	}
	last, ok := s.runs.match(s.text, end, r.parts)
	if !ok {
		return
	}
	if r.flags&needs0to9 != 0 && !strings.ContainsAny(s.text[end:min(last, end+earlyDigit)], "0123456789") {
		return
	}
	if r.flags&keepName != 0 {
		start = end
	}
	s.add(r.name, start, last)
}

// middle is a secret that is recognised by a literal inside it.
type middle struct {
	name    string
	before  string // the text before the literal, read backwards: parts of fixed length
	literal string
	parts   string // the text after the literal
}

func (s *scan) middle(r *middle, start, end int) {
	first, ok := matchBack(s.text, start, r.before)
	if !ok {
		return
	}
	if last, ok := s.runs.match(s.text, end, r.parts); ok {
		s.add(r.name, first, last)
	}
}

// match reports whether text has the given parts from i on, and returns where they end. A
// part is a literal in quotes ('-us'), or a class of bytes (see inClass) and their number.
// "x40" means forty, "d8-10" eight to ten, "w20+" twenty or more. Parts are matched
// greedily, without backtracking. A last part without "+" must not be followed by more
// bytes of its class or of a word.
func match(text string, i int, parts string) (int, bool) {
	return (*runCache)(nil).match(text, i, parts)
}

func (r *runCache) match(text string, i int, parts string) (int, bool) {
	for parts != "" {
		if parts[0] == '\'' {
			n := strings.IndexByte(parts[1:], '\'')
			if !strings.HasPrefix(text[i:], parts[1:n+1]) {
				return 0, false
			}
			i, parts = i+n, parts[n+2:]
			continue
		}
		class, low, high, rest := part(parts)
		n := r.count(text, i, high, class)
		if n < low {
			return 0, false
		}
		i, parts = i+n, rest
		if rest == "" && high < unbounded && i < len(text) && (isWord(text[i]) || inClass(class, text[i])) {
			return 0, false
		}
	}
	return i, true
}

// runCache caches the last counted run of each class, so that a run with many possible
// starts is counted once. A nil cache stores nothing.
type runCache [len(classes)]struct{ start, end int }

func (r *runCache) count(text string, i, limit int, class byte) int {
	if r == nil || limit < unbounded {
		return countClass(text, i, limit, class)
	}
	run := &r[strings.IndexByte(classes, class)]
	if i < run.start || i >= run.end {
		run.start, run.end = i, i+countClass(text, i, limit, class)
	}
	return run.end - i
}

// matchBack is match for parts of fixed length that end before i. The last part is given
// first. The match must begin at the start of a word.
func matchBack(text string, i int, parts string) (int, bool) {
	for parts != "" {
		if parts[0] == '\'' {
			n := strings.IndexByte(parts[1:], '\'')
			if !strings.HasSuffix(text[:i], parts[1:n+1]) {
				return 0, false
			}
			i, parts = i-n, parts[n+2:]
			continue
		}
		class, low, _, rest := part(parts)
		if i < low || countClass(text, i-low, low, class) < low {
			return 0, false
		}
		i, parts = i-low, rest
	}
	return i, true
}

const unbounded = 1 << 30

// part reads the first class and its numbers from parts.
func part(parts string) (class byte, low, high int, rest string) {
	class, rest = parts[0], parts[1:]
	low, rest = number(rest)
	high = low
	if rest != "" && rest[0] == '-' {
		high, rest = number(rest[1:])
	} else if rest != "" && rest[0] == '+' {
		high, rest = unbounded, rest[1:]
	}
	return class, low, high, rest
}

func number(s string) (int, string) {
	n := 0
	for s != "" && isDigit(s[0]) {
		n, s = 10*n+int(s[0]-'0'), s[1:]
	}
	return n, s
}

// countClass returns how many bytes of the class are at i, at most limit.
func countClass(text string, i, limit int, class byte) int {
	n := 0
	for i+n < len(text) && n < limit && inClass(class, text[i+n]) {
		n++
	}
	return n
}

const classes = "dxXuzawsbeGBFVJ%"

// inClass reports whether c belongs to a class of bytes:
//
//	d digits                 x, X hexadecimal, lower or any case
//	u capitals and digits    z letters              a letters and digits
//	w a and _                s a and -              b w and -
//	e b and =                G e and .              B a, + and /
//	F B, =, - and _          V F and .              J F, \ and line ends
//	% a and %
func inClass(class, c byte) bool {
	switch class {
	case 'd':
		return isDigit(c)
	case 'x':
		return isDigit(c) || 'a' <= c && c <= 'f'
	case 'X':
		return isHex(c)
	case 'u':
		return isDigit(c) || isUpper(c)
	case 'z':
		return isLetter(c)
	}
	return isAlnum(c) || strings.IndexByte(classSigns(class), c) >= 0
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

// apiKey handles "sk-", the prefix of several model vendors' keys. Other names also begin
// with it, so a key must contain a long part that does not consist of words.
func (s *scan) apiKey(start, end int) {
	if start < s.apiKeyEnd || !wordStart(s.text, start) {
		return
	}
	last := end + s.runs.count(s.text, end, unbounded, 'b')
	s.apiKeyEnd = min(last, end+longestChecked)
	body := s.text[end:s.apiKeyEnd]
	const (
		shortest    = 20
		longestWord = 24
	)
	if len(body) < shortest {
		return
	}
	plain := countClass(body, 0, len(body), 'a')
	digits := strings.ContainsAny(body, "0123456789")
	bits := strangest(body).halfBits
	switch {
	case isKeyKind(body) && (bits >= 12 || digits && hasLongRun(body, 16)),
		plain >= shortest && (digits || bits >= 12 || plain >= longestWord),
		bits >= 24 && digits:
		s.add("sk_api_key", start, last)
	}
}

// isKeyKind reports whether body, after "sk-", begins with a vendor's kind of key.
func isKeyKind(body string) bool {
	for _, kind := range [...]string{"ant-", "proj-", "svcacct-", "admin-", "or-v1-", "None-"} {
		if strings.HasPrefix(body, kind) {
			return true
		}
	}
	return false
}

// hasLongRun reports whether n letters and digits follow one another in s.
func hasLongRun(s string, n int) bool {
	for i := 0; i < len(s); i++ {
		run := countClass(s, i, n, 'a')
		if run == n {
			return true
		}
		i += run
	}
	return false
}

// jwt handles "eyJ" and ".ey" for JSON web tokens. "eyJ" is the start of a JSON object in
// base64, so every part of a token except the signature begins with it. ".ey" occurs in
// the middle of a token.
func (s *scan) jwt(start, end int) {
	if s.text[start] == '.' {
		s.jwtMiddle(start)
		return
	}
	if s.text[start:end] != "eyJ" || start < s.notJWTEnd || !wordStart(s.text, start) {
		return
	}
	header := end + s.runs.count(s.text, end, unbounded, 'b')
	if header-start < 12 || header == len(s.text) || s.text[header] != '.' {
		s.notJWTEnd = header
		return
	}
	last, dots := header, 0
	for last < len(s.text) && s.text[last] == '.' {
		n := countClass(s.text, last+1, unbounded, 'F')
		if n == 0 && dots > 0 {
			break
		}
		dots, last = dots+1, last+1+n
	}
	if last-header > 8 {
		s.add("jwt", start, last)
		s.notJWTEnd = last
	}
}

// jwtMiddle handles ".ey" between the header and the payload of a token whose header does
// not begin in the usual way.
func (s *scan) jwtMiddle(dot int) {
	if dot < s.notJWTEnd {
		return
	}
	first := back(s.text, dot, 4096, func(c byte) bool { return inClass('b', c) })
	header := s.text[first:dot]
	if i := strings.Index(header, "ey"); i < 0 || len(header)-i < 17 || !wordStart(header, i) {
		return
	} else {
		first += i
	}
	last := dot
	for last < len(s.text) && s.text[last] == '.' {
		n := countClass(s.text, last+1, unbounded, 'J')
		if n < 3 {
			break
		}
		last += 1 + n
	}
	if last-dot > 17 {
		s.add("jwt", first, last)
		s.notJWTEnd = last
	}
}
