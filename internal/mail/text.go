package mail

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean removes escape sequences, invalid bytes, control characters except line feeds, and
// format characters, which are invisible or change the text direction. Tabs and carriage
// returns become spaces.
func Clean(text string) string {
	var b strings.Builder
	rest := text
	for rest != "" {
		if rest[0] == '\x1b' {
			rest = afterEscape(rest[1:])
			continue
		}
		r, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		if r == '\n' || !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && r != unicode.ReplacementChar {
			b.WriteRune(r)
		} else if r == '\t' || r == '\r' {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// afterEscape returns the text after an escape sequence; rest begins after its ESC.
func afterEscape(rest string) string {
	if rest == "" {
		return ""
	}
	switch rest[0] {
	case '[': // parameters, then one final byte
		i := strings.IndexFunc(rest[1:], func(r rune) bool { return r >= 0x40 && r <= 0x7e || r < 0x20 })
		if i < 0 {
			return ""
		}
		return rest[1+i+1:]
	case ']', 'P', '_', '^', 'X': // a text up to BEL or ESC \
		if i := strings.IndexAny(rest, "\a\x1b\n"); i >= 0 {
			return strings.TrimPrefix(rest[i+1:], `\`)
		}
		return ""
	}
	_, size := utf8.DecodeRuneInString(rest)
	return rest[size:]
}
