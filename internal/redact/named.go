package redact

import (
	"strings"

	"cairn/internal/redact/shape"
)

// ruleNamed is the rule for values that follow a secret's name.
const ruleNamed = "named_value"

// Minimum lengths of values in bytes, by the last word of the name.
const (
	shortestPassword = 4
	shortestToken    = 8
)

// longestReference is the maximum length of a reference or a placeholder; a longer value
// is treated as a secret.
const longestReference = 256

// naming is a secret's name found in a text, with the value assigned to it.
type naming struct {
	text       string
	start, end int // bounds of the name in bytes
	shortest   int // minimum length of the value in bytes
	quotedName bool
	spaced     bool // blanks around the sign
	weak       bool // the name alone is not evidence: the value must look chosen
	sign       sign
	value      int // start of the value, including its quote
}

// named handles a word such as "password" or "token" at text[start:end].
func (s *scan) named(start, end int) {
	if start < s.namedEnd || s.covered(start, end) {
		return
	}
	if s.kubernetesSecret(start, end) {
		return
	}
	n := naming{text: s.text}
	if !n.findName(start, end) || n.takesUser() && s.userAndPassword(n.end) || !n.findSign() {
		s.notNamed(start, end)
		return
	}
	from, to, quoted := n.findValue()
	if last := n.phraseEnd(from); last > to {
		s.add(ruleNamed, from, last)
		s.namedEnd = last
		return
	}
	if from >= to || !n.isSecret(from, to, quoted) {
		s.notNamed(start, end)
		return
	}
	s.add(ruleNamed, from, to)
	s.namedEnd = to
}

// notNamed searches for a random-looking value after the word text[start:end], which is
// not a secret's name, unless the word is common next to secrets.
func (s *scan) notNamed(start, end int) {
	word := s.text[start:end]
	if word[0] != '_' && len(word) != len("pass") && (len(word) != len("psk") || shape.Lower(word[1]) != 's') {
		s.randomNamed(start, end)
	}
}

// takesUser reports whether the name is that of a function that expects a user name before
// the password.
func (n *naming) takesUser() bool {
	if n.end == len(n.text) || n.text[n.end] != '(' {
		return false
	}
	name := n.text[:n.end]
	return shape.EndsFold(name, "userpassword") || shape.EndsFold(name, "userpass")
}

// covered reports whether the most recently found span covers text[start:end].
func (s *scan) covered(start, end int) bool {
	n := len(s.spans)
	return n > 0 && s.spans[n-1].start <= start && end <= s.spans[n-1].end
}

// findName reports whether the word text[start:end] ends a secret's name.
func (n *naming) findName(start, end int) bool {
	const longest = 64
	t := n.text
	n.shortest = shortestOf(t, start, end)
	if n.shortest == 0 {
		return false
	}
	end = n.longerWord(start, end)
	if digits := shape.Skip(t, shape.Skip(t, end, 1, isUnderscore), 2, shape.IsDigit); digits > end && shape.IsDigit(t[digits-1]) {
		end = digits
	}
	if end < len(t) && shape.IsWord(t[end]) ||
		end+1 < len(t) && (t[end] == '-' || t[end] == '.') && shape.IsWord(t[end+1]) {
		return false
	}
	n.start = shape.Back(t, start, longest, func(c byte) bool { return shape.IsWord(c) || c == '-' || c == '.' })
	n.end = end
	return true
}

func isUnderscore(c byte) bool { return c == '_' }

// shortestOf returns the minimum length of a value whose name ends with the word
// text[start:end]. It returns 0 if that word does not name a secret.
func shortestOf(t string, start, end int) int {
	switch word := t[start:end]; len(word) {
	case len("key"):
		switch {
		case shape.Lower(word[1]) == 'w': // pwd
			return shortestPassword
		case shape.Lower(word[0]) == 'p': // psk
			return shortestIf(separated(t, start), shortestToken)
		}
		return shortestIf(keyOpens(t[:start]), shortestToken)
	case len("pass"):
		return shortestIf(passOpens(t, start, end), shortestPassword)
	case len("token"):
		return shortestIf(word[0] != '_' || word == "_auth", shortestToken) // token, creds, _auth
	case len("credential"):
		if shape.Lower(word[0]) == 'c' {
			return shortestIf(end < len(t) && shape.Lower(t[end]) == 's', shortestToken)
		}
	}
	return shortestPassword // password, passwd, passphrase, secret
}

// keyOpens reports whether a name that begins with before and continues with "key" names a
// secret key.
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
		"preshared", "pre_shared", "pre-shared",
	} {
		if shape.EndsFold(before, w) {
			rest := before[:len(before)-len(w)]
			return rest == "" || !shape.IsLetter(rest[len(rest)-1]) || shape.IsUpper(before[len(rest)]) || w != "api" && w != "auth"
		}
	}
	return false
}

// shortestIf returns n if ok is true, else 0.
func shortestIf(ok bool, n int) int {
	if ok {
		return n
	}
	return 0
}

// separated reports whether the word at t[start:] begins a name or follows a separator
// inside one.
func separated(t string, start int) bool {
	return start == 0 || !shape.IsAlnum(t[start-1])
}

// longerWord extends the secret's word text[start:end] and returns its new end:
// "credentials" for "credential", "secret_key_base" for "secret_key". It marks words with
// little evidence as weak.
func (n *naming) longerWord(start, end int) int {
	t := n.text
	switch shape.Lower(t[start]) {
	case 'c':
		n.weak = true
		if end-start == len("credential") {
			return shape.Skip(t, end, 1, func(c byte) bool { return shape.Lower(c) == 's' })
		}
	case '_':
		n.weak = true
	case 's', 'k', 't':
		for _, base := range [...]string{"_base", "-base", "Base"} {
			if strings.HasPrefix(t[end:], base) || base == "_base" && strings.HasPrefix(t[end:], "_BASE") {
				return end + len(base)
			}
		}
	}
	return end
}
