package looks

import (
	"strings"

	"cairn/internal/redact/shape"
)

// IsVariableName reports whether v is a typical name of a short-lived variable for a
// secret.
func IsVariableName(v string) bool {
	switch v {
	case "pass", "password", "passwd", "passphrase", "pwd", "secret", "token", "key", "apikey", "apiKey", "api_key",
		"hash", "hashed", "plain", "text", "data", "body", "creds", "input", "field", "result", "value", "self", "this":
		return true
	}
	return false
}

// Credential reports whether v, which follows a weak name, is a secret.
func Credential(v string) bool { return Chosen(v) && !isTypeOfCredentials(v) }

// isTypeOfCredentials reports whether v is the name of a type of credentials in code:
// OAuth2Credentials.
func isTypeOfCredentials(v string) bool {
	v = strings.TrimRight(v, "s")
	return shape.EndsFold(v, "credential") && shape.Skip(v, 0, len(v), func(c byte) bool { return shape.IsWord(c) || c == '.' }) == len(v)
}

// AllLetters reports whether v consists of ASCII letters.
func AllLetters(v string) bool {
	for i := range len(v) {
		if !shape.IsLetter(v[i]) {
			return false
		}
	}
	return true
}

// IsCompound reports whether v is one or two words with a hyphen, a slash or an
// apostrophe in between.
func IsCompound(v string) bool {
	i := strings.IndexAny(v, "-/'")
	return i > 0 && AllLetters(v[:i]) && AllLetters(v[i+1:])
}

// IsReference reports whether v, unquoted, is code that refers to a value.
func IsReference(v string) bool {
	switch v[0] {
	case '[', '{', '<':
		return true
	case '&', '*', '!', '@', '(':
		if startsWithAny(v, "&#", "&lt;") {
			return true
		}
		rest := strings.TrimLeft(v, "&*!@(")
		return IsIdentifierText(strings.TrimRight(rest, ")")) || isExpression(rest)
	case '-':
		return v[1] == '-'
	case '0':
		const longest = 10 // maximum length of a number that is a constant in code
		return len(v) <= longest && v[1] == 'x' && AllHex(v[2:])
	case 'C':
		return v[1] == '.' && IsConstant(v[2:]) || isExpression(v)
	}
	return isExpression(v)
}

// IsLocation reports whether v is a URL, or a file path whose folder names are words.
func IsLocation(v string) bool {
	switch {
	case shape.HasFold(v, "https://") || shape.HasFold(v, "http://"):
		return true
	case v[0] == '/' && AllLetters(v[1:]):
		return true
	case v[0] == '/', v[0] == '~', v[0] == '.', v[1] == ':' && v[2] == '\\':
		return strings.ContainsAny(v[1:], `/\`) && Strangest(v).HalfBits < 20
	}
	return false
}

// isExpression reports whether v is a call, an index, a generic type, a composite
// or names joined by dots: getToken(), argv[1], Option<String>, cfg.auth.token,
// secrets::TOKEN.
func isExpression(v string) bool {
	for i, joined := 0, false; ; joined = true {
		start := i
		i = shape.Skip(v, i, len(v), func(c byte) bool { return shape.IsWord(c) || c == '$' })
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
			return end < 0 || end == len(rest)-1 || !shape.IsAlnum(rest[end+1])
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
	if v == "" || shape.IsDigit(v[0]) {
		return false
	}
	limit := 24
	if strings.ContainsAny(v, "0123456789") {
		limit = 16
	}
	return Strangest(v).HalfBits < limit
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

// NamesSecret reports whether an identifier is the name of a secret: token = authToken.
func NamesSecret(v string) bool {
	l := strings.ToLower(v)
	for _, w := range [...]string{"password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "api_key", "access_key", "private_key"} {
		if strings.Contains(l, w) {
			return true
		}
	}
	return false
}

// IsIdentifierText reports whether v consists of letters and underscores.
func IsIdentifierText(v string) bool {
	for i := range len(v) {
		if !shape.IsLetter(v[i]) && v[i] != '_' {
			return false
		}
	}
	return v != ""
}

// IsIdentifier reports whether v is a name of more than one word, as in code: hashedValue,
// raw_value.
func IsIdentifier(v string) bool {
	if !IsIdentifierText(v) {
		return false
	}
	for i := 1; i < len(v); i++ {
		if v[i] == '_' && i < len(v)-1 || shape.IsUpper(v[i]) && shape.IsLower(v[i-1]) {
			return Strangest(v).HalfBits < 24
		}
	}
	return false
}
