package pathpattern

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/fault"
)

// below makes a path relative to the root of a worktree, as project does.
func below(root string) func(string) (string, bool) {
	return func(abs string) (string, bool) {
		if abs == root {
			return ".", true
		}
		return strings.CutPrefix(abs, root+"/")
	}
}

func mustParse(t testing.TB, text string, foldCase bool) Pattern {
	t.Helper()
	p, err := Parse(text, Options{FoldCase: foldCase, Relative: below("/repo")})
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return p
}

func mustPath(t testing.TB, text string) Path {
	t.Helper()
	p, err := ParsePath(text)
	if err != nil {
		t.Fatalf("ParsePath(%q): %v", text, err)
	}
	return p
}

func TestSpellingsOfAPatternHaveOneCanonicalText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"  src/a.go\n":            "src/a.go",
		"./src/a.go":              "src/a.go",
		"././src/./a.go":          "src/a.go",
		`src\win\a.go`:            "src/win/a.go",
		"src/":                    "src",
		"src///":                  "src",
		"src//a.go":               "src/a.go",
		".":                       ".",
		"./":                      ".",
		"./ src":                  "src",
		"src /":                   "src",
		"/repo/src/*.go":          "src/*.go",
		"/repo":                   ".",
		"/repo/":                  ".",
		`\repo\src`:               "src",
		"cafe\u0301/*":            "caf\u00e9/*",
		"A/B":                     "A/B",
		"a..b/...":                "a..b/...",
		"tool://build /x/../y":    "tool://build /x/../y",
		" resource://db ":         "resource://db",
		"service://a\\b":          "service://a\\b",
		"**/**":                   "**/**",
		strings.Repeat("x", 1024): strings.Repeat("x", 1024),
		strings.Repeat("a/", 64):  strings.Repeat("a/", 63) + "a",
	} {
		for _, foldCase := range []bool{false, true} {
			if got := mustParse(t, text, foldCase).String(); got != want {
				t.Errorf("Parse(%q) is %q, want %q", text, got, want)
			}
		}
	}
}

func TestInvalidPatternsAreRefusedAndTheMessageSaysWhy(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"":                                    "empty",
		" \t\n":                               "empty",
		"tool://":                             "empty after tool://",
		"a\x00b":                              "NUL",
		"tool://\x00":                         "NUL",
		"a/\xff":                              "UTF-8",
		"..":                                  "..",
		"a/../b":                              "..",
		`a\..\b`:                              "..",
		"../repo/a":                           "..",
		"/repo/../etc":                        "..",
		"/repo/a/..":                          "..",
		"/etc/passwd":                         "outside the project",
		"/repository":                         "outside the project",
		"/":                                   "outside the project",
		`C:\Users\x`:                          "outside the project",
		"./C:/x":                              "outside the project",
		"./ c:/x":                             "outside the project",
		strings.Repeat("x", 1025):             "1024 bytes",
		strings.Repeat("é", 513):              "1024 bytes",
		"tool://" + strings.Repeat("x", 1024): "1024 bytes",
		strings.Repeat("a/", 65):              "65 segments; 64 are allowed",
	} {
		p, err := Parse(text, Options{Relative: below("/repo")})
		if err == nil {
			t.Errorf("Parse(%q) is %q, want an error", text, p)
			continue
		}
		f := fault.As(err)
		if f.Kind != fault.Invalid || f.Code != "INVALID_PATH" || !strings.Contains(f.Message, why) {
			t.Errorf("Parse(%q): %v %s %q, want one that says %q", text, f.Kind, f.Code, f.Message, why)
		}
	}
	if _, err := Parse("./"+strings.Repeat(" /", 1<<20)+"x", Options{}); !fault.HasCode(err, CodeInvalidPath) {
		t.Errorf("a million blank segments: %v", err)
	}
	if _, err := Parse("/repo/a", Options{}); !fault.HasCode(err, CodeInvalidPath) {
		t.Errorf("an absolute pattern without a worktree: %v", err)
	}
}

func TestPatternsOfEverythingAndAbsoluteOnesWarn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"*":           "* covers everything at the top",
		"***":         "*** covers everything at the top",
		"**":          "** covers every file",
		"**/*":        "**/* covers every file",
		"*/**":        "*/** covers every file",
		"**/**":       "**/** covers every file",
		"**/**/**":    "**/**/** covers every file",
		".":           ". covers every file",
		"./":          ". covers every file",
		"/repo":       "taken as . of this project; . covers every file",
		"/repo/src/a": "an absolute path, taken as src/a of this project",
		"src":         "",
		"*/*":         "",
		"**/*/*":      "",
		"**/*.go":     "",
		"src/**":      "",
		"?":           "",
		"[a]":         "",
		"tool://*":    "",
	} {
		got := mustParse(t, text, false).Warning()
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("Parse(%q) warns %q, want %q", text, got, want)
		}
	}
}

