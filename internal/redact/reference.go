package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

// isSecret reports whether text[from:to], which is assigned to a secret's name, is a
// secret. It is false for a reference to a secret, a placeholder, a type and the beginning
// of a sentence.
func (n *naming) isSecret(from, to int, quoted bool) bool {
	v := n.text[from:to]
	if len(v) < n.shortest || onlyMarks(v) {
		return false
	}
	if len(v) > longestReference {
		return true
	}
	if looks.IsPlaceholder(v) || looks.IsLocation(v) || n.isPlace(v) || n.weak && !looks.Credential(v) {
		return false
	}
	switch n.sign {
	case signProse:
		return n.isProseSecret(from, to, quoted)
	case signCall:
		return n.isCallSecret(from, to, quoted)
	case signEqual:
		return strings.ContainsAny(v, "0123456789")
	}
	return !n.isObject(v) && (quoted || !looks.IsReference(v) && n.isUnquotedValue(v, to))
}

// isObject reports whether v is the name of a Kubernetes object, such as the object that
// contains a secret or token. If the name is a password's, it returns false.
func (n *naming) isObject(v string) bool {
	return (n.shortest == shortestToken || shape.EndsFold(n.text[:n.end], "secret")) && looks.IsKubernetesName(v)
}

// isUnquotedValue reports whether v, unquoted up to text[:to], is a value. It is false for
// a word of a sentence, a type, a state and a variable in code.
func (n *naming) isUnquotedValue(v string, to int) bool {
	other := false
	switch n.sign {
	case signColon:
		other = looks.IsTypeWord(v) || looks.IsStateWord(v) || n.isProse(v, to)
	case signAssign:
		other = n.spaced && looks.IsStateWord(v) || n.text[n.start] == '-' && n.isMetavar(v, to)
	case signBlank:
		other = n.isAboutFlag(v, to) || looks.IsConstant(v) && looks.NamesSecret(v) || strings.HasPrefix(v, "id=")
	}
	return !other && !n.isVariableInCode(v, to)
}

// isAboutFlag reports whether v, which follows a flag, belongs to a text about the
// flag: a sentence or a list of options.
func (n *naming) isAboutFlag(v string, to int) bool {
	return looks.IsFlagWord(v) || n.isMetavar(v, to) || looks.AllLetters(v) && n.continuesWithFunctionWord(to)
}

// isProse reports whether v, which follows a colon, is a word of a sentence that
// continues. It also accepts a word of a sentence about a token: "unexpected token:
// identifier".
func (n *naming) isProse(v string, to int) bool {
	bare := looks.AllLetters(v)
	if bare && n.spaced && n.arrowFollows(to) {
		return true
	}
	return (bare || looks.IsCompound(v)) && n.continuesSentence(to) || bare && n.shortest == shortestToken && n.inSentence()
}

// isVariableInCode reports whether v, up to text[:to], is a variable for a secret in code.
// The surrounding text must be code.
func (n *naming) isVariableInCode(v string, to int) bool {
	if looks.IsConstant(v) && strings.Contains(v, "_") && looks.NamesSecret(v) {
		return true
	}
	argument := n.endsArgument(to)
	if !argument && !n.declares() {
		return false
	}
	return looks.IsVariableName(v) || argument && (shape.EndsFold(v, "pass") || shape.EndsFold(v, "_psk")) || looks.IsIdentifier(v) && (n.sign != signColon || looks.NamesSecret(v))
}

// declares reports whether code assigns the value: with ":=", after a keyword such as
// const, or to a field of this or self.
func (n *naming) declares() bool {
	if n.sign != signAssign {
		return false
	}
	before := strings.TrimRight(n.text[max(0, n.start-12):n.start], " ")
	word := before[shape.Back(before, len(before), len(before), shape.IsLetter):]
	switch word {
	case "const", "let", "var", "val", "final", "auto", "String", "string":
		return true
	}
	name := n.text[n.start:n.end]
	return strings.HasPrefix(name, "self.") || strings.HasPrefix(name, "this.") ||
		strings.HasSuffix(strings.TrimRight(n.text[n.end:n.value], " \t"), ":=")
}

// endsArgument reports whether a comma, a bracket or a semicolon follows text[:i] as in
// code.
func (n *naming) endsArgument(i int) bool {
	t := n.text
	j := shape.Skip(t, i, 1, shape.IsBlank)
	return i < len(t) && strings.IndexByte(",;)}", t[i]) >= 0 || j < len(t) && t[j] == '}'
}

// isPlace reports whether v is the version of an image, or the position in a file of a
// compiler's message: vault-secret:1.14.2, secret:12:5.
func (n *naming) isPlace(v string) bool {
	return n.sign == signColon && !n.spaced && shape.IsDigit(v[0]) && strings.ContainsAny(v, ".:") && strings.Trim(v, "0123456789.:") == ""
}

// continuesSentence reports whether a sentence continues after text[:i]. It does if the
// next word is not another name with a value.
func (n *naming) continuesSentence(i int) bool {
	const longest = 40
	t := n.text
	i = shape.Skip(t, i, 1, func(c byte) bool { return c == ',' || c == '.' || c == ':' || c == ';' })
	j := shape.Skip(t, i, 4, shape.IsBlank)
	if j == i || j == len(t) || !shape.IsLetter(t[j]) {
		return false
	}
	end := shape.Skip(t, j, longest, func(c byte) bool { return shape.IsWord(c) || c == '-' || c == '.' })
	return end == len(t) || t[end] != ':' && t[end] != '='
}

// arrowFollows reports whether an arrow follows text[:i], as in the steps through a menu:
// "Settings > Secrets".
func (n *naming) arrowFollows(i int) bool {
	t := n.text
	j := shape.Skip(t, i, 2, shape.IsBlank)
	for _, arrow := range [...]string{">", "->", "=>", "→", "»", "›", "&gt;"} {
		if j > i && strings.HasPrefix(t[j:], arrow) {
			return true
		}
	}
	return false
}

// continuesWithFunctionWord reports whether an English function word follows.
func (n *naming) continuesWithFunctionWord(i int) bool {
	t := n.text
	j := shape.Skip(t, i, 4, shape.IsBlank)
	end := shape.Skip(t, j, 12, shape.IsLetter)
	return j > i && end > j && looks.IsSmallWord(t[j:end])
}

// inSentence reports whether a word precedes the name: "unexpected token: identifier".
func (n *naming) inSentence() bool {
	return n.start >= 2 && n.text[n.start-1] == ' ' && shape.IsLetter(n.text[n.start-2])
}
