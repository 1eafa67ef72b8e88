package command

import (
	"strings"
	"unicode"
)

// Printable makes a text from others safe for a terminal. It removes escape sequences
// and control characters, which could control the terminal. It also removes line
// separators, direction marks and invisible characters, which could disguise the text.
func Printable(s string) string {
	var out strings.Builder
	for s != "" {
		start := strings.IndexFunc(s, isControl)
		if start < 0 {
			break
		}
		out.WriteString(s[:start])
		s = s[start:]
		s = s[sequence(s):]
	}
	if out.Len() == 0 {
		return s
	}
	out.WriteString(s)
	return out.String()
}

func isControl(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0:
		return true
	case r == 0x2028, r == 0x2029, unicode.Is(unicode.Cf, r): // line separators, direction marks, invisible characters
		return true
	}
	return false
}

// sequence returns the length of the control character at the beginning of a text,
// including the escape sequence that it starts.
func sequence(s string) int {
	first := []rune(s[:min(len(s), 4)])[0]
	length := len(string(first))
	kind, at := first, length
	if first == 0x1b {
		if at == len(s) {
			return at
		}
		kind, at = rune(s[at])+0x40, at+1 // a two-character escape means the same as its one-character form
	}
	switch kind {
	case 0x9b: // parameters and a final character
		end := at
		for end < len(s) && s[end] >= ' ' && s[end] <= '?' {
			end++
		}
		if end < len(s) && s[end] >= '@' && s[end] <= '~' {
			return end + 1
		}
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f: // text up to a terminator
		bell, stop := strings.IndexByte(s[at:], 0x07), strings.Index(s[at:], "\x1b\\")
		switch {
		case bell >= 0 && (stop < 0 || bell < stop):
			return at + bell + 1
		case stop >= 0:
			return at + stop + 2
		}
	}
	return length
}
