package tooloutput

import "strings"

// StripEscapes removes the escape codes of terminals: colours and other control sequences,
// titles, links and other strings, and single-character escapes. An unterminated one ends at the
// end of its line.
func StripEscapes(s string) string {
	if strings.IndexByte(s, esc) < 0 && !strings.Contains(s, csi) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		switch {
		case s[i] == esc:
			i = escapeEnd(s, i+1)
		case strings.HasPrefix(s[i:], csi):
			i = sequenceEnd(s, i+len(csi))
		default:
			b = append(b, s[i])
			i++
		}
	}
	return string(b)
}

const (
	esc = 0x1b
	csi = "\u009b" // one character for ESC [
)

// escapeEnd returns the end of the escape whose ESC is before i.
func escapeEnd(s string, i int) int {
	if i == len(s) {
		return i
	}
	switch s[i] {
	case '[':
		return sequenceEnd(s, i+1)
	case ']', 'P', 'X', '^', '_':
		return stringEnd(s, i+1)
	}
	for i < len(s) && s[i] >= ' ' && s[i] <= '/' {
		i++
	}
	if i < len(s) && s[i] >= '0' && s[i] <= '~' {
		i++
	}
	return i
}

// sequenceEnd returns the end of a control sequence: after its parameters, its intermediates, and
// its final character if there is one.
func sequenceEnd(s string, i int) int {
	for i < len(s) && s[i] >= ' ' && s[i] <= '?' {
		i++
	}
	if i < len(s) && s[i] >= '@' && s[i] <= '~' {
		i++
	}
	return i
}

// stringEnd returns the end of a control string: after BEL, or before the end of the line or the
// next ESC. ESC \ is handled as an escape of its own.
func stringEnd(s string, i int) int {
	n := strings.IndexAny(s[i:], "\a\n\x1b")
	if n < 0 {
		return len(s)
	}
	if i += n; s[i] == '\a' {
		i++
	}
	return i
}
