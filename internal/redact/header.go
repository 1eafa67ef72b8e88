package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

// Rule names of headers.
const (
	ruleAuthorization = "authorization_header"
	ruleCookie        = "cookie_header"
)

// authorization handles "Authorization" at text[start:end] as a header, in JSON, in code
// or with "=".
func (s *scan) authorization(start, end int) {
	t := s.text
	i := headerValue(t, end)
	if i < 0 || start < s.namedEnd {
		return
	}
	word := shape.Skip(t, i, 32, func(c byte) bool { return shape.IsAlnum(c) || c == '-' })
	blank := shape.Skip(t, word, 4, shape.IsBlank)
	switch {
	case isScheme(t[i:word]):
		if blank > word {
			s.credential(blank)
		}
	case shape.WordStart(t, start) && (blank == word || blank == len(t) || shape.IsQuote(t[blank])): // no scheme
		last := shape.Skip(t, i, looks.LongestChecked, func(c byte) bool { return !isBreak(c) })
		if last-i == looks.LongestChecked || !looks.IsName(t[i:last]) {
			s.credential(i)
		}
	}
}

// headerValue returns the start of the value of a header whose name ends at i: "Name: v",
// {"Name": "v"} or Set("Name", "v"). It returns -1 for other text.
func headerValue(t string, i int) int {
	isClosing := func(c byte) bool { return shape.IsQuote(c) || c == '\\' || c == ']' }
	sign := shape.Skip(t, shape.Skip(t, i, 3, isClosing), 4, shape.IsBlank)
	if sign == len(t) || strings.IndexByte(":=,", t[sign]) < 0 {
		return -1
	}
	v := shape.Skip(t, shape.Skip(t, sign, 2, func(c byte) bool { return strings.IndexByte(":=>,", c) >= 0 }), 8, shape.IsBlank)
	if t[sign] == ',' && (sign == i || v == len(t) || !shape.IsQuote(t[v])) {
		return -1
	}
	if v+1 < len(t) && shape.IsLetter(t[v]) && shape.IsQuote(t[v+1]) { // f"…"
		v++
	}
	return shape.Skip(t, v, 4, func(c byte) bool { return shape.IsQuote(c) || c == '\\' })
}

// isScheme reports whether w is the scheme of an Authorization header.
func isScheme(w string) bool {
	switch strings.ToLower(w) {
	case "bearer", "basic", "token", "apikey", "api-key", "api-token", "digest", "negotiate", "key", "bot", "oauth":
		return true
	}
	return false
}

// credential redacts the value at i as the credential in a header.
func (s *scan) credential(i int) {
	const shortest = 4
	n := naming{text: s.text, sign: signColon, shortest: shortest, start: i}
	end := unquotedEnd(s.text, i)
	if end-i < shortest {
		return
	}
	v := s.text[i:end]
	if isSchemeWord(v) || looks.AllLetters(v) && len(v) < 16 && n.continuesSentence(end) {
		return
	}
	if n.isSecret(i, end, true) {
		s.add(ruleAuthorization, i, end)
		s.namedEnd = max(s.namedEnd, end)
	}
}

// isSchemeWord reports whether v, after "Basic" or "Bearer", is a word about the scheme.
func isSchemeWord(v string) bool {
	switch strings.ToLower(strings.TrimRight(v, ".,:;")) {
	case "token", "secret", "key", "auth", "authentication", "authorization", "tokens", "scheme", "header", "headers", "credentials", "credential", "prefix", "format", "string":
		return true
	}
	return false
}

// bearer handles "Bearer" outside an Authorization header. It redacts only values that
// cannot be a word.
func (s *scan) bearer(start, end int) {
	const shortest = 16
	if !shape.WordStart(s.text, start) {
		return
	}
	i := shape.Skip(s.text, end, 4, shape.IsBlank)
	if i == end {
		return
	}
	last := i + s.runs.Count(s.text, i, shape.Unbounded, 'F')
	for last < len(s.text) && s.text[last] == '.' && last+1 < len(s.text) && shape.IsWord(s.text[last+1]) {
		last += 1 + shape.CountClass(s.text, last+1, shape.Unbounded, 'F')
	}
	v := s.text[i:last]
	if len(v) >= shortest && strings.ContainsAny(v[:min(len(v), earlyDigit)], "0123456789") &&
		looks.Strangest(v[:min(len(v), looks.LongestChecked)]).HalfBits >= 12 {
		s.add("bearer_token", i, last)
	}
}

// cookie redacts the values after "Cookie:" and "Set-Cookie:". After "Set-Cookie:" it
// redacts only the first value, because attributes follow.
func (s *scan) cookie(start, end int) {
	t := s.text
	i := -1
	name := shape.Back(t, start, 16, func(c byte) bool { return shape.IsLetter(c) || c == '-' })
	only := shape.HasFold(t[name:], "set-")
	switch {
	case start < s.cookieEnd:
		return
	case name == start || only:
		i = headerValue(t, end)
	case t[name:start] == "--": // curl --cookie a=b
		i = shape.Skip(t, shape.Skip(t, end, 4, func(c byte) bool { return shape.IsBlank(c) || c == '=' }), 2, shape.IsQuote)
	}
	for i >= 0 && i < len(t) {
		i = s.cookiePair(i)
		if only || i < 0 || i == len(t) || t[i] != ';' {
			return
		}
		i = shape.Skip(t, i+1, 2, shape.IsBlank)
	}
}

// cookiePair redacts the value of name=value at i and returns its end. It returns -1 if
// there is no such pair.
func (s *scan) cookiePair(i int) int {
	const longest = 256 // bytes of name
	t := s.text
	eq := shape.Skip(t, i, longest, func(c byte) bool { return !shape.IsSpace(c) && !shape.IsQuote(c) && strings.IndexByte("=;:", c) < 0 })
	if eq == len(t) || t[eq] != '=' || eq == i {
		return -1
	}
	last := shape.Skip(t, eq+1, len(t), func(c byte) bool { return !shape.IsSpace(c) && !shape.IsQuote(c) && c != ';' })
	if v := strings.TrimRight(t[eq+1:last], `\`); v != "" && (len(v) > longestReference || !looks.IsPlaceholder(v)) {
		s.add(ruleCookie, eq+1, eq+1+len(v))
		s.namedEnd = max(s.namedEnd, eq+1+len(v))
	}
	s.cookieEnd = last
	return last
}
