package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

// isMetavar reports whether v, which follows a flag and ends at text[to], is the name of
// the flag's value in a usage text: "--password PASS", "[--token TOK]",
// "  --secret text   the secret to use".
func (n *naming) isMetavar(v string, to int) bool {
	if !looks.IsIdentifierText(v) && !looks.IsConstant(v) {
		return false
	}
	t := n.text
	switch strings.ToLower(v) {
	case "strings", "stringarray", "stringslice", "stringtostring", "bytesbase64", "arg", "val", "text", "str":
		return true
	}
	if looks.IsConstant(v) && (isMetaWord(v) || n.inUsage()) {
		return true
	}
	line := shape.Back(t, n.start, 200, func(c byte) bool { return c != '\n' })
	switch {
	case n.start > 0 && t[n.start-1] == '[' && to < len(t) && t[to] == ']':
		return true
	case isBlanksAndFlags(t[line:n.start]):
		return describes(t, to)
	}
	return false
}

// isMetaWord reports whether v, in capitals, ends with a word that usage texts use for a
// value: PATH_TO_KEY, PASS, VALUE.
func isMetaWord(v string) bool {
	switch v[strings.LastIndexByte(v, '_')+1:] {
	case "PASS", "PW", "PWD", "PASSWD", "PASSWORD", "PASSPHRASE", "SECRET", "TOKEN", "KEY", "KEYID", "STRING", "TEXT", "VALUE", "VAL",
		"NAME", "FILE", "PATH", "ARG", "ID", "USER", "STR", "TOK", "FILENAME", "KEYFILE":
		return true
	}
	return false
}

// inUsage reports whether the line of the name begins like a usage text.
func (n *naming) inUsage() bool {
	const reach = 200
	line := shape.Back(n.text, n.start, reach, func(c byte) bool { return c != '\n' })
	return strings.Contains(strings.ToLower(n.text[line:n.start]), "usage:")
}

// isBlanksAndFlags reports whether s is the start of a line in a list of options: blanks,
// optionally followed by other flags with a comma.
func isBlanksAndFlags(s string) bool {
	blanks := shape.Skip(s, 0, len(s), shape.IsBlank)
	rest := strings.TrimRight(s[blanks:], " ")
	return rest == "" || rest[0] == '-' && strings.HasSuffix(rest, ",") && !strings.Contains(rest, " ")
}

// describes reports whether a description follows text[:i] as in a list of options: at
// least two blanks, or a tab, then a word.
func describes(t string, i int) bool {
	j := shape.Skip(t, i, 80, shape.IsBlank)
	return j < len(t) && (j-i >= 2 || j > i && t[i] == '\t') && (shape.IsAlnum(t[j]) || t[j] == '(' || t[j] == '[')
}
