package redact

import "strings"

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
	if isPlaceholder(v) || isLocation(v) || n.isPlace(v) || n.weak && !looksCredential(v) {
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
	return !n.isObject(v) && (quoted || !isReference(v) && n.isUnquotedValue(v, to))
}

// isObject reports whether v is the name of a Kubernetes object, such as the object that
// contains a secret or token. If the name is a password's, it returns false.
func (n *naming) isObject(v string) bool {
	return (n.shortest == shortestToken || endsFold(n.text[:n.end], "secret")) && isKubernetesName(v)
}

// isUnquotedValue reports whether v, unquoted up to text[:to], is a value. It is false for
// a word of a sentence, a type, a state and a variable in code.
func (n *naming) isUnquotedValue(v string, to int) bool {
	other := false
	switch n.sign {
	case signColon:
		other = isTypeWord(v) || isStateWord(v) || n.isProse(v, to)
	case signAssign:
		other = n.spaced && isStateWord(v) || n.text[n.start] == '-' && n.isMetavar(v, to)
	case signBlank:
		other = n.isAboutFlag(v, to) || isConstant(v) && namesSecret(v) || strings.HasPrefix(v, "id=")
	}
	return !other && !n.isVariableInCode(v, to)
}

// isAboutFlag reports whether v, which follows a flag, belongs to a text about the
// flag: a sentence or a list of options.
func (n *naming) isAboutFlag(v string, to int) bool {
	return isFlagWord(v) || n.isMetavar(v, to) || allLetters(v) && n.continuesWithFunctionWord(to)
}

// isProse reports whether v, which follows a colon, is a word of a sentence that
// continues. It also accepts a word of a sentence about a token: "unexpected token:
// identifier".
func (n *naming) isProse(v string, to int) bool {
	bare := allLetters(v)
	if bare && n.spaced && n.arrowFollows(to) {
		return true
	}
	return (bare || isCompound(v)) && n.continuesSentence(to) || bare && n.shortest == shortestToken && n.inSentence()
}

// isVariableInCode reports whether v, up to text[:to], is a variable for a secret in code.
// The surrounding text must be code.
func (n *naming) isVariableInCode(v string, to int) bool {
	if isConstant(v) && strings.Contains(v, "_") && namesSecret(v) {
		return true
	}
	argument := n.endsArgument(to)
	if !argument && !n.declares() {
		return false
	}
	return isVariableName(v) || argument && (endsFold(v, "pass") || endsFold(v, "_psk")) || isIdentifier(v) && (n.sign != signColon || namesSecret(v))
}

// declares reports whether code assigns the value: with ":=", after a keyword such as
// const, or to a field of this or self.
func (n *naming) declares() bool {
	if n.sign != signAssign {
		return false
	}
	before := strings.TrimRight(n.text[max(0, n.start-12):n.start], " ")
	word := before[back(before, len(before), len(before), isLetter):]
	switch word {
	case "const", "let", "var", "val", "final", "auto", "String", "string":
		return true
	}
	name := n.text[n.start:n.end]
	return strings.HasPrefix(name, "self.") || strings.HasPrefix(name, "this.") ||
		strings.HasSuffix(strings.TrimRight(n.text[n.end:n.value], " \t"), ":=")
}

// isVariableName reports whether v is a typical name of a short-lived variable for a
// secret.
func isVariableName(v string) bool {
	switch v {
	case "pass", "password", "passwd", "passphrase", "pwd", "secret", "token", "key", "apikey", "apiKey", "api_key",
		"hash", "hashed", "plain", "text", "data", "body", "creds", "input", "field", "result", "value", "self", "this":
		return true
	}
	return false
}

// endsArgument reports whether a comma, a bracket or a semicolon follows text[:i] as in
// code.
func (n *naming) endsArgument(i int) bool {
	t := n.text
	j := skip(t, i, 1, isBlank)
	return i < len(t) && strings.IndexByte(",;)}", t[i]) >= 0 || j < len(t) && t[j] == '}'
}

// isPlace reports whether v is the version of an image, or the position in a file of a
// compiler's message: vault-secret:1.14.2, secret:12:5.
func (n *naming) isPlace(v string) bool {
	return n.sign == signColon && !n.spaced && isDigit(v[0]) && strings.ContainsAny(v, ".:") && strings.Trim(v, "0123456789.:") == ""
}

// continuesSentence reports whether a sentence continues after text[:i]. It does if the
// next word is not another name with a value.
func (n *naming) continuesSentence(i int) bool {
	const longest = 40
	t := n.text
	i = skip(t, i, 1, func(c byte) bool { return c == ',' || c == '.' || c == ':' || c == ';' })
	j := skip(t, i, 4, isBlank)
	if j == i || j == len(t) || !isLetter(t[j]) {
		return false
	}
	end := skip(t, j, longest, func(c byte) bool { return isWord(c) || c == '-' || c == '.' })
	return end == len(t) || t[end] != ':' && t[end] != '='
}

// looksCredential reports whether v, which follows a weak name, is a secret.
func looksCredential(v string) bool { return looksChosen(v) && !isTypeOfCredentials(v) }

// isTypeOfCredentials reports whether v is the name of a type of credentials in code:
// OAuth2Credentials.
func isTypeOfCredentials(v string) bool {
	v = strings.TrimRight(v, "s")
	return endsFold(v, "credential") && skip(v, 0, len(v), func(c byte) bool { return isWord(c) || c == '.' }) == len(v)
}

