package redact

import "strings"

// isSecret decides whether text[from:to], which is assigned to a secret's name,
// is a secret itself and not a reference to one, a placeholder, a type, or the
// beginning of a sentence.
func (n *naming) isSecret(from, to int, quoted bool) bool {
	v := n.text[from:to]
	if len(v) < n.shortest || onlyMarks(v) {
		return false
	}
	if len(v) > longestReference {
		return true
	}
	if isPlaceholder(v) || isLocation(v) || !quoted && isReference(v) || n.isPlace(v) {
		return false
	}
	bare := allLetters(v)
	switch {
	case n.sign == signEqual:
		return !bare && strings.ContainsAny(v, "0123456789")
	case quoted:
		return true
	case n.sign == signColon && (bare || isCompound(v)) && n.goesOn(to):
		return false
	case n.sign == signColon && bare && n.shortest == shortestToken && n.inSentence():
		return false
	case n.sign == signBlank:
		return !(bare && (isFlagWord(v) || n.goesOnAsSentence(to))) && !strings.HasPrefix(v, "id=")
	case bare && n.endsArgument(to) && isVariableName(v):
		return false
	case isConstant(v) && strings.Contains(v, "_") && namesSecret(v):
		return false
	case n.spaced || n.endsArgument(to):
		return !isIdentifier(v) || n.sign == signColon && !(namesSecret(v) && n.endsArgument(to))
	}
	return true
}

// isVariableName reports whether v is what a variable is called that holds a
// secret for a line or two.
func isVariableName(v string) bool {
	switch v {
	case "pass", "hash", "hashed", "plain", "text", "data", "body", "creds", "input", "field", "result":
		return true
	}
	return false
}

// endsArgument reports whether a comma, a bracket or a semicolon follows text[:i]
// as it does in code.
func (n *naming) endsArgument(i int) bool {
	t := n.text
	j := skip(t, i, 1, isBlank)
	return i < len(t) && strings.IndexByte(",;)}", t[i]) >= 0 || j < len(t) && t[j] == '}'
}

// isPlace reports whether v is the version of an image or the place in a file of
// a compiler's message: vault-secret:1.14.2, secret:12:5.
func (n *naming) isPlace(v string) bool {
	return n.sign == signColon && !n.spaced && isDigit(v[0]) && strings.ContainsAny(v, ".:") && strings.Trim(v, "0123456789.:") == ""
}

