package redact

import "strings"

// Rule names of headers.
const (
	ruleAuthorization = "authorization_header"
	ruleCookie        = "cookie_header"
)

// authorization looks at "Authorization" at text[start:end], as a header, in
// JSON, in code or with "=".
func (s *scan) authorization(start, end int) {
	if start < s.namedEnd {
		return
	}
	t := s.text
	i := skip(t, end, 3, func(c byte) bool { return isQuote(c) || c == '\\' || c == ']' })
	quotedName := i > end
	i = skip(t, i, 4, isBlank)
	if i == len(t) || t[i] != ':' && t[i] != '=' && t[i] != ',' || t[i] == ',' && !quotedName {
		return
	}
	i = skip(t, i, 2, func(c byte) bool { return strings.IndexByte(":=>,", c) >= 0 })
	list := t[i-1] == ','
	i = skip(t, i, 8, isBlank)
	if list && (i == len(t) || !isQuote(t[i])) {
		return
	}
	if i+1 < len(t) && isLetter(t[i]) && isQuote(t[i+1]) { // f"…"
		i++
	}
	i = skip(t, i, 4, func(c byte) bool { return isQuote(c) || c == '\\' })
	word := skip(t, i, 32, func(c byte) bool { return isAlnum(c) || c == '-' })
	blank := skip(t, word, 4, isBlank)
	if isScheme(t[i:word]) {
		if blank > word {
			s.credential(blank)
		}
		return
	}
	if start > 0 && isWord(t[start-1]) { // authorization of something, not the header
		return
	}
	if blank == len(t) || blank == word || isQuote(t[blank]) {
		last := skip(t, i, longestJudged, func(c byte) bool { return !isBreak(c) })
		if last-i == longestJudged || !isName(t[i:last]) {
			s.credential(i)
		}
	}
}

// isScheme reports whether w is the scheme of an Authorization header.
func isScheme(w string) bool {
	switch strings.ToLower(w) {
	case "bearer", "basic", "token", "apikey", "api-key", "api-token", "digest", "negotiate", "key", "bot", "oauth":
		return true
	}
	return false
}

// credential takes the value at i for what a header proves the caller's identity
// with.
func (s *scan) credential(i int) {
	const shortest = 4
	n := naming{text: s.text, sign: signColon, shortest: shortest, start: i}
	end := unquotedEnd(s.text, i)
	if end-i < shortest {
		return
	}
	v := s.text[i:end]
	if isSchemeWord(v) || allLetters(v) && len(v) < 16 && n.goesOn(end) {
		return
	}
	if n.isSecret(i, end, true) {
		s.add(ruleAuthorization, i, end)
		s.namedEnd = max(s.namedEnd, end)
	}
}

// isSchemeWord reports whether v, behind "Basic" or "Bearer", speaks about the
// scheme.
func isSchemeWord(v string) bool {
	switch strings.ToLower(strings.TrimRight(v, ".,:;")) {
	case "auth", "authentication", "authorization", "tokens", "scheme", "header", "headers", "credentials", "credential", "prefix", "format", "string":
		return true
	}
	return false
}

// bearer looks at "Bearer" outside an Authorization header: only what cannot be
// a word counts.
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
		strangest(v[:min(len(v), longestJudged)]).halfBits >= 12 {
		s.add("bearer_token", i, last)
	}
}

// cookie looks at "Cookie:" and "Set-Cookie:" and takes the values, of the latter
// only the first, for what follows are attributes.
func (s *scan) cookie(start, end int) {
	if start < s.cookieEnd {
		return
	}
	t := s.text
	name := back(t, start, 16, func(c byte) bool { return isLetter(c) || c == '-' })
	set := false
	switch {
	case name == start, endsFold(t[name:start], "--"):
	case endsFold(t[name:start], "set-"):
		set = true
	default:
		return
	}
	i := skip(t, end, 3, func(c byte) bool { return isQuote(c) || c == '\\' })
	j := skip(t, i, 2, isBlank)
	flag := strings.HasPrefix(t[name:], "--") && j > i
	if !flag {
		if j == len(t) || t[j] != ':' && t[j] != '=' && (t[j] != ',' || i == end) {
			return
		}
		j = skip(t, j+1, 4, isBlank)
	}
	j = skip(t, j, 4, func(c byte) bool { return isQuote(c) || c == '\\' })
	for j < len(t) {
		eq := skip(t, j, 256, func(c byte) bool { return !isSpace(c) && c != '=' && c != ';' && !isQuote(c) && c != ':' })
		if eq == len(t) || t[eq] != '=' || eq == j {
			return
		}
		last := skip(t, eq+1, len(t), func(c byte) bool { return !isSpace(c) && c != ';' && !isQuote(c) })
		if v := strings.TrimRight(t[eq+1:last], `\`); v != "" && (len(v) > longestReference || !isPlaceholder(v)) {
			s.add(ruleCookie, eq+1, eq+1+len(v))
			s.namedEnd = max(s.namedEnd, eq+1+len(v))
		}
		s.cookieEnd = last
		if set || last == len(t) || t[last] != ';' {
			return
		}
		j = skip(t, last+1, 2, isBlank)
	}
}
