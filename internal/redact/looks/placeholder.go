package looks

import (
	"strings"

	"cairn/internal/redact/shape"
)

// IsPlaceholder reports whether v, quoted or not, is a placeholder for a secret.
func IsPlaceholder(v string) bool {
	return IsMasked(v) || IsVariable(v) || isTemplate(v) || isNull(v)
}

// IsMasked reports whether v is one repeated character: ****, xxxx, ....
func IsMasked(v string) bool {
	if len(v) > 2 && strings.TrimLeft(v, v[:1]) == "" {
		return !shape.IsAlnum(v[0]) || v[0]|0x20 == 'x'
	}
	r := strings.TrimLeft(v, "•●…·")
	return r == ""
}

// IsVariable reports whether v is a variable of a shell or a configuration file, or a verb
// of a format string. Examples are $VAR, ${VAR}, $(command), %VAR%, $env:VAR and
// $object->field.
func IsVariable(v string) bool {
	if len(v) < 2 {
		return false
	}
	switch v[0] {
	case '%':
		verb := strings.IndexByte("svqdxTw", v[1]) >= 0 && (len(v) == 2 || !shape.IsAlnum(v[2]))
		return verb || v[1] == '(' || v[len(v)-1] == '%' && IsIdentifierText(v[1:len(v)-1])
	case '$':
		return isShellVariable(v[1:])
	}
	return false
}

// isShellVariable reports whether v, which follows a dollar sign, is a variable's name or
// an expansion. It is false for the rest of a password that contains a dollar sign.
func isShellVariable(v string) bool {
	if strings.IndexByte("{($@", v[0]) >= 0 || shape.HasFold(v, "env:") || shape.IsDigit(v[0]) && len(v) == 1 {
		return true
	}
	end := shape.CountClass(v, 0, len(v), 'w')
	name := v[:end]
	if strings.ContainsAny(name, "0123456789") {
		return end == len(v) && IsConstant(name)
	}
	return end > 0 && (end == len(v) || strings.IndexByte(`-[.:/?+,;)}`, v[end]) >= 0)
}

// IsConstant reports whether v is written like the name of an environment
// variable.
func IsConstant(v string) bool {
	for i := range len(v) {
		if !shape.IsUpper(v[i]) && !shape.IsDigit(v[i]) && v[i] != '_' {
			return false
		}
	}
	return v != ""
}

// isTemplate reports whether v is a placeholder to fill in: <token>, {token}, {{ .Token
// }}, #{token}, [token], @token@, or a link to a secret store.
func isTemplate(v string) bool {
	last := v[len(v)-1]
	switch v[0] {
	case '<':
		return last == '>'
	case '{':
		return last == '}' || strings.HasPrefix(v, "{{")
	case '[':
		return last == ']'
	case '#':
		return strings.HasPrefix(v, "#{")
	case '@':
		return strings.HasPrefix(v, "@{") || last == '@'
	}
	return namesReader(v) || startsWithAny(v, "op://", "arn:aws:", "vault:", "ssm:", "env:", "file:", "sm://", "keyring:", "secretref:",
		"replace-", "replace_", "replaceme") || shape.EndsFold(v, "-here") || shape.EndsFold(v, "_here") || shape.EndsFold(v, "placeholder")
}

// startsWithAny reports whether v begins with one of the prefixes, in any case.
func startsWithAny(v string, prefixes ...string) bool {
	for _, p := range prefixes {
		if shape.HasFold(v, p) {
			return true
		}
	}
	return false
}

// namesReader reports whether "your" is a word of v: my_YOUR_KEY.
func namesReader(v string) bool {
	const your = "your"
	for i := 0; i+len(your) < len(v); i++ {
		if shape.HasFold(v[i:], your) && (i == 0 || !shape.IsLetter(v[i-1])) && !shape.IsAlnum(v[i+len(your)]) {
			return true
		}
	}
	return false
}

// isNull reports whether v is a word for a missing secret.
func isNull(v string) bool {
	switch strings.ToLower(v) {
	case "null", "none", "undefined", "true", "false", "string", "redacted", "unset":
		return true
	}
	return false
}

// IsTypeWord reports whether v is the name of a type, or begins an expression.
func IsTypeWord(v string) bool {
	switch strings.ToLower(v) {
	case "bool", "boolean", "bytes", "byte", "char", "integer", "number", "float", "object", "void", "text", "varchar", "buffer",
		"secretstr", "optional", "never", "uint8array", "unknown", "async", "await", "function", "lambda", "return":
		return true
	}
	return false
}

// IsStateWord reports whether v, after a colon, is the state of a secret.
func IsStateWord(v string) bool {
	switch strings.ToLower(v) {
	case "required", "missing", "invalid", "expired", "incorrect", "wrong", "mismatch", "rejected", "unauthorized",
		"disabled", "enabled", "absent", "present", "empty", "hidden", "default", "private", "todo", "inherit":
		return true
	}
	return false
}

// IsFlagWord reports whether v, which follows "--token", is a word about the flag.
func IsFlagWord(v string) bool {
	switch strings.ToLower(v) {
	case "flag", "flags", "option", "options", "argument", "arguments", "parameter", "switch", "name", "file", "path", "value", "instead":
		return true
	}
	return IsSmallWord(v)
}

// IsSmallWord reports whether v is a function word of English sentences.
func IsSmallWord(v string) bool {
	switch strings.ToLower(v) {
	case "is", "are", "was", "were", "be", "to", "for", "and", "or", "the", "a", "an", "in", "of", "on", "with", "from", "that",
		"this", "which", "will", "would", "can", "does", "has", "have", "should", "must", "may", "not", "when", "if", "by", "as",
		"so", "but", "it", "we", "you", "via", "only", "here", "needs", "because", "before", "after", "then", "than", "into":
		return true
	}
	return false
}
