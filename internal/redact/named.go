package redact

import "strings"

// ruleNamed is the rule of values that stand behind a secret's name.
const ruleNamed = "named_value"

// The shortest values that count, in bytes, by the word a name ends with.
const (
	shortestPassword = 4
	shortestToken    = 8
)

// longestReference is the longest value that is looked at for being a reference
// or a placeholder; anything longer is taken for what its name says.
const longestReference = 256

// sign is what stands between a name and its value.
type sign uint8

const (
	signNone   sign = iota
	signAssign      // = := => ?= and the like
	signColon       // :
	signEqual       // == or !=, a comparison
	signBlank       // --flag value
	signTag         // <name>value</name>
)

// naming is a secret's name found in a text and what is assigned to it.
type naming struct {
	text       string
	start, end int // of the name, in bytes
	shortest   int // value, in bytes
	quotedName bool
	spaced     bool // blanks around the sign
	sign       sign
	value      int // where the value begins, its quote included
}

// named looks at a word such as "password" or "token" at text[start:end].
func (s *scan) named(start, end int) {
	if start < s.namedEnd {
		return
	}
	if s.kubernetesSecret(start, end) {
		return
	}
	n := naming{text: s.text}
	if !n.findName(start, end) || !n.findSign() {
		s.randomNamed(start, end)
		return
	}
	from, to, quoted := n.findValue()
	if from >= to || !n.isSecret(from, to, quoted) {
		s.randomNamed(start, end)
		return
	}
	s.add(ruleNamed, from, to)
	s.namedEnd = to
}

// findName reports whether the word text[start:end] ends a name that means a
// secret.
func (n *naming) findName(start, end int) bool {
	const longest = 64
	t := n.text
	n.shortest = shortestOf(t, start, end)
	if n.shortest == 0 {
		return false
	}
	if digits := skip(t, skip(t, end, 1, isUnderscore), 2, isDigit); digits > end && isDigit(t[digits-1]) {
		end = digits
	}
	if end < len(t) && isWord(t[end]) ||
		end+1 < len(t) && (t[end] == '-' || t[end] == '.') && isWord(t[end+1]) {
		return false
	}
	n.start = back(t, start, longest, func(c byte) bool { return isWord(c) || c == '-' || c == '.' })
	n.end = end
	return true
}

func isUnderscore(c byte) bool { return c == '_' }

// shortestOf returns the least length of a value whose name ends with the word
// text[start:end], 0 if that word does not mean a secret.
func shortestOf(t string, start, end int) int {
	switch word := t[start:end]; len(word) {
	case len("key"):
		if lower(word[0]) == 'p' { // pwd
			return shortestPassword
		}
		if keyOpens(t[:start]) {
			return shortestToken
		}
		return 0
	case len("token"):
		switch lower(word[0]) {
		case 't':
			return shortestToken
		case '_': // _PASS, not first_pass
			if word == "_PASS" && end < len(t) && t[end] == '=' {
				return shortestPassword
			}
			return 0
		}
	}
	return shortestPassword // password, passwd, passphrase, secret
}

// keyOpens reports whether a name that begins with before and goes on with "key"
// is that of a key that opens something.
func keyOpens(before string) bool {
	if before == "" {
		return false
	}
	switch before[len(before)-1] {
	case '_', '-', '.', ' ':
		before = before[:len(before)-1]
	}
	for _, w := range [...]string{
		"api", "access", "private", "account", "secret", "signing", "encryption", "auth", "master", "subscription",
	} {
		if endsFold(before, w) {
			rest := before[:len(before)-len(w)]
			return rest == "" || !isLetter(rest[len(rest)-1]) || isUpper(before[len(rest)]) || w != "api" && w != "auth"
		}
	}
	return false
}

