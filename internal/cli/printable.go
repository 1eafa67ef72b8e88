package cli

import (
	"strings"
	"unicode"
)

// printable is a text of others as a terminal may have it: without escape sequences
// and control characters, which could steer it, and without separators of lines and
// characters that turn the direction of writing or cannot be seen, which could make
// it show something else.
func printable(s string) string {
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
	case r == 0x2028, r == 0x2029, unicode.Is(unicode.Cf, r): // ends of lines, marks of direction, characters without a shape
		return true
	}
	return false
}

// sequence is the length of the control character that a text begins with, and of
// the escape sequence that it opens.
func sequence(s string) int {
	first := []rune(s[:min(len(s), 4)])[0]
	length := len(string(first))
	kind, at := first, length
	if first == 0x1b {
		if at == len(s) {
			return at
		}
		kind, at = rune(s[at])+0x40, at+1 // the second half of an escape says what its one-character form says
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
