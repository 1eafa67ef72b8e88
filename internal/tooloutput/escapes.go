package tooloutput

import "strings"

// StripEscapes removes the escape codes of terminals: colours and other control
// sequences, titles, links and other strings, and single-character escapes. An
// unfinished one ends at the next line at the latest.
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

// escapeEnd is where the escape whose ESC stands before i ends.
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

// sequenceEnd is where a control sequence ends: parameters, intermediates, and
// the final character if there is one.
func sequenceEnd(s string, i int) int {
	for i < len(s) && s[i] >= ' ' && s[i] <= '?' {
		i++
	}
	if i < len(s) && s[i] >= '@' && s[i] <= '~' {
		i++
	}
	return i
}

// stringEnd is where a control string ends: behind BEL, or before the line's end
// or the next escape, which ESC \ is too.
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