// arrowFollows reports whether an arrow follows text[:i], as in the steps through a menu:
// "Settings > Secrets".
func (n *naming) arrowFollows(i int) bool {
	t := n.text
	j := skip(t, i, 2, isBlank)
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
	j := skip(t, i, 4, isBlank)
	end := skip(t, j, 12, isLetter)
	return j > i && end > j && isSmallWord(t[j:end])
}

// inSentence reports whether a word precedes the name: "unexpected token: identifier".
func (n *naming) inSentence() bool {
	return n.start >= 2 && n.text[n.start-1] == ' ' && isLetter(n.text[n.start-2])
}

func allLetters(v string) bool {
	for i := range len(v) {
		if !isLetter(v[i]) {
			return false
		}
	}
	return true
}

// isCompound reports whether v is one or two words with a hyphen, a slash or an
// apostrophe in between.
func isCompound(v string) bool {
	i := strings.IndexAny(v, "-/'")
	return i > 0 && allLetters(v[:i]) && allLetters(v[i+1:])
}

// isReference reports whether v, unquoted, is code that refers to a value.
func isReference(v string) bool {
	switch v[0] {
	case '[', '{', '<':
		return true
	case '&', '*', '!', '@', '(':
		if startsWithAny(v, "&#", "&lt;") {
			return true
		}
		rest := strings.TrimLeft(v, "&*!@(")
		return isIdentifierText(strings.TrimRight(rest, ")")) || isExpression(rest)
	case '-':
		return v[1] == '-'
	case '0':
		const longest = 10 // maximum length of a number that is a constant in code
		return len(v) <= longest && v[1] == 'x' && allHex(v[2:])
	case 'C':
		return v[1] == '.' && isConstant(v[2:]) || isExpression(v)
	}
	return isExpression(v)
}

// isLocation reports whether v is a URL, or a file path whose folder names are words.
func isLocation(v string) bool {
	switch {
	case hasFold(v, "https://") || hasFold(v, "http://"):
		return true
	case v[0] == '/' && allLetters(v[1:]):
		return true
	case v[0] == '/', v[0] == '~', v[0] == '.', v[1] == ':' && v[2] == '\\':
		return strings.ContainsAny(v[1:], `/\`) && strangest(v).halfBits < 20
	}
	return false
}

// isExpression reports whether v is a call, an index, a generic type, a composite
// or names joined by dots: getToken(), argv[1], Option<String>, cfg.auth.token,
// secrets::TOKEN.
func isExpression(v string) bool {
	for i, joined := 0, false; ; joined = true {
		start := i
		i = skip(v, i, len(v), func(c byte) bool { return isWord(c) || c == '$' })
		if !isNameInCode(v[start:i]) {
			return false
		}
		rest := v[i:]
		switch {
		case rest == "":
			return joined && !endsInNumber(v)
		case rest == "!" || rest == "?":
			return joined
		case opensBracket(rest):
			end := strings.LastIndexAny(rest, ")]}>")
			return end < 0 || end == len(rest)-1 || !isAlnum(rest[end+1])
		}
		n := joinWidth(rest)
		if n == 0 {
			return false
		}
		i += n
	}
}

// isNameInCode reports whether v is a possible name in code and consists of words.
func isNameInCode(v string) bool {
	if v == "" || isDigit(v[0]) {
		return false
	}
	limit := 24
	if strings.ContainsAny(v, "0123456789") {
		limit = 16
	}
	return strangest(v).halfBits < limit
}

// opensBracket reports whether s begins with the text that follows a name in a call, an
// index, a generic type, a composite or a macro.
func opensBracket(s string) bool {
	return strings.IndexByte("([{<", s[0]) >= 0 || strings.HasPrefix(s, "!(") || strings.HasPrefix(s, "![")
}

// joinWidth returns the length of the sign that joins two names at the start of s, or 0 if
// there is none.
func joinWidth(s string) int {
	for _, j := range [...]string{"?.", "!.", "->", "::", "."} {
		if strings.HasPrefix(s, j) {
			return len(j)
		}
	}
	return 0
}

// endsInNumber reports whether the last name in v mixes digits into letters, unlike names
// in code.
func endsInNumber(v string) bool {
	last := v[strings.LastIndexAny(v, ".>:")+1:]
	trimmed := strings.TrimRight(last, "0123456789")
	return strings.ContainsAny(trimmed, "0123456789") || len(last)-len(trimmed) > 2
}

// namesSecret reports whether an identifier is the name of a secret: token = authToken.
func namesSecret(v string) bool {
	l := strings.ToLower(v)
	for _, w := range [...]string{"password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "api_key", "access_key", "private_key"} {
		if strings.Contains(l, w) {
			return true
		}
	}
	return false
}

// isIdentifierText reports whether v consists of letters and underscores.
func isIdentifierText(v string) bool {
	for i := range len(v) {
		if !isLetter(v[i]) && v[i] != '_' {
			return false
		}
	}
	return v != ""
}

// isIdentifier reports whether v is a name of more than one word, as in code: hashedValue,
// raw_value.
func isIdentifier(v string) bool {
	if !isIdentifierText(v) {
		return false
	}
	for i := 1; i < len(v); i++ {
		if v[i] == '_' && i < len(v)-1 || isUpper(v[i]) && isLower(v[i-1]) {
			return strangest(v).halfBits < 24
		}
	}
	return false
}