// findSign reads the sign behind the name and finds where the value begins.
func (n *naming) findSign() bool {
	t := n.text
	i := skip(t, n.end, 4, func(c byte) bool { return isQuote(c) || c == '\\' || c == '*' || c == ']' })
	n.quotedName = i > n.end && (isQuote(t[i-1]) || t[i-1] == ']')
	if n.findPair(i) {
		return true
	}
	j := skip(t, i, 40, isBlank)
	if j+1 < len(t) && (t[j] == '?' || t[j] == '!') && t[j+1] == ':' {
		j++
	}
	if j >= len(t) {
		return false
	}
	width := 1
	switch rest := t[j:]; {
	case hasFold(rest, "==") || hasFold(rest, "!="):
		n.sign, width = signEqual, skip(t, j, 3, func(c byte) bool { return c == '=' || c == '!' })-j
	case hasFold(rest, "=>") || hasFold(rest, ":=") || hasFold(rest, "?="):
		n.sign, width = signAssign, 2
	case hasFold(rest, "||") || hasFold(rest, "??"): // the default of a variable
		if v := skip(t, j+2, 4, isBlank); v == len(t) || !isQuote(t[v]) {
			return false
		}
		n.sign, width = signAssign, 2
	case hasFold(rest, ":-") && n.start >= 2 && t[n.start-2:n.start] == "${":
		n.sign, width = signAssign, 2
	case hasFold(rest, "::"):
		return false
	case rest[0] == '=':
		n.sign = signAssign
	case rest[0] == ':':
		n.sign = signColon
		if n.start > 0 && (t[n.start-1] == '/' || t[n.start-1] == ':' && j+1 < len(t) && !isSpace(t[j+1])) {
			return false // the end of a path, or a:password:b
		}
	case rest[0] == '>' && j == n.end && n.start > 0 && t[n.start-1] == '<':
		n.sign = signTag
	default:
		return n.findBlank(i, j)
	}
	n.value = skip(t, j+width, 40, func(c byte) bool { return isBlank(c) || c == '=' })
	n.spaced = j > i || n.value > j+width
	if n.sign == signColon && hasFold(t[n.value:], "**") { // **Password:** v
		n.value = skip(t, n.value+2, 16, isBlank)
	}
	return true
}

// findBlank accepts a value that only a blank parts from its name: that of a
// flag (or of a flag in an argument list: "--password", "v"), of a line in a
// netrc file, of an SQL clause.
func (n *naming) findBlank(i, j int) bool {
	t := n.text
	switch {
	case t[n.start] == '-' && !n.quotedName && j > i && (n.start == 0 || isSpace(t[n.start-1]) || isBreak(t[n.start-1])):
		n.value = j
	case t[n.start] == '-' && n.quotedName && t[j] == ',':
		n.value = skip(t, j+1, 16, isSpace)
		if n.value == len(t) || !isQuote(t[n.value]) {
			return false
		}
	case t[n.start:n.end] == "PASSWORD" && j > i && t[j] == '\'':
		n.value = j
	case t[n.start:n.end] == "password" && j > i && followsLogin(t[:n.start]):
		n.value = j
	default:
		return false
	}
	n.sign, n.spaced = signBlank, true
	return true
}

// followsLogin reports whether the last two words of t are "login" and a name.
func followsLogin(t string) bool {
	const longest = 100
	i := back(t, len(t), 8, isSpace)
	j := back(t, i, longest, func(c byte) bool { return !isSpace(c) })
	return i < len(t) && j < i && strings.HasSuffix(strings.TrimRight(t[max(0, j-8):j], " \t\n"), "login")
}

// findPair accepts a name that is itself a value, with the secret beside it:
// "name: DB_PASSWORD" and "value: v" on the next line, or as JSON or XML.
func (n *naming) findPair(i int) bool {
	t := n.text
	i = skip(t, i, 1, func(c byte) bool { return c == ',' })
	j := skip(t, i, 40, isSpace)
	if j == i && !n.quotedName {
		return false
	}
	j = skip(t, j, 2, func(c byte) bool { return isQuote(c) || c == '\\' })
	if !hasFold(t[j:], "value") {
		return false
	}
	j = skip(t, j+len("value"), 2, func(c byte) bool { return isQuote(c) || c == '\\' })
	j = skip(t, j, 8, isBlank)
	if j == len(t) || t[j] != ':' && t[j] != '=' {
		return false
	}
	n.sign, n.value = signAssign, skip(t, j+1, 16, isBlank)
	n.quotedName = true
	return true
}

