package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"
)

// columns is the width to which text is wrapped.
const columns = 100

// screen writes human-readable text. It stores its first error for flush and discards later
// output.
type screen struct {
	w       *bufio.Writer
	color   bool
	chapter int
}

func newScreen(w io.Writer, getenv func(string) string) *screen {
	s := &screen{w: bufio.NewWriter(w)}
	if f, ok := w.(*os.File); ok && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" {
		info, err := f.Stat()
		s.color = err == nil && info.Mode()&os.ModeCharDevice != 0
		if runtime.GOOS == "windows" && getenv("WT_SESSION") == "" {
			s.color = false // older consoles print the escape codes
		}
	}
	return s
}

func (s *screen) flush() error { return s.w.Flush() }

func (s *screen) styled(code, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *screen) bold(text string) string { return s.styled("1", text) }
func (s *screen) dim(text string) string  { return s.styled("2", text) }
func (s *screen) red(text string) string  { return s.styled("31", text) }

// line writes one line unchanged.
func (s *screen) line(format string, args ...any) { fmt.Fprintf(s.w, format+"\n", args...) }

func (s *screen) blank() { s.line("") }

// heading begins the next numbered chapter.
func (s *screen) heading(title string) {
	s.chapter++
	s.line("\n%s\n", s.bold(fmt.Sprintf("== %d. %s", s.chapter, title)))
}

// say writes a wrapped paragraph.
func (s *screen) say(format string, args ...any) { s.block("", fmt.Sprintf(format, args...), 0) }

// block writes text wrapped after an indent, at most rows lines (0 means all). It preserves
// line breaks in the text.
func (s *screen) block(indent, text string, rows int) {
	lines := wrap(text, columns-utf8.RuneCountInString(indent))
	if rows > 0 && len(lines) > rows {
		lines = append(lines[:rows], "…")
	}
	for _, l := range lines {
		s.line("%s%s", indent, l)
	}
}

// verbatim writes a text between two rules, without any change.
func (s *screen) verbatim(text string) {
	rule := s.dim(strings.Repeat("─", columns))
	s.line("%s\n%s\n%s\n", rule, strings.TrimSuffix(text, "\n"), rule)
}

// wrap breaks a text into lines of at most width characters, between words if possible. It
// preserves existing line breaks and indents.
func wrap(text string, width int) []string {
	var out []string
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		l = printable(l)
		line := []rune(l[:min(len(l)-len(strings.TrimLeft(l, " ")), width/2)])
		started := false
		for _, word := range strings.Fields(l) {
			w := []rune(word)
			if started && len(line)+1+len(w) > width {
				out, line, started = append(out, string(line)), line[:0], false
			}
			if started {
				line = append(line, ' ')
			}
			line, started = append(line, w...), true
			for len(line) > width {
				out, line = append(out, string(line[:width])), line[width:]
			}
		}
		out = append(out, string(line))
	}
	return out
}

// oneLine returns the text on one line, cut to n characters.
func oneLine(text string, n int) string {
	r := []rune(strings.Join(strings.Fields(printable(text)), " "))
	if len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return string(r)
}

// cutLeft returns the end of the text, at most n characters. For paths the end is the
// distinctive part.
func cutLeft(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return "…" + string(r[len(r)-n+1:])
	}
	return text
}

func quote(text string, n int) string { return "“" + oneLine(text, n-2) + "”" }

// printable removes characters that could control a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
}
