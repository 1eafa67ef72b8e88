package observation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"cairn/internal/redact"
	"cairn/internal/tooloutput"
)

func TestADigestKeepsTheEndsAndWhatTells(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 400 {
		switch i {
		case 120:
			text.WriteString("src/glaze.go:41: undefined: Cone\n")
		case 150:
			text.WriteString("warning: the door is not latched\n")
		case 200:
			text.WriteString("progress 10%\rprogress 90%\rfired \x1b[31m17\x1b[0m bowls in total\n")
		default:
			fmt.Fprintf(&text, "%s goes on shelf %c\n", strings.Repeat(string(rune('a'+i%26)), 3+i%20), 'a'+i%7)
		}
	}
	text.WriteString(strings.Repeat("waiting for the kiln to cool, 5 degrees left\n", 50))
	text.WriteString("the end of it\n")
	got := NewOutput(text.String(), testFilter(t)).digest
	if len(got) > tooloutput.MaxDigest {
		t.Errorf("%d bytes", len(got))
	}
	for _, want := range []string{
		"aaa goes on shelf a\n", "src/glaze.go:41: undefined: Cone\n", "warning: the door is not latched\n",
		"\nfired 17 bowls in total\n", "waiting for the kiln to cool, 5 degrees left\n… 49 more like this\nthe end of it", "\n…\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "progress") || strings.Contains(got, "\x1b") {
		t.Errorf("what was overwritten is in it:\n%s", got)
	}
}

func TestHostileOutputsAreBoundedAndReadable(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"one line":    strings.Repeat("x", 1<<20),
		"bytes":       strings.Repeat("\x00\xff\x80\x01", 1<<16),
		"escapes":     strings.Repeat("\x1b[2J\x1b]0;title\a\x1b[1;1H", 1<<15),
		"returns":     strings.Repeat("a\r", 1<<18),
		"no end":      "\x1b]" + strings.Repeat("y", 1<<18),
		"lines":       strings.Repeat("\n", 1<<20),
		"many errors": strings.Repeat("error: no clay\nfatal: no kiln\n", 1<<15),
		"surrogates":  strings.Repeat("\xed\xa0\x80 half of a character\n", 1<<12),
		"wide":        strings.Repeat("漢字の行がここにあります\n", 1<<14),
		"directions":  strings.Repeat("\u202eright to left\u202c and back again\n", 1<<10),
	} {
		o := NewOutput(text, testFilter(t))
		if o == nil {
			continue
		}
		if len(o.digest) > tooloutput.MaxDigest || len(o.lines) > 2*2*maxOutputEnd/12+2 {
			t.Errorf("%s: a digest of %d bytes, %d hashes", name, len(o.digest), len(o.lines))
		}
		if !utf8.ValidString(o.digest) || strings.ContainsAny(o.digest, "\x00\x1b\r\x07") {
			t.Errorf("%s: %.80q", name, o.digest)
		}
		if got, err := tooloutput.Unpack(tooloutput.Pack(o.digest)); err != nil || got != o.digest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if o := NewOutput(strings.Repeat("\x00\xff\x80\x01", 1<<16), testFilter(t)); o != nil {
		t.Errorf("bytes leave %.80q", o.digest)
	}
}

// FuzzDigest creates an output of any text. The digest must be bounded, valid and safe to print.
// Every line that the digest contains in full must be found by its hash.
func FuzzDigest(f *testing.F) {
	for _, s := range []string{
		"", "ok\n", "one\r\ntwo\n", "a\rb", "\x1b[31mred\x1b[0m\n", "FAIL a/b.go:12: want 3\n", strings.Repeat("row 1 of a table\n", 90),
		"x\xffy\x00z", "1.2.3.4:80 0xdeadbeef 550e8400-e29b-41d4-a716-446655440000",
	} {
		f.Add(s)
	}
	filter := testFilter(f)
	f.Fuzz(func(t *testing.T, text string) {
		o := NewOutput(text, filter)
		if o == nil {
			return
		}
		if len(o.digest) == 0 || len(o.digest) > tooloutput.MaxDigest || !utf8.ValidString(o.digest) {
			t.Fatalf("%d bytes: %q", len(o.digest), o.digest)
		}
		if i := strings.IndexFunc(o.digest, func(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' && r != utf8.RuneError }); i >= 0 {
			t.Fatalf("%q at %d of %q", o.digest[i], i, o.digest)
		}
		if got, err := tooloutput.Unpack(tooloutput.Pack(o.digest)); err != nil || got != o.digest {
			t.Fatalf("packed and unpacked: %q %v", got, err)
		}
		for _, l := range tooloutput.DigestedLines(o.digest) {
			if strings.HasSuffix(l.Text, tooloutput.Gap) || l.Plain == 0 {
				continue
			}
			if _, found := slices.BinarySearch(o.lines, l.Plain); !found {
				t.Fatalf("%q is in the digest and has no hash", l.Text)
			}
		}
	})
}

func testFilter(tb testing.TB) *redact.Filter {
	tb.Helper()
	f, err := redact.New(redact.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return f
}