// findValue returns the bounds of the value, without quotes.
func (n *naming) findValue() (start, end int, quoted bool) {
	t, i := n.text, n.value
	if n.sign == signColon {
		i = afterType(t, i)
	}
	if i+1 < len(t) && strings.IndexByte("fbruFBRU@$", t[i]) >= 0 && isQuote(t[i+1]) {
		i++
	}
	for i+2 < len(t) && isQuote(t[i]) && t[i+1] == t[i] && (isQuote(t[i+2]) || isWord(t[i+2])) {
		i++ // quotes piled up, as in """v"""
	}
	open := skip(t, i, 4, func(c byte) bool { return c == '\\' })
	if open == len(t) {
		return 0, 0, false
	}
	if !isQuote(t[open]) {
		if n.sign == signTag {
			end := skip(t, i, 1024, func(c byte) bool { return c != '<' && c != '\n' })
			if !strings.HasPrefix(t[end:], "</") {
				return 0, 0, false
			}
			return i, end, false
		}
		return i, unquotedEnd(t, i), false
	}
	start = open + 1
	if !n.quotedName && n.sign != signBlank && n.endsString(start) {
		return 0, 0, false
	}
	end = quotedEnd(t, start, t[i:open+1])
	if end < 0 { // the quote is never closed, or by another one
		end = skip(t, start, len(t), func(c byte) bool { return !isSpace(c) })
		return start, start + len(strings.TrimRight(t[start:end], "\"'`.,;:)")), false
	}
	return start, end, true
}

// afterType skips a type between a colon and an assignment: str = "v".
func afterType(t string, i int) int {
	const longest = 48
	j := skip(t, i, longest, func(c byte) bool { return isWord(c) || strings.IndexByte(" .<>[]|&'?", c) >= 0 })
	if j == i || j+1 >= len(t) || t[j] != '=' || t[j-1] != ' ' {
		return i
	}
	if v := skip(t, j+1, 4, isBlank); v < len(t) && isQuote(t[v]) {
		return v
	}
	return i
}

// endsString reports whether the quote before i ends a string rather than
// beginning one: "token: " + t.
func (n *naming) endsString(i int) bool {
	t := n.text
	if i == len(t) || isSpace(t[i]) || strings.IndexByte("+,);", t[i]) >= 0 {
		return true
	}
	return (n.sign == signColon || n.spaced) && strings.IndexByte(".&|}]", t[i]) >= 0
}

// quotedEnd returns where the value from start on is closed by the same quote it
// was opened with (backslashes included), on the same line; -1 if it is not.
func quotedEnd(t string, start int, quote string) int {
	escaped := len(quote) > 1
	q := quote[len(quote)-1]
	for i := start; i < len(t) && t[i] != '\n'; i++ {
		switch {
		case t[i] == '\\' && !escaped:
			i++
		case t[i] == '\\' && strings.HasPrefix(t[i:], quote):
			return i
		case t[i] == q:
			return i
		}
	}
	return -1
}

// unquotedEnd returns where the value from start on ends: at white space, a
// quote, or at punctuation that belongs to what is around it.
func unquotedEnd(t string, start int) int {
	depth, i := 0, start
loop:
	for ; i < len(t) && !isSpace(t[i]) && !isQuote(t[i]); i++ {
		switch c := t[i]; c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 && (i+1 == len(t) || !isWord(t[i+1])) {
				break loop
			}
		case ',', ';', '&', '|':
			if depth <= 0 && endsValue(t, i+1) {
				break loop
			}
		case '<':
			if strings.HasPrefix(t[i:], "</") {
				break loop
			}
		}
	}
	for i > start && strings.IndexByte(`.,;:\`, t[i-1]) >= 0 {
		i--
	}
	return i
}

// endsValue reports whether what follows a comma, semicolon, ampersand or bar is
// something new: nothing, another sign, or another name with its value.
func endsValue(t string, i int) bool {
	if i == len(t) || isSpace(t[i]) || isBreak(t[i]) || t[i] == '&' || t[i] == '|' {
		return true
	}
	const longest = 40
	j := skip(t, i, longest, func(c byte) bool { return isWord(c) || c == '-' || c == '.' || c == ' ' })
	return j > i && j < len(t) && (t[j] == '=' || t[j] == ':')
}
