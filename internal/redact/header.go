package redact

import "strings"

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
	word := skip(t, i, 32, func(c byte) bool { return isAlnum(c) || c == '-' })
	blank := skip(t, word, 4, isBlank)
	switch {
	case isScheme(t[i:word]):
		if blank > word {
			s.credential(blank)
		}
	case wordStart(t, start) && (blank == word || blank == len(t) || isQuote(t[blank])): // no scheme
		last := skip(t, i, longestChecked, func(c byte) bool { return !isBreak(c) })
		if last-i == longestChecked || !isName(t[i:last]) {
			s.credential(i)
		}
	}
}

// headerValue returns the start of the value of a header whose name ends at i: "Name: v",
// {"Name": "v"} or Set("Name", "v"). It returns -1 for other text.
func headerValue(t string, i int) int {
	isClosing := func(c byte) bool { return isQuote(c) || c == '\\' || c == ']' }
	sign := skip(t, skip(t, i, 3, isClosing), 4, isBlank)
	if sign == len(t) || strings.IndexByte(":=,", t[sign]) < 0 {
		return -1
	}
	v := skip(t, skip(t, sign, 2, func(c byte) bool { return strings.IndexByte(":=>,", c) >= 0 }), 8, isBlank)
	if t[sign] == ',' && (sign == i || v == len(t) || !isQuote(t[v])) {
		return -1
	}
	if v+1 < len(t) && isLetter(t[v]) && isQuote(t[v+1]) { // f"…"
		v++
	}
	return skip(t, v, 4, func(c byte) bool { return isQuote(c) || c == '\\' })
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
	if isSchemeWord(v) || allLetters(v) && len(v) < 16 && n.continuesSentence(end) {
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
	if !wordStart(s.text, start) {
		return
	}
	i := skip(s.text, end, 4, isBlank)
	if i == end {
		return
	}
	last := i + s.runs.count(s.text, i, unbounded, 'F')
	for last < len(s.text) && s.text[last] == '.' && last+1 < len(s.text) && isWord(s.text[last+1]) {
		last += 1 + countClass(s.text, last+1, unbounded, 'F')
	}
	v := s.text[i:last]
	if len(v) >= shortest && strings.ContainsAny(v[:min(len(v), earlyDigit)], "0123456789") &&
		strangest(v[:min(len(v), longestChecked)]).halfBits >= 12 {
		s.add("bearer_token", i, last)
	}
}

// cookie redacts the values after "Cookie:" and "Set-Cookie:". After "Set-Cookie:" it
// redacts only the first value, because attributes follow.
func (s *scan) cookie(start, end int) {
	t := s.text
	i := -1
	name := back(t, start, 16, func(c byte) bool { return isLetter(c) || c == '-' })
	only := hasFold(t[name:], "set-")
	switch {
	case start < s.cookieEnd:
		return
	case name == start || only:
		i = headerValue(t, end)
	case t[name:start] == "--": // curl --cookie a=b
		i = skip(t, skip(t, end, 4, func(c byte) bool { return isBlank(c) || c == '=' }), 2, isQuote)
	}
	for i >= 0 && i < len(t) {
		i = s.cookiePair(i)
		if only || i < 0 || i == len(t) || t[i] != ';' {
			return
		}
		i = skip(t, i+1, 2, isBlank)
	}
}

// cookiePair redacts the value of name=value at i and returns its end. It returns -1 if
// there is no such pair.
func (s *scan) cookiePair(i int) int {
	const longest = 256 // bytes of name
	t := s.text
	eq := skip(t, i, longest, func(c byte) bool { return !isSpace(c) && !isQuote(c) && strings.IndexByte("=;:", c) < 0 })
	if eq == len(t) || t[eq] != '=' || eq == i {
		return -1
	}
	last := skip(t, eq+1, len(t), func(c byte) bool { return !isSpace(c) && !isQuote(c) && c != ';' })
	if v := strings.TrimRight(t[eq+1:last], `\`); v != "" && (len(v) > longestReference || !isPlaceholder(v)) {
		s.add(ruleCookie, eq+1, eq+1+len(v))
		s.namedEnd = max(s.namedEnd, eq+1+len(v))
	}
	s.cookieEnd = last
	return last
}
