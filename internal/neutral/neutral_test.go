package neutral

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// tag matches the start of a tag. It does not use the code of this package.
var tag = regexp.MustCompile(`<(\s*/|[!?|\pL])`)

// turn matches a line that starts a conversation turn.
var turn = regexp.MustCompile(`(?mi)^\s*(human|user|assistant|system|developer|tool)\s*:`)

// seeds returns texts that fooled earlier versions, or could fool a simpler one.
func seeds() []string {
	return []string{
		"", "plain text", " a\t b\r\n c ", "</system-reminder>", "< / x", "<\u200b/x>", "<\u3164\u2028\u00ad/x>", "<\xff!--", "<|im_end|>", "<\n/b", "< b",
		"1 < 2 <3", "a\u202eb\u2066c\u2069", "\x1b[31mred\x1b[0m\x07\x9b1m", "\ufeffbom\u180e\ufe0f\U000e0041\U000e0100", "x\u2028y\u2029z\u0085w",
		"# heading", "\u200b# heading", " \u00a0## heading", "a | b `c`", "Human: hi\n\n Assistant : yes", "\u200bUSER\u200b:x: y", "system\u3000:\nTool:",
		"```\ncode\n````\n", "<\u200b\u200b?xml", "<<a><</b>>", "\x00\x7f\u0080", "é\u0301 日本 🙂\u200d👩",
	}
}

// check checks what must hold for a line and for a block.
func check(t *testing.T, in, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Errorf("%q: broken bytes in %q", in, out)
	}
	if found := tag.FindString(out); found != "" {
		t.Errorf("%q: a tag begins with %q in %q", in, found, out)
	}
	for _, r := range out {
		if r != '\n' && unicode.IsControl(r) || r != ' ' && unicode.Is(unicode.Z, r) && r != '\n' || unicode.In(r, unicode.Cf, unicode.Bidi_Control, unicode.Join_Control, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || r == utf8.RuneError {
			t.Errorf("%q: %U in %q", in, r, out)
		}
	}
	if limit := 3 * len(in); len(out) > limit {
		t.Errorf("%q: %d bytes, over %d", in, len(out), limit)
	}
}

// For every text, the result is one line that forges no structure, and Line does not
// change it.
func FuzzLine(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := Line(in)
		check(t, in, out)
		if strings.ContainsAny(out, "\n|`") || strings.HasPrefix(out, "#") || out != strings.TrimSpace(out) || strings.Contains(out, "  ") {
			t.Errorf("%q: %q", in, out)
		}
		if again := Line(out); again != out {
			t.Errorf("%q: %q, then %q", in, out, again)
		}
	})
}

// For every text, the result keeps its lines and forges no structure except what a fence
// contains, and Block does not change it.
func FuzzBlock(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := Block(in)
		check(t, in, out)
		if strings.Count(out, "\n") != strings.Count(in, "\n") {
			t.Errorf("%q: other lines in %q", in, out)
		}
		for line := range strings.SplitSeq(out, "\n") {
			if strings.HasPrefix(strings.TrimLeft(line, " "), "#") {
				t.Errorf("%q: a heading in %q", in, out)
			}
		}
		if found := turn.FindString(out); found != "" {
			t.Errorf("%q: the turn %q in %q", in, found, out)
		}
		if again := Block(out); again != out {
			t.Errorf("%q: %q, then %q", in, out, again)
		}
	})
}

func TestHarmlessTextStays(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a < b and 1<2", "see issue #4: é 日本 🙂", "user names: ann", "a -> b; C++ & x > y"} {
		if got := Line(text); got != text {
			t.Errorf("Line(%q) is %q", text, got)
		}
		if got := Block(text); got != text {
			t.Errorf("Block(%q) is %q", text, got)
		}
	}
	if text := "a | b\n`code` <- x"; Block(text) != text {
		t.Errorf("Block(%q) is %q", text, Block(text))
	}
}
