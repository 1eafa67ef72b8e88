package citation

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestCitationsAreFoundInProse(t *testing.T) {
	t.Parallel()
	cite := func(args ...any) []Citation {
		var out []Citation
		for i := 0; i < len(args); i += 3 {
			out = append(out, Citation{args[i].(string), args[i+1].(int), args[i+2].(int)})
		}
		return out
	}
	for name, c := range map[string]struct {
		text string
		want []Citation
	}{
		"a line":                      {"see cart.go#L12.", cite("cart.go", 12, 12)},
		"lines":                       {"internal/cart/cart.go#L12-L20 rounds", cite("internal/cart/cart.go", 12, 20)},
		"lines without the second L":  {"a.go#L1-2", cite("a.go", 1, 2)},
		"a dash that is prose":        {"a.go#L1-based", cite("a.go", 1, 1)},
		"brackets around":             {"(a.go#L1), [b.go#L2] {c.go#L3}", cite("a.go", 1, 1, "b.go", 2, 2, "c.go", 3, 3)},
		"brackets inside":             {"app/[id]/(group)/page.tsx#L3 (group)/x.ts#L4 [id].ts#L5", cite("app/[id]/(group)/page.tsx", 3, 3, "(group)/x.ts", 4, 4, "[id].ts", 5, 5)},
		"Markdown link":               {"[the total](cart.go#L7)", cite("cart.go", 7, 7)},
		"code":                        {"`cart.go#L7-L8`", cite("cart.go", 7, 8)},
		"spaces in code":              {"in `my shop/the cart.go#L7` it", cite("my shop/the cart.go", 7, 7)},
		"spaces in angle brackets":    {"<my cart.go#L7>", cite("my cart.go", 7, 7)},
		"bold":                        {"**cart.go#L7**", cite("cart.go", 7, 7)},
		"one after the other":         {"a.go#L1,b.go#L2;c.go#L3", cite("a.go", 1, 1, "b.go", 2, 2, "c.go", 3, 3)},
		"unicode":                     {"—ñandú/日本.go#L2", cite("ñandú/日本.go", 2, 2)},
		"a leading dash":              {"-x.go#L2", cite("-x.go", 2, 2)},
		"a hidden file":               {".github/ci.yml#L2", cite(".github/ci.yml", 2, 2)},
		"a clean path":                {"./a//b/./c.go#L2", cite("a/b/c.go", 2, 2)},
		"Windows separators":          {`a\b.go#L2`, cite("a/b.go", 2, 2)},
		"once each":                   {"a.go#L1 a.go#L1 a.go#L1-L1 a.go#L2", cite("a.go", 1, 1, "a.go", 2, 2)},
		"a hash in the name":          {"a#b.go#L2", cite("a#b.go", 2, 2)},
		"no path":                     {"#L12 and (#L13)", nil},
		"line 0":                      {"a.go#L0 a.go#L0-L3", nil},
		"backwards":                   {"a.go#L9-L3", nil},
		"a word":                      {"a.go#L12abc a.go#L1_2 a.go#Lx", nil},
		"too many digits":             {"a.go#L99999999999999999999", nil},
		"a URL":                       {"https://example.org/blob/main/a.go#L12", nil},
		"absolute":                    {"/etc/passwd#L1 ~/x#L1 C:/x#L1 C:\\x#L1", nil},
		"outside":                     {"../a.go#L1 a/../../b.go#L1 a\\..\\..\\b#L1 a/../b.go#L2", nil},
		"the folder itself":           {".#L1 ./#L2", nil},
		"a path does not cross lines": {"`a\nb.go#L2`", cite("b.go", 2, 2)},
		"control characters":          {"a\x00b.go#L2", nil},
		"not UTF-8":                   {"a\xff.go#L2", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Parse(c.text); !slices.Equal(got, c.want) {
				t.Errorf("Parse(%q) = %v, want %v", c.text, got, c.want)
			}
		})
	}
}

func TestTheHundredAndFirstCitationIsProse(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range Max + 5 {
		text.WriteString("a.go#L" + strconv.Itoa(i+1) + " ")
	}
	got := Parse(text.String())
	if len(got) != Max || got[Max-1] != (Citation{"a.go", Max, Max}) {
		t.Errorf("%d citations, the last %v", len(got), got[len(got)-1])
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"a.go#L1", "`a b.go#L1-L2`", "<x y#L3>", "[t](p/q.go#L4-5)", "../x#L1", "https://h/x#L1", "(g)/[id].ts#L7", "a#L1#L2", "\xff#L1", "#L", "a.go#L1-", "，a#L1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := Parse(text)
		if len(found) > Max {
			t.Fatalf("%d citations", len(found))
		}
		for i, c := range found {
			if slices.Contains(found[:i], c) {
				t.Fatalf("%v twice", c)
			}
			if c.First < 1 || c.Last < c.First || c.Path != path.Clean(c.Path) || path.IsAbs(c.Path) ||
				c.Path == "." || c.Path == ".." || strings.HasPrefix(c.Path, "../") || strings.ContainsAny(c.Path, "\\\x00\n") {
				t.Fatalf("%q gives %+v", text, c)
			}
			// Each citation is found again when written in its plainest form.
			again := Parse("<" + c.Path + "#L" + strconv.Itoa(c.First) + "-L" + strconv.Itoa(c.Last) + ">")
			if !strings.ContainsAny(c.Path, "<#") && !slices.Equal(again, []Citation{c}) {
				t.Fatalf("%+v is found again as %+v", c, again)
			}
		}
	})
}
