package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

// findProse accepts a value that a sentence assigns to the name: "the password is v", "set
// the password to v", "the password for bob is v", "log in with password v". The blanks
// after the name end at j.
func (n *naming) findProse(j int) bool {
	t := n.text
	switch {
	case j == n.end || j == len(t) || n.quotedName:
		return false
	case n.followsWith() && !looks.IsSmallWord(t[j:shape.Skip(t, j, 12, shape.IsLetter)]):
		n.value = j
	default:
		if n.value = statedValue(t, j); n.value < 0 {
			return false
		}
	}
	n.sign, n.spaced = signProse, true
	return n.value < len(t)
}

// statedValue returns the start of the value in the clause at text[i:] that follows the
// name: "is v", "to v", "for bob is v". It returns -1 for any other text.
func statedValue(t string, i int) int {
	const words = 6 // number of words in a phrase like "for the user bob"
	for k := range words {
		end := shape.Skip(t, i, 24, func(c byte) bool { return !shape.IsSpace(c) })
		next := shape.Skip(t, end, 3, shape.IsBlank)
		if end == i || next == end {
			return -1
		}
		switch word := t[i:end]; word {
		case "is", "was", "to", "is:", "=":
			if word == "to" && k > 0 {
				return -1
			}
			if strings.HasPrefix(t[next:], "now ") {
				next += len("now ")
			}
			return next
		case "for", "of":
		default:
			if k == 0 || !isPhraseWord(word) {
				return -1
			}
		}
		i = next
	}
	return -1
}

// isPhraseWord reports whether w continues the phrase about the owner of the password and
// does not end the clause.
func isPhraseWord(w string) bool {
	last := w[len(w)-1]
	return shape.IsAlnum(last) || shape.IsQuote(last)
}

// followsWith reports whether the name is a plain word for a password that
// follows "with" or "using".
func (n *naming) followsWith() bool {
	switch strings.ToLower(n.text[n.start:n.end]) {
	case "password", "passwd", "passphrase", "pwd":
	default:
		return false
	}
	before := strings.TrimRight(n.text[max(0, n.start-16):n.start], " \t")
	before = strings.TrimRight(strings.TrimSuffix(before, " the"), " ")
	return shape.EndsFold(before, "with") || shape.EndsFold(before, "using")
}

// isProseSecret reports whether text[from:to] is a secret in a sentence. A plain word is
// not a secret, quoted or not: "the password is required".
func (n *naming) isProseSecret(from, to int, quoted bool) bool {
	v := n.text[from:to]
	if strings.ContainsAny(v, " \t") {
		return false
	}
	if !quoted {
		v = strings.TrimRight(v, "?")
	}
	if len(v) < n.shortest || !looks.Chosen(v) {
		return false
	}
	letters, _, signs := looks.CountKinds(v)
	if n.shortest == shortestToken && (letters == 0 || signs == 0 && looks.Strangest(v).HalfBits < 6) {
		return false
	}
	return quoted || letters > 0 || !n.continuesSentence(to)
}

// phraseEnd returns the end of a passphrase of several words at text[i:]: the end of the
// line or the closing quote. It returns i unless at least four consecutive words are in
// lower case. None of them may be a function word.
func (n *naming) phraseEnd(i int) int {
	const fewest, most = 4, 24
	t := n.text
	if !shape.EndsFold(n.text[:n.end], "passphrase") || n.sign != signColon && n.sign != signAssign {
		return i
	}
	words, end := 0, i
	for j := i; words < most; {
		word := shape.Skip(t, j, 16, shape.IsLower)
		if word-j < 3 || looks.IsSmallWord(t[j:word]) || isInstruction(t[j:word]) {
			break
		}
		words, end = words+1, word
		if j = shape.Skip(t, word, 1, shape.IsBlank); j == word {
			break
		}
	}
	if words < fewest || end < len(t) && !isBreak(t[end]) && t[end] != '\\' || end < len(t) && shape.IsBlank(t[end]) {
		return i
	}
	return end
}

// isInstruction reports whether w belongs to a text that prompts for a passphrase.
func isInstruction(w string) bool {
	switch w {
	case "enter", "type", "press", "leave", "empty", "none", "again", "your", "prompt", "prompted", "please", "same", "use", "used",
		"using", "read", "optional", "required", "must", "cannot", "could", "passphrase", "password", "passphrases":
		return true
	}
	return false
}
