package oneline

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cairn/internal/neutral"
)

// Cut returns the first n characters of s.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// Join returns the first 4,000 characters of a text on one line, with white space collapsed.
func Join(s string) string { return strings.Join(strings.Fields(Cut(s, 4000)), " ") }

// Cell returns stored text in a form that is safe within a line of the context. It keeps the first
// line, at most n characters, without control and formatting characters. Characters that could
// imitate the structure of the context are replaced. A cut text ends with "…".
func Cell(s string, n int) string {
	s = strings.TrimLeftFunc(s, unicode.IsSpace)
	if i := strings.IndexAny(s, "\n\r\u2028\u2029"); i >= 0 {
		s = s[:i]
	}
	var b strings.Builder
	left, space := n, false
	for i, r := range s {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		if r = neutral.Rune(r, s[i+size:], b.Len() == 0); r < 0 {
			continue
		}
		if space && left > 0 {
			b.WriteByte(' ')
			left, space = left-1, false
		}
		if left == 0 {
			return shorten(b.String())
		}
		b.WriteRune(r)
		left--
	}
	return b.String()
}

// Quoted returns Cell for the whole text on one line, in double quotes. Double quotes in the text
// become single quotes.
func Quoted(s string, n int) string {
	return `"` + strings.ReplaceAll(Cell(Join(s), n), `"`, "'") + `"`
}

// Path is Cell for a path. It cuts the beginning of a long path, because the end is more useful.
func Path(s string, n int) string {
	s = Cell(s, 4096)
	over := utf8.RuneCountInString(s) - n
	if over <= 0 {
		return s
	}
	tail := s[len(Cut(s, over+1)):]
	if i := strings.IndexByte(tail, '/'); i >= 0 && i < len(tail)-1 {
		tail = tail[i:]
	}
	return "…" + tail
}

// shorten replaces the last character of a cut text with "…".
func shorten(s string) string {
	runes := []rune(s)
	return strings.TrimRight(string(runes[:len(runes)-1]), " ") + "…"
}

// Tokens estimates how many tokens a text has: a quarter of its bytes, rounded up.
func Tokens(s string) int { return (len(s) + 3) / 4 }

// Ago returns the age of a time in minutes, hours or days. After a week it returns the date.
func Ago(now, at int64) string {
	switch age := max(now-at, 0); {
	case age < 60*60:
		return fmt.Sprintf("%dm ago", age/60)
	case age < 24*60*60:
		return fmt.Sprintf("%dh ago", age/(60*60))
	case age <= 7*24*60*60:
		return fmt.Sprintf("%dd ago", age/(24*60*60))
	default:
		return time.Unix(at, 0).UTC().Format("Jan 02")
	}
}

// Excerpt returns the first n characters of a text on one line. "…" replaces the rest. A text
// within the limit is returned unchanged.
func Excerpt(s string, n int) string {
	if Cut(s, n) == s {
		return s
	}
	return strings.TrimSpace(Cut(Join(s), n-1)) + "…"
}