// goesOn reports whether a sentence goes on behind text[:i], that is whether a
// word follows that is not another name with a value.
func (n *naming) goesOn(i int) bool {
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

// goesOnAsSentence reports whether one of the small words of English follows.
func (n *naming) goesOnAsSentence(i int) bool {
	t := n.text
	j := skip(t, i, 4, isBlank)
	end := skip(t, j, 12, isLetter)
	return j > i && end > j && isSmallWord(t[j:end])
}

// inSentence reports whether the name stands behind another word: "unexpected
// token: identifier".
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

// isPlaceholder reports whether v, quoted or not, only stands for a secret.
func isPlaceholder(v string) bool {
	return isMasked(v) || isVariable(v) || isTemplate(v) || isEmptyWord(v)
}

// isMasked reports whether v is one sign over and over: ****, xxxx, ....
func isMasked(v string) bool {
	if len(v) > 2 && strings.TrimLeft(v, v[:1]) == "" {
		return !isAlnum(v[0]) || v[0]|0x20 == 'x' || v[0] == '0'
	}
	r := strings.TrimLeft(v, "•●…·")
	return r == ""
}

// isVariable reports whether v is a variable of a shell or a configuration file:
// $VAR, ${VAR}, $(command), %VAR%, $env:VAR, $object->field.
func isVariable(v string) bool {
	if v[0] == '%' && len(v) > 1 {
		verb := strings.IndexByte("svqdxTw", v[1]) >= 0 && (len(v) == 2 || !isAlnum(v[2]))
		return verb || v[1] == '(' || v[len(v)-1] == '%' && isIdentifierText(v[1:len(v)-1])
	}
	if v[0] != '$' || len(v) == 1 {
		return false
	}
	name := v[1:]
	switch c := name[0]; {
	case c == '{' || c == '(' || c == '$' || c == '@' || isDigit(c) && len(name) == 1:
		return true
	case hasFold(name, "env:"):
		return true
	}
	end := countClass(name, 0, len(name), 'w')
	if end == 0 {
		return false
	}
	whole := end == len(name) || strings.IndexByte(`-[.:/?+,;)}`, name[end]) >= 0 && !strings.ContainsAny(name[:end], "0123456789")
	return whole && (isConstant(name[:end]) || !strings.ContainsAny(name[:end], "0123456789"))
}

// isConstant reports whether v is written like the name of an environment
// variable.
func isConstant(v string) bool {
	for i := range len(v) {
		if !isUpper(v[i]) && !isDigit(v[i]) && v[i] != '_' {
			return false
		}
	}
	return v != ""
}

// isTemplate reports whether v is to be filled in: <token>, {token}, {{ .Token }},
// #{token}, [token], @token@, or a link to a secret store.
func isTemplate(v string) bool {
	last := v[len(v)-1]
	switch v[0] {
	case '<':
		return last == '>'
	case '{':
		return last == '}' || strings.HasPrefix(v, "{{")
	case '[':
		return last == ']'
	case '#', '@':
		return len(v) > 1 && v[1] == '{' || v[0] == '@' && last == '@'
	}
	for _, scheme := range [...]string{"op://", "arn:aws:", "vault:", "ssm:", "env:", "file:", "sm://", "keyring:", "secretref:"} {
		if hasFold(v, scheme) {
			return true
		}
	}
	return namesReader(v) || endsFold(v, "-here") || endsFold(v, "_here") || endsFold(v, "placeholder") ||
		hasFold(v, "replace-") || hasFold(v, "replace_") || hasFold(v, "replaceme")
}

// namesReader reports whether "your" is a word of v: phc_YOUR_KEY.
func namesReader(v string) bool {
	const your = "your"
	for i := 0; i+len(your) < len(v); i++ {
		if hasFold(v[i:], your) && (i == 0 || !isLetter(v[i-1])) && !isAlnum(v[i+len(your)]) {
			return true
		}
	}
	return false
}

// isEmptyWord reports whether v is a word that says that there is no secret
// here: a null, a truth value, a type, the secret's own name, a state.
func isEmptyWord(v string) bool {
	switch strings.ToLower(v) {
	case "null", "none", "undefined", "true", "false", "default", "empty", "redacted", "hidden", "unset", "private",
		"disabled", "enabled", "absent", "present", "todo",
		"string", "str", "bool", "boolean", "int", "integer", "number", "float", "bytes", "byte", "char", "object",
		"unknown", "void", "text", "varchar", "buffer", "secretstr", "optional", "any", "never", "uint8array",
		"password", "passwd", "passphrase", "secret", "token", "apikey", "api_key", "api-key", "access_token", "key",
		"required", "missing", "invalid", "expired", "incorrect", "wrong", "mismatch", "rejected", "unauthorized",
		"async", "await", "function", "lambda", "return", "self", "this", "input", "value", "values", "args":
		return true
	}
	return false
}

// isReference reports whether v, unquoted, is code that leads to a value.
func isReference(v string) bool {
	switch v[0] {
	case '[', '{', '<':
		return true
	case '&', '*', '!', '@', '(':
		rest := strings.TrimLeft(v, "&*!@(")
		return isIdentifierText(strings.TrimRight(rest, ")")) || isExpression(rest)
	case '-':
		return v[1] == '-'
	}
	return isExpression(v)
}

// isLocation reports whether v is a URL, or the path of a file whose folders are
// named by words.
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
	i, joined := 0, false
	for {
		start := i
		i = skip(v, i, len(v), func(c byte) bool { return isWord(c) || c == '$' })
		if i == start || isDigit(v[start]) {
			return false
		}
		if s := strangest(v[start:i]).halfBits; s >= 24 || s >= 16 && strings.ContainsAny(v[start:i], "0123456789") {
			return false
		}
		rest := v[i:]
		switch {
		case rest == "":
			return joined && !endsInNumber(v)
		case strings.IndexByte("([{<", rest[0]) >= 0, hasFold(rest, "!("), hasFold(rest, "!["):
			end := strings.LastIndexAny(rest, ")]}>")
			return end < 0 || end == len(rest)-1 || !isAlnum(rest[end+1])
		case rest == "!" || rest == "?":
			return joined
		}
		n := joinWidth(rest)
		if n == 0 {
			return false
		}
		i, joined = i+n, true
	}
}

// joinWidth returns the length of the sign that joins two names at the start of
// s, 0 if there is none.
func joinWidth(s string) int {
	for _, j := range [...]string{"?.", "!.", "->", "::", "."} {
		if strings.HasPrefix(s, j) {
			return len(j)
		}
	}
	return 0
}

// endsInNumber reports whether the last of v's names mixes digits into letters,
// as no name in code does.
func endsInNumber(v string) bool {
	last := v[strings.LastIndexAny(v, ".>:")+1:]
	trimmed := strings.TrimRight(last, "0123456789")
	return strings.ContainsAny(trimmed, "0123456789") || len(last)-len(trimmed) > 2
}

// namesSecret reports whether an identifier is itself the name of a secret:
// token = authToken.
func namesSecret(v string) bool {
	l := strings.ToLower(v)
	for _, w := range [...]string{"password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "api_key", "access_key", "private_key"} {
		if strings.Contains(l, w) {
			return true
		}
	}
	return false
}

// isIdentifierText reports whether v is letters and underscores.
func isIdentifierText(v string) bool {
	for i := range len(v) {
		if !isLetter(v[i]) && v[i] != '_' {
			return false
		}
	}
	return v != ""
}

// isIdentifier reports whether v is a name of more than one word, as code has
// them: hashedValue, raw_value.
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

// isFlagWord reports whether v, behind "--token", only speaks about the flag.
func isFlagWord(v string) bool {
	switch strings.ToLower(v) {
	case "flag", "flags", "option", "options", "argument", "arguments", "parameter", "switch", "name", "file", "path", "instead":
		return true
	}
	return isSmallWord(v)
}

// isSmallWord reports whether v is one of the words that hold English sentences
// together.
func isSmallWord(v string) bool {
	switch strings.ToLower(v) {
	case "is", "are", "was", "were", "be", "to", "for", "and", "or", "the", "a", "an", "in", "of", "on", "with", "from", "that",
		"this", "which", "will", "would", "can", "does", "has", "have", "should", "must", "may", "not", "when", "if", "by", "as",
		"so", "but", "it", "we", "you", "via", "only", "here", "needs", "because", "before", "after", "then", "than", "into":
		return true
	}
	return false
}
