package command

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrintableTakesEscapeSequencesOutWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                   "",
		"plain é 漢":                          "plain é 漢",
		"\x1b[31mred\x1b[0m":                 "red",
		"\x1b[38;5;1;2Kx":                    "x",
		"a\x1b]0;title\x07b\x1b]8;;u\x1b\\c": "abc",
		"a\u009b31mb\u009d0;t\x07c":          "abc",
		"open \x1b]0;for ever":               "open ]0;for ever",
		"cut \x1b[31":                        "cut [31",
		"end\x1b":                            "end",
		"tab\tbell\x07null\x00":              "tabbellnull",
		"\u202eevil\u2066x":                  "evilx",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"\x1b[31mred", "\x1b]0;t\x07", "\u009b1m", "\x1b", "\x1bP\x1b\\", "é\x1b[é", "\x1b\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Printable(s)
		if strings.ContainsFunc(got, isControl) || len(got) > len(s) {
			t.Errorf("%q: %q", s, got)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("%q became invalid: %q", s, got)
		}
		if again := Printable(got); again != got {
			t.Errorf("%q: %q, then %q", s, got, again)
		}
	})
}
