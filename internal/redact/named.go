package redact

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
