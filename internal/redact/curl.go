package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

// curl reads the arguments of curl in text[i:last].
func (s *scan) curl(i, last int) {
	t := s.text
	sure := true // the argument belongs to the same command
	for i < last {
		arg, argEnd := nextArgument(t, i, last)
		if arg == argEnd {
			return
		}
		line := i + strings.IndexByte(t[i:arg], '\n')
		sure = sure && (line < i || continued(t, line))
		s.curlArgument(arg, argEnd, last, sure)
		i = argEnd
	}
}

// curlArgument handles one argument of curl: -u user:password and -H "X-Key: v". If the
// argument may belong to another command, user:password must not be two words, like
// user:group.
func (s *scan) curlArgument(arg, argEnd, last int, sure bool) {
	t := s.text
	value, valueEnd := argEnd, argEnd
	flag := t[arg:argEnd]
	for _, name := range [...]string{"--user", "-u", "--proxy-user", "-U", "--header", "-H", "-b", "--oauth2-bearer"} {
		if !strings.HasPrefix(flag, name) {
			continue
		}
		switch rest := flag[len(name):]; {
		case rest == "":
			value = shape.Skip(t, argEnd, last-argEnd, func(c byte) bool { return shape.IsSpace(c) || c == '\\' })
			valueEnd = argumentEnd(t, value, last)
		case rest[0] == '=':
			value = arg + len(name) + 1
		case name[1] != '-' || shape.IsQuote(rest[0]):
			value = arg + len(name)
		default:
			continue
		}
		switch {
		case name == "-H" || name == "--header":
			s.curlHeader(value, valueEnd)
		case name == "-b":
			s.curlCookies(value, valueEnd)
		case name == "--oauth2-bearer":
			s.password(value, valueEnd)
		case sure || !areNames(t[value:valueEnd]):
			s.curlUser(value, valueEnd)
		}
		return
	}
}

// curlCookies redacts the values of the cookies in text[start:end]. Text without "=" is a
// file name.
func (s *scan) curlCookies(start, end int) {
	start, end = unquote(s.text, start, end)
	for i := start; i >= 0 && i < end; {
		if i = s.cookiePair(i); i < 0 || i >= end || s.text[i] != ';' {
			return
		}
		i = shape.Skip(s.text, i+1, 2, shape.IsBlank)
	}
}

// areNames reports whether v consists only of names and numbers, joined by a colon.
func areNames(v string) bool {
	v = strings.Trim(v, `"'`)
	plain := shape.Skip(v, 0, longestReference, func(c byte) bool { return shape.IsWord(c) || c == ':' || c == '.' || c == '-' })
	return plain == len(v) && looks.Strangest(v).HalfBits < 6
}

// curlUser redacts the password in user:password, or the user in "user:".
func (s *scan) curlUser(start, end int) {
	t := s.text
	start, end = unquote(t, start, end)
	colon := strings.IndexByte(t[start:max(start, end)], ':')
	if colon < 0 {
		return
	}
	colon += start
	if colon+1 == end {
		if colon-start > 3 {
			s.password(start, colon)
		}
		return
	}
	s.password(colon+1, end)
}

// curlHeader redacts the value of a header whose name ends in Key or Token, or of an
// Authorization header without a scheme.
func (s *scan) curlHeader(start, end int) {
	const shortest = 8
	t := s.text
	start, end = unquote(t, start, end)
	colon := strings.IndexByte(t[start:max(start, end)], ':')
	if colon < 0 {
		return
	}
	name, value := t[start:start+colon], shape.Skip(t, start+colon+1, 8, shape.IsBlank)
	if end-value >= shortest && (shape.EndsFold(name, "key") || shape.EndsFold(name, "token")) && !strings.ContainsAny(t[value:min(end, value+longestReference)], " \t") {
		s.password(value, end)
	}
}
