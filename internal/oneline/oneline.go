package oneline

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cairn/internal/neutral"
)

// Cut is the first n characters of s.
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

// Join puts a text on one line.
func Join(s string) string { return strings.Join(strings.Fields(Cut(s, 4000)), " ") }

// Cell makes stored text safe to stand in a line of the context: its first line,
// at most n characters, without control and formatting characters, and without
// what could be taken for the structure around it.
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

// Quoted is cell for a whole text between double quotes.
func Quoted(s string, n int) string {
	return `"` + strings.ReplaceAll(Cell(Join(s), n), `"`, "'") + `"`
}

// Path is cell for a path: what is too long loses its beginning, since the end
// tells more.
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

// shorten ends a text that was cut with a sign of it.
func shorten(s string) string {
	runes := []rune(s)
	return strings.TrimRight(string(runes[:len(runes)-1]), " ") + "…"
}

// Tokens estimates what a text costs a model: a quarter of its bytes.
func Tokens(s string) int { return (len(s) + 3) / 4 }

// Ago says how long before now something was: minutes, hours or days, and after
// a week the day.
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

// Excerpt returns the first n characters of a text on one line, with "…" in the
// place of what is cut. A text that is short enough stays as it is.
func Excerpt(s string, n int) string {
	if Cut(s, n) == s {
		return s
	}
	return strings.TrimSpace(Cut(Join(s), n-1)) + "…"
}
