package pathpattern

import "testing"

func TestPatternsCoverPathsAsInTheContract(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		covers  []string
		leaves  []string
	}{
		{"src", []string{"src", "src/a.go", "src/a/b/c"}, []string{"srcs", "a/src", "Src"}},
		{"src/a.go", []string{"src/a.go", "src/a.go/x"}, []string{"src", "src/a.gone", "a.go"}},
		{"*.go", []string{"a.go", ".go", ".a.go"}, []string{"src/a.go", "a.go/x", "a.goo"}},
		{"src/*", []string{"src/a", "src/.hidden"}, []string{"src", "src/a/b"}},
		{"src/?", []string{"src/a", "src/é", "src/日"}, []string{"src/ab", "src/a/b"}},
		{"src/**", []string{"src", "src/a", "src/a/b/c"}, []string{"srcs/a"}},
		{"**/*.go", []string{"a.go", "src/a.go", "src/x/a.go"}, []string{"a.go/x", "a.c"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b", "a/b/c"}, []string{"a", "b", "a/xb"}},
		{"a/**/**/b", []string{"a/b", "a/x/b"}, []string{"a"}},
		{"**/test/**", []string{"test", "a/test", "test/x", "a/test/b/c"}, []string{"a/tests/b"}},
		{"a**b", []string{"ab", "axxb"}, []string{"a/b", "ab/c"}},
		{"**b", []string{"b", "xb"}, []string{"x/b"}},
		{"***", []string{"a"}, []string{"a/b"}},
		{".", []string{"a", "a/b"}, nil},
		{"**", []string{"a", "a/b"}, nil},
		{"*", []string{"a"}, []string{"a/b"}},
		{"[a-c]x", []string{"ax", "cx", "[a-c]x", "[a-c]x/below"}, []string{"dx", "bx/y", "Ax"}},
		{"[!a-c]x", []string{"dx", "éx", "[!a-c]x"}, []string{"ax", "x"}},
		{"[^a]x", []string{"bx", "^x"}, []string{"ax"}},
		{"[]a]x", []string{"]x", "ax"}, []string{"bx"}},
		{"[a-]x", []string{"-x", "ax"}, []string{"bx"}},
		{"[-a]x", []string{"-x", "ax"}, []string{"bx"}},
		{"[z-a]x", []string{"[z-a]x"}, []string{"zx", "ax", "mx"}},
		{"[à-ü]", []string{"é"}, []string{"e", "éa"}},
		{"a[bc", []string{"a[bc", "a[bc/d"}, []string{"ab"}},
		{"[]", []string{"[]"}, []string{"a"}},
		{"[!]", []string{"[!]"}, []string{"a"}},
		{"a[x/y]", []string{"a[x/y]", "a[x/y]/z"}, []string{"ax", "ay"}},
		{"{a,b}", []string{"{a,b}", "{a,b}/c"}, []string{"a", "b"}},
		{"[.]", []string{"[.]"}, []string{"a"}},
		{"[*]x*", []string{"*x", "*xy"}, []string{"ax"}},
		{"app/[id]/page.tsx", []string{"app/[id]/page.tsx", "app/i/page.tsx"}, []string{"app/id/page.tsx"}},
		{"app/[id]/*.tsx", []string{"app/[id]/page.tsx", "app/d/page.tsx"}, []string{"app/id/page.tsx"}},
		{"app/[...slug]", []string{"app/[...slug]/page.tsx"}, []string{"app/s/page.tsx"}},
		{"caf\u00e9", []string{"cafe\u0301", "caf\u00e9/x"}, []string{"cafe"}},
		{"\uFFFD", []string{"\xff"}, []string{"a"}},
		{"tool://a", nil, []string{"tool:/a", "a", "tool:"}},
		{"a*b*c", []string{"abc", "abbc", "axbxc", "abcbc"}, []string{"acb", "ab", "ac"}},
		{"*ab*ab", []string{"abab", "xabyab"}, []string{"ab", "aab", "aba"}},
	} {
		p := mustParse(t, c.pattern, false)
		for _, path := range c.covers {
			if !p.Matches(mustPath(t, path)) {
				t.Errorf("%q does not cover %q", c.pattern, path)
			}
		}
		for _, path := range c.leaves {
			if p.Matches(mustPath(t, path)) {
				t.Errorf("%q covers %q", c.pattern, path)
			}
		}
	}
	if mustParse(t, "**", false).Matches(Path{}) {
		t.Error("the zero path is covered")
	}
	if (Pattern{}).Matches(mustPath(t, "a")) {
		t.Error("the zero pattern covers a path")
	}
}

func TestCaseIsFoldedInTextsAndClasses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		folded, plain bool
	}{
		{"README.md", "readme.MD", true, false},
		{"SRC/*.GO", "src/a.go", true, false},
		{"ÄRGER", "ärger/x", true, false},
		{"[a-z]1", "Q1", true, false},
		{"[A-Z]1", "q1", true, false},
		{"[!a]1", "A1", false, true},
		{"[!A]1", "a1", false, true},
		{"[Ä-Ü]", "ö", true, false},
		{"σ", "ς", true, false},
		{"k", "\u212a", true, true}, // NFC makes a K of the Kelvin sign
		{"I", "ı", false, false},
		{"straße", "STRASSE", false, false},
	} {
		path := mustPath(t, c.path)
		if got := mustParse(t, c.pattern, true).Matches(path); got != c.folded {
			t.Errorf("%q covers %q without case: %v", c.pattern, c.path, got)
		}
		if c.pattern == "k" {
			continue
		}
		if got := mustParse(t, c.pattern, false).Matches(path); got != c.plain {
			t.Errorf("%q covers %q with case: %v", c.pattern, c.path, got)
		}
	}
}

func TestOverlapMeansACommonPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a/**", "a/b.go", true},
		{"a/**", "a", true},
		{"a", "a/b/c.go", true},
		{"a/b", "a/c", false},
		{"ab", "a", false},
		{"src/*.go", "src/a*", true},
		{"src/*.go", "src/*.c", false},
		{"src/*.go", "src/x/*.go", false},
		{"src/*.go", "**/x.go", true},
		{"src/*.go", "src", true},
		{"*/x", "y/*", true},
		{"**/a/**", "**/b/**", true},
		{"**/a", "b/**", true},
		{"**/*.go", "a/*.c", false},
		{"a/**/b", "a/c/*", true},
		{"a/**/b/*", "a/c", true}, // c covers c/b/x
		{"a/**/b/*.x", "a/*.y", false},
		{"a*b", "*ab", true},
		{"a*b", "b*a", false},
		{"*a*b*", "*b*a*", true},
		{"???", "a*bc", true},
		{"??", "a*bc", false},
		{"[ab]", "[bc]", true},
		{"[ab]", "[cd]", false},
		{"[!a]", "a", false},
		{"[!a]", "[!b]", true},
		{"[!a-z]", "[a-z]", false},
		{"?", ".*", false},     // . is no segment
		{"??", ".*.", false},   // nor is ..
		{"???", ".*.", true},   // but ... is
		{"[.]?", "?.", false},  //
		{"[.a]?", "?.", true},  // a.
		{"*", ".*", true},      // .x
		{"[.]*", "*[.]", true}, // ...
		{"[Z-^]", "[[]", true},
		{"[!\x01-.0-\U0010FFFF]x", "?x", false}, // no segment holds a slash
		{"[!\x01-\U0010FFFF]x", "?x", false},    // or a NUL
		{"[+-9]x", "/repo/[/]x", false},
		{"tool://a", "tool://a", true},
		{"tool://a", "tool://A", false},
		{"tool://a", "tool://a/b", false},
		{"tool://a", "tool://*", false},
		{"tool://a", "**", false},
		{"tool://a", "resource://a", false},
		{"app/[id]/page.tsx", "app/*/page.tsx", true},
		{"app/[id]", "app/[id]/x", true},
		{"app/[id]", "app/[xy]", false},
	} {
		a, b := mustParse(t, c.a, false), mustParse(t, c.b, false)
		if Overlap(a, b) != c.want || Overlap(b, a) != c.want {
			t.Errorf("Overlap(%q, %q) is %v and %v, want %v", c.a, c.b, Overlap(a, b), Overlap(b, a), c.want)
		}
	}
	if Overlap(mustParse(t, "[!\u0101-\U0010FFFF]a", true), mustParse(t, "[!\u0001-\u0100]A", true)) {
		t.Error("what two classes leave out together is covered by both")
	}
	if !Overlap(mustParse(t, "[a-c]x", true), mustParse(t, "[C-E]X", true)) {
		t.Error("two classes share a letter of different case, yet do not overlap")
	}
}