func TestPatternsInTheSyntaxOfOtherProgramsWarn(t *testing.T) {
	t.Parallel()
	const braces, stars = "are plain characters; give each alternative", "only as a whole segment"
	for text, want := range map[string][]string{
		"src/{a,b}.go":      {"the braces in src/{a,b}.go " + braces},
		"src/{a,b/c}.go":    {braces},
		"v{1..3}/x":         {braces},
		"app/{id}/page.tsx": nil, // the name of a folder in some frameworks
		"src/{a,b":          nil,
		"}a,b{":             nil,
		"src/**.go":         {"the stars in **.go stay within one folder; ** matches any number of folders " + stars},
		"a**b":              {stars},
		"***":               {"*** covers everything at the top of the project; narrower patterns leave room for others; ", stars},
		"src/**/{a,b}**":    {braces, stars},
		"/repo/src/{a,b}":   {"an absolute path, taken as src/{a,b} of this project; ", braces},
		"src/**/*.go":       nil,
		"tool://{a,b}/**x":  nil,
	} {
		got := mustParse(t, text, false).Warning()
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("Parse(%q) warns %q, want %q", text, got, part)
			}
		}
		if want == nil && got != "" {
			t.Errorf("Parse(%q) warns %q", text, got)
		}
	}
	got := mustParse(t, `src\a.go`, false)
	if warns := strings.Contains(got.Warning(), `\ was taken as /`); got.String() != "src/a.go" || warns != (filepath.Separator == '/') {
		t.Errorf("%q warns %q", got, got.Warning())
	}
}

func TestLiteralPrefixIsTheLeadingPartWithoutWildcardsFolded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Src/A.go":             "src/a.go",
		"src/*.go":             "src",
		"src/**":               "src",
		"src/**/x":             "src",
		"src/[ab]/x":           "src",
		"src/a[/x":             "src/a[/x",
		"src/{a,b}":            "src/{a,b}",
		"src/a?/x":             "src",
		"*.go":                 "",
		".":                    "",
		"**":                   "",
		"ÄRGER/x*":             fold("Ärger"),
		"tool://Build/x":       "tool://Build/x",
		"app/[id]/page.tsx":    "app",
		"/repo/cmd/cairn/*.go": "cmd/cairn",
	} {
		for _, foldCase := range []bool{false, true} {
			if got := mustParse(t, text, foldCase).LiteralPrefix(); got != want {
				t.Errorf("LiteralPrefix of %q is %q, want %q", text, got, want)
			}
		}
	}
}

func TestPrefixesAreTheAncestorsFromTheTopDown(t *testing.T) {
	t.Parallel()
	if got, want := mustPath(t, "./Src/a/B.go").Prefixes(), []string{"", "src", "src/a", "src/a/b.go"}; !slices.Equal(got, want) {
		t.Errorf("prefixes %q, want %q", got, want)
	}
	if got, want := mustParse(t, "Src/a/*", false).Prefixes(), []string{"", "src", "src/a"}; !slices.Equal(got, want) {
		t.Errorf("prefixes %q, want %q", got, want)
	}
	if got, want := mustParse(t, "*", false).Prefixes(), []string{""}; !slices.Equal(got, want) {
		t.Errorf("prefixes %q, want %q", got, want)
	}
	if p := mustParse(t, "tool://a/b", false); !slices.Contains(p.Prefixes(), p.LiteralPrefix()) {
		t.Errorf("%q is not among its prefixes %q", p.LiteralPrefix(), p.Prefixes())
	}
}

func TestInvalidPathsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", ".", "./", "/", "/a", `\a`, "C:/a", "..", "a/../b", "a\x00", "tool://a"} {
		if p, err := ParsePath(text); !fault.HasCode(err, CodeInvalidPath) || fault.KindOf(err) != fault.Invalid {
			t.Errorf("ParsePath(%q) is %q, %v", text, p, err)
		}
	}
	for text, want := range map[string]string{
		"a": "a", "./a//b/": "a/b", `a\b`: "a/b", " a ": " a ", "e\u0301": "\u00e9", "a\xff/b": "a\uFFFD/b",
		strings.Repeat("a/", 200) + "a": strings.Repeat("a/", 200) + "a",
	} {
		if p := mustPath(t, text); p.String() != want {
			t.Errorf("ParsePath(%q) is %q, want %q", text, p, want)
		}
	}
}

func TestFoldingIsIdempotentAndOneForEachSetOfLettersThatDifferByCase(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= 0x10FFFF; r++ {
		f := foldRune(r)
		if foldRune(f) != f {
			t.Fatalf("fold of %U is %U, whose fold is %U", r, f, foldRune(f))
		}
		if r < 0xD800 && !strings.EqualFold(string(r), string(f)) {
			t.Fatalf("fold of %U is %U", r, f)
		}
	}
}

// A class that does not know of a letter's other cases would let a file slip by.
func TestEveryLetterIsInTheFoldedClassOfItsOtherCases(t *testing.T) {
	t.Parallel()
	for r := rune(0x80); r <= 0x1FFFF; r++ {
		f := foldRune(r)
		if f == r {
			continue
		}
		for _, pair := range [][2]rune{{r, f}, {f, r}} {
			c := compiler{foldCase: true, brackets: true}
			if class := c.class(charClass{spans: []span{{pair[0], pair[0]}}}); !contains(class.set, pair[1]) {
				t.Errorf("[%c] does not hold %c (%U)", pair[0], pair[1], pair[1])
			}
		}
	}
}
