package lazyjson

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/harness/harnesstest"
)

func TestTextKeepsTheEndsOfLongTexts(t *testing.T) {
	t.Parallel()
	fill := func(part string, size int) string {
		if harnesstest.Raced {
			size = min(size, 12<<20)
		}
		return strings.Repeat(part, size/len(part)+1)
	}
	for name, c := range map[string]struct {
		inside     string // the content of a JSON string
		head, tail string // the beginning and end of the text
		cut        bool
	}{
		"just short enough":         {"ab" + strings.Repeat("x", MaxText-4) + "yz", "abx", "xyz", false},
		"one byte too long":         {"ab" + strings.Repeat("x", MaxText-3) + "yz", "abx", "xyz", true},
		"long":                      {"ab" + fill("x", 3<<20) + "yz", "abx", "xyz", true},
		"very long":                 {"ab" + fill("x", 9<<20) + "yz", "abx", "xyz", true},
		"very long, all escapes":    {`\u0061` + fill(`\n`, 30<<20) + `\u007a`, "a\n\n", "\n\nz", true},
		"long escapes, short text":  {`\u0061` + fill(`\u0062`, 6<<20) + `\u007a`, "abb", "bbz", false},
		"characters of four bytes":  {"a" + fill("😀", 9<<20) + "z", "a😀", "😀z", true},
		"pairs of surrogates":       {"a" + fill(`\ud83d\ude00`, 40<<20) + "z", "a😀", "😀z", true},
		"broken bytes":              {"a" + fill("\xff", 1<<20) + "z", "a\uFFFD", "\uFFFDz", true},
		"very many broken bytes":    {"a" + fill("\xff", 9<<20) + "z", "a\uFFFD", "\uFFFDz", true},
		"very many backslashes":     {"a" + fill(`\\`, 9<<20) + "z", `a\\`, `\\z`, true},
		"an escape in a long plain": {`\t` + fill("x", 3<<20) + `\t`, "\tx", "x\t", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Value(`"` + c.inside + `"`).Text()
			if !strings.HasPrefix(got, c.head) || !strings.HasSuffix(got, c.tail) {
				t.Errorf("begins %.12q, ends %q", got, got[max(0, len(got)-12):])
			}
			if !utf8.ValidString(got) {
				t.Error("not UTF-8")
			}
			if len(got) > MaxText || c.cut && len(got) < MaxText-2*utf8.UTFMax {
				t.Errorf("%d bytes", len(got))
			}
			if whole, _ := decode([]byte(c.inside), 3*len(c.inside)); !c.cut && got != string(whole) {
				t.Error("not the whole text")
			}
		})
	}
}

func TestPlainReadsEveryShapeOfAText(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`"a"`: "a", `null`: "", `7`: "", `true`: "", `{}`: "", `[]`: "", ``: "",
		`["a","b"]`: "a\nb",
		`[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]`: "a\nb",
		`{"text":"a"}`: "a", `{"content":"a"}`: "a", `{"content":[{"text":"a"}]}`: "a", `{"message":"a"}`: "a",
		`{"text":" ","message":"a"}`: "a",
		`[[["a"]]]`:                  "",
	} {
		if got := Value(value).Plain(); got != want {
			t.Errorf("%s: got %q", value, got)
		}
	}
	long := `["` + strings.Repeat("x", MaxText) + `","` + strings.Repeat("y", MaxText) + `","z"]`
	if got := Value(long).Plain(); len(got) > MaxText || got[0] != 'x' || got[len(got)-3:] != "y\nz" {
		t.Errorf("%d bytes", len(got))
	}
}

func TestCompactDropsWhiteSpaceBetweenTokensOnly(t *testing.T) {
	t.Parallel()
	in := []byte(" { \"a b\" : [ 1 ,\n\"c\\\" d\" ] }\t")
	if got := string(compact(nil, in, 100)); got != `{"a b":[1,"c\" d"]}` {
		t.Errorf("got %s", got)
	}
	for limit := range len(in) {
		if got := compact([]byte("x"), in, limit); len(got) > 1+limit || !bytes.HasPrefix([]byte(`x{"a b":[1,"c\" d"]}`), got) {
			t.Errorf("limit %d: %s", limit, got)
		}
	}
}
