package markdown

import (
	"fmt"
	"strings"
)

// Visible returns a text with control characters, except line breaks and tabs, and bidirectional
// control characters replaced by their code points.
func Visible(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if hidden(r) {
			out.WriteString(name(r))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

func hidden(r rune) bool { return turns(r) || isControl(r) }

func name(r rune) string { return fmt.Sprintf("U+%04X", r) }

// turns reports whether a character changes the direction of writing.
func turns(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x61c
}

func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
}
