// Package neutral changes text of others so that it cannot act as the structure
// around it, in what a harness or a model reads: no tags, code spans, table cells,
// headings, turns of a conversation, or characters that cannot be seen.
package neutral

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rune returns the character that replaces r, or -1 if r must be dropped. rest is the
// text behind r; first reports whether r begins a line. Characters that could forge
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

// Invisible reports whether a character has no shape of its own: controls, marks of
// direction and format, fillers and broken bytes. Spaces and line separators have one.
func Invisible(r rune) bool {
	if r < 0x7f {
		return r < ' ' && r != '\n' && r != '\t' && r != '\r'
	}
	return unicode.IsControl(r) || r == utf8.RuneError || unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// opensTag reports whether text behind a < makes it the beginning of a tag. Spaces
// between them do not matter if a slash follows.
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

// Line returns a text as one line: every run of white space and line separators is
// one space, and every character is one that Rune permits.
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

// quoteTurn replaces the colon of a line that begins a turn of a conversation in the
// text that models read.
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

// Block returns a text of several lines for a fenced block: without tags, headings,
// turns of a conversation and invisible characters. Spaces, bars and backticks stay;
// the caller must choose a fence that is longer than every run of backticks.
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
