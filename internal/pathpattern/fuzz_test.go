package pathpattern

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Overlap and Matches are compared with every path of up to three segments of up to three
// letters (mail §15.4).
func FuzzOverlapAgreesWithEnumeration(f *testing.F) {
	for _, s := range [][2]string{{"a*b", "*ab"}, {"a/**", "a/b"}, {"**/a", "b/**"}, {"?b/*", "a?/b"}, {"**", "a"}, {"*a*", "*b*"}, {"a/**/b", "a/*"}, {"*", "?"}} {
		f.Add(s[0], s[1])
	}
	texts := alphabetPaths("ab", 3, 3)
	paths := make([]Path, len(texts))
	for i, text := range texts {
		paths[i] = mustPath(f, text)
	}
	f.Fuzz(func(t *testing.T, textA, textB string) {
		sketchA, sketchB := sketchOf(textA, "ab*?"), sketchOf(textB, "ab*?")
		if sketchA == nil || sketchB == nil {
			t.Skip()
		}
		a, b := mustParse(t, sketchA.text(), false), mustParse(t, sketchB.text(), false)
		common, readingA := "", sketchA.readings()[0]
		for _, p := range paths {
			inA, inB := a.Matches(p), b.Matches(p)
			if want := readingA.covers(strings.Split(p.String(), "/")); inA != want {
				t.Fatalf("%q covers %q: %v, want %v", a, p, inA, want)
			}
			if inA && inB {
				common = p.String()
			}
		}
		switch got := Overlap(a, b); {
		case got != Overlap(b, a):
			t.Fatalf("Overlap of %q and %q is not symmetric", a, b)
		case common != "" && !got:
			t.Fatalf("%q and %q both cover %q, yet do not overlap", a, b, common)
		case common == "" && got && isShownWithin(sketchA, sketchB, 3, 3):
			t.Fatalf("%q and %q overlap, but no path shows it", a, b)
		}
	})
}

// Overlap and Matches are compared with a search through all pairs of states of two
// automata that read paths character by character. The patterns have any size, classes
// and full stops.
func FuzzOverlapMatchesAProductOfAutomata(f *testing.F) {
	for _, s := range [][2]string{{"a*/s**/b", "B/D*"}, {".?", "?C"}, {"A*", "*C"}, {"a/**/b/**/a", "**/?/**"}, {"CC", ".."}, {"?", ".*"}, {"EA/D", "*./a"}, {"BB", "A?"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, textA, textB string) {
		const elements = "ab.*?ABCDE"
		sketchA, sketchB := sketchOf(textA, elements), sketchOf(textB, elements)
		if sketchA == nil || sketchB == nil {
			t.Skip()
		}
		a, b := mustParse(t, sketchA.text(), false), mustParse(t, sketchB.text(), false)
		shared := false
		for _, x := range sketchA.readings() {
			for _, y := range sketchB.readings() {
				shared = shared || x.sharesPath(y)
			}
		}
		if got := Overlap(a, b); got != shared || Overlap(b, a) != shared {
			t.Fatalf("Overlap(%q, %q) is %v, the automata say %v", a, b, got, shared)
		}
		for _, p := range []Pattern{a, b} {
			if !Overlap(p, p) {
				t.Fatalf("%q does not overlap itself", p)
			}
		}
	})
}

// For every text that parses, the canonical text is stable, the prefix misses nothing,
// and a covered path, taken as a pattern, overlaps the pattern.
func FuzzPatternsOfAnyText(f *testing.F) {
	for _, s := range []string{"a/**", "./ x/", "[a-\u00e9]*", "/repo/A[b", "[!A]/é", "tool://x", "C:/x", "a\x00", "..", "K\u212a/ſ*", "[]a]", "**/*", "ẞ/[ß]", "[\u0100-\uffff]"} {
		f.Add(s, "A/b[c]/é*", true)
		f.Add("A/[!b-d]", s, false)
	}
	f.Fuzz(func(t *testing.T, textA, textB string, foldCase bool) {
		o := Options{FoldCase: foldCase, Relative: below("/repo")}
		a, errA := Parse(textA, o)
		b, errB := Parse(textB, o)
		path, errPath := ParsePath(textB)
		if errA != nil {
			t.Skip()
		}
		again, err := Parse(a.String(), o)
		if err != nil || again.String() != a.String() || again.LiteralPrefix() != a.LiteralPrefix() {
			t.Fatalf("%q parses to %q, that to %q: %v", textA, a, again, err)
		}
		if len(a.String()) > MaxBytes || strings.Count(a.String(), "/") >= MaxSegments && !a.exact || !utf8.ValidString(a.String()) {
			t.Fatalf("%q parses to %q, which is no canonical pattern", textA, a)
		}
		if !Overlap(a, a) {
			t.Fatalf("%q does not overlap itself", a)
		}
		if errB == nil {
			if Overlap(a, b) != Overlap(b, a) {
				t.Fatalf("Overlap of %q and %q is not symmetric", a, b)
			}
			if Overlap(a, b) && !slices.Contains(a.Prefixes(), b.LiteralPrefix()) && !slices.Contains(b.Prefixes(), a.LiteralPrefix()) {
				t.Fatalf("%q and %q overlap, their prefixes are %q and %q", a, b, a.LiteralPrefix(), b.LiteralPrefix())
			}
		}
		if errPath != nil {
			return
		}
		if a.Matches(path) && !slices.Contains(path.Prefixes(), a.LiteralPrefix()) {
			t.Fatalf("%q covers %q, whose prefixes lack %q", a, path, a.LiteralPrefix())
		}
		p, err := Parse(path.String(), o)
		if err != nil || p.String() != path.String() {
			return // too long for a pattern, or with blanks around it
		}
		if !p.Matches(path) {
			t.Fatalf("%q as a pattern does not cover itself", path)
		}
		if a.Matches(path) && !Overlap(a, p) {
			t.Fatalf("%q covers %q, but does not overlap it as a pattern", a, path)
		}
	})
}

// alphabetPaths returns every path of up to depth segments of up to length letters.
func alphabetPaths(letters string, length, depth int) []string {
	longer := func(all, by []string, between string) []string {
		var out []string
		for _, a := range all {
			for _, b := range by {
				out = append(out, a+between+b)
			}
		}
		return out
	}
	single := strings.Split(letters, "")
	segments := slices.Clone(single)
	for words := single; length > 1; length-- {
		words = longer(words, single, "")
		segments = append(segments, words...)
	}
	paths := slices.Clone(segments)
	for level := segments; depth > 1; depth-- {
		level = longer(level, segments, "/")
		paths = append(paths, level...)
	}
	return paths
}
