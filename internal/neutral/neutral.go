// Package neutral makes untrusted text safe to show to a model or a harness. The result
// contains no tags, code spans, table cells, headings, conversation turns or invisible
// characters, so it cannot imitate the structure around it.
package neutral

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rune returns the character that replaces r, or -1 if r must be dropped. rest is the
// text after r; first reports whether r begins a line. Characters that could forge
// structure are replaced by similar ones. The result does not depend on characters in
// rest that are dropped.
func Rune(r rune, rest string, first bool) rune {
	switch {
	case Invisible(r):
		return -1
	case r == '|':
		return '¦'
	case r == '`':
		return '\''
	case r == '#' && first:
		return '♯'
	case r == '<' && opensTag(rest):
		return '‹'
	}
	return r
}

// Invisible reports whether a character is invisible: controls, direction and format
// marks, fillers and invalid bytes. Spaces and line separators are not invisible.
func Invisible(r rune) bool {
	if r < 0x7f {
		return r < ' ' && r != '\n' && r != '\t' && r != '\r'
	}
	return unicode.IsControl(r) || r == utf8.RuneError || unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// opensTag reports whether the text after a < makes it the start of a tag. Spaces before
// a slash do not matter.
func opensTag(rest string) bool {
	spaced := false
	for _, r := range rest {
		switch {
		case Invisible(r):
		case unicode.IsSpace(r):
			spaced = true
		case r == '/':
			return true
		default:
			return !spaced && (r == '!' || r == '?' || r == '|' || unicode.IsLetter(r))
		}
	}
	return false
}

// Line returns a text as one line. Each run of white space and line separators becomes
// one space, and Rune replaces each character.
func Line(s string) string {
	var b strings.Builder
	space := false
	for i, r := range s {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		if r = Rune(r, s[i+size:], b.Len() == 0); r < 0 {
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// quoteTurn replaces the colon of a line that looks like the start of a conversation
// turn.
func quoteTurn(line string) string {
	name, rest, ok := strings.Cut(line, ":")
	if !ok {
		return line
	}
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "human", "user", "assistant", "system", "developer", "tool":
		return name + "：" + rest
	}
	return line
}

// Block returns a text of several lines for a fenced block. It removes tags, headings,
// conversation turns and invisible characters. Spaces, bars and backticks stay; the
// caller must choose a fence that is longer than every run of backticks.
func Block(s string) string {
	var b strings.Builder
	first := true
	for i, r := range s {
		switch {
		case r == '\n':
			b.WriteByte('\n')
			first = true
			continue
		case unicode.IsSpace(r):
			b.WriteByte(' ')
			continue
		}
		if r != '`' && r != '|' {
			_, size := utf8.DecodeRuneInString(s[i:])
			r = Rune(r, s[i+size:], first)
		}
		if r >= 0 {
			b.WriteRune(r)
			first = false
		}
	}
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		lines[i] = quoteTurn(line)
	}
	return strings.Join(lines, "\n")
}
