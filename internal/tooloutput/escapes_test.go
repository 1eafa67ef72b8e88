package tooloutput

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestStripEscapes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                              "",
		"plain\ttext\n":                 "plain\ttext\n",
		"\x1b[31mred\x1b[0m":            "red",
		"\x1b[1;38;5;196mbold\x1b[m":    "bold",
		"\x1b[38:2::1:2:3mcolons\x1b[K": "colons",
		"\x1b[?25lhidden\x1b[?25h":      "hidden",
		"\x1b[2 qcursor":                "cursor",
		"\u009b31mred\u009b0m":          "red",
		"\x1b]0;title\atext":            "text",
		"\x1b]0;title\x1b\\text":        "text",
		"\x1b]8;;https://a.b\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b]0;no end\nnext line":                    "\nnext line",
		"\x1b]0;no end":                               "",
		"\x1b]0;cut\x1b[1mbold":                       "bold",
		"\x1bPq#0;2\x1b\\sixel":                       "sixel",
		"\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\x":  "x",
		"\x1b(Bascii\x1b)0":                           "ascii",
		"\x1b7saved\x1b8\x1bM\x1b=":                   "saved",
		"\x1b[31":                                     "",
		"\x1b[31\nnext":                               "\nnext",
		"\x1b":                                        "",
		"a\x1b\x1b[1mb":                               "ab",
		"a\x1bäb":                                     "aäb",
	} {
		if got := StripEscapes(in); got != want {
			t.Errorf("stripEscapes(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestStripEscapesLeavesTextAndNoEscape(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		codes := []string{"\x1b[1m", "\x1b]8;;x\x1b\\", "\x1b]0;x\a", "\x1b(B", "\x1bM", "\u009b2K"}
		var dressed, bare strings.Builder
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			text := rapid.StringMatching(`[ -~äß\n]{0,6}`).Draw(t, "text")
			bare.WriteString(text)
			dressed.WriteString(rapid.SampledFrom(codes).Draw(t, "code") + text)
		}
		if got := StripEscapes(dressed.String()); got != bare.String() {
			t.Fatalf("%q became %q, want %q", dressed.String(), got, bare.String())
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		got := StripEscapes(rapid.StringOf(rapid.SampledFrom([]rune("\x1b[]P0;1m\a\\\nä\u009b ("))).Draw(t, "soup"))
		if strings.ContainsAny(got, "\x1b\u009b") {
			t.Fatalf("an escape is left in %q", got)
		}
	})
}
