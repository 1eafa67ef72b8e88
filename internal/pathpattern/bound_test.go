package pathpattern

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// hard returns patterns at the limits of the contract (mail §14), made to be slow.
func hard() []string {
	repeat := strings.Repeat
	cut := func(s string) string { return strings.TrimSuffix(s[:MaxBytes], "/") }
	return []string{
		repeat("*a", 300) + "b",
		repeat("a*", 300) + "b",
		repeat("*", 300),
		cut(repeat("*a", 600)),
		repeat("a", MaxBytes),
		repeat("?", MaxBytes),
		"*" + repeat("a", 511) + "b*",
		"*" + repeat("?", 511) + "b*",
		repeat("a", 511) + "*" + repeat("b", 511),
		repeat("**/a/", 31) + "b",
		repeat("**/*a*/", 31) + "b",
		repeat("a/", 63) + "?",
		repeat("*a*b*c*d*e*f*g/", 63) + "x*",
		repeat("aaaaaaaaaaaaaa?/", 63) + "aaaaaaaaaaa?",
		"**/" + repeat("*aaaaaaaaaaa*b/", 31) + "**/c*",
		"**/" + repeat("aaaaaaaaaaaaaa?/", 31) + "b?/**",
		cut(repeat("[ab]", 256)),
		"*" + repeat("[ab]", 127) + "[bc]" + "*",
		"*[" + repeat("bdfh", 120) + "]" + repeat("a", 500) + "*",
		"[" + repeat("acegi", 120) + "]" + repeat("a", 400),
		"*" + repeat("a", 505) + "[bc]*",
		repeat("a", 1010) + "[ad]",
		repeat("[", 512) + repeat("]", 512),
		repeat("[a", 512),
		repeat("[!\u0100-\uffff]", 113),
	}
}

func TestWorkIsBoundedByTheProductOfLengths(t *testing.T) {
	t.Parallel()
	patterns := hard()
	most := 0.0
	for _, foldCase := range []bool{false, true} {
		for i, textA := range patterns {
			for _, textB := range patterns[:i+1] {
				a, b := mustParse(t, textA, foldCase), mustParse(t, textB, foldCase)
				steps := stepsOf(a, b)
				if bound := 4 * len(textA) * len(textB); steps > bound {
					t.Errorf("%.20s… against %.20s…: %d steps, at most %d expected", textA, textB, steps, bound)
				}
				most = max(most, float64(steps)/float64(len(textA)*len(textB)))
			}
		}
	}
	t.Logf("at most %.2f steps for each pair of bytes", most)
}

// stepsOf counts the tokens that Overlap compares.
func stepsOf(a, b Pattern) int {
	steps := 0
	overlap(a, b, func(a, b []token) bool {
		for i := range a {
			steps++
			if !eachMeets(a[i:i+1], b[i:i+1]) {
				return false
			}
		}
		return true
	})
	return steps
}

func TestFoldingClassesIsBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := 0; b.Len() < MaxBytes-20; i++ {
		fmt.Fprintf(&b, "[\u0101-%c]", 0xFF00+rune(i))
	}
	c := compiler{foldCase: true, brackets: true}
	c.reading(b.String())
	// Each class past the limit is given up at its first range of letters.
	if c.classes < 100 || c.cased > maxCased+200*c.classes {
		t.Fatalf("%d letters looked at for %d classes", c.cased, c.classes)
	}
}

func BenchmarkParse(b *testing.B) {
	for name, text := range map[string]string{"literal": "internal/store/open.go", "stars": "internal/**/*_test.go", "class": "internal/[a-m]*/x.go"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseWorst(b *testing.B) {
	text := strings.Repeat("[\u0101-\uff00]", 128)
	for b.Loop() {
		if _, err := Parse(text[:8*127], Options{FoldCase: true}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOverlapTypical(b *testing.B) {
	p, q := mustParse(b, "internal/store/**/*.go", false), mustParse(b, "internal/*/open.go", false)
	b.ReportAllocs()
	for b.Loop() {
		if !Overlap(p, q) {
			b.Fatal("no overlap")
		}
	}
}

// BenchmarkOverlapWorst is the slowest pair of the hard patterns, and one of 64
// segments against 64.
func BenchmarkOverlapWorst(b *testing.B) {
	for i, textA := range hard() {
		for j, textB := range hard()[:i+1] {
			p, q := mustParse(b, textA, true), mustParse(b, textB, true)
			steps := stepsOf(p, q)
			if steps < 20_000 {
				continue
			}
			b.Run(fmt.Sprintf("%d-%d", i, j), func(b *testing.B) {
				for b.Loop() {
					Overlap(p, q)
				}
				b.ReportMetric(float64(steps), "steps")
			})
		}
	}
}

func BenchmarkMatchOnePathAgainst10000Patterns(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	patterns := make([]Pattern, 10_000)
	for i := range patterns {
		kinds := [...]string{"internal/room%d/file.go", "internal/room%d/**", "**/file%d*.go", "internal/*/file%d.go", "cmd/*%d*/x[ab].go"}
		patterns[i] = mustParse(b, fmt.Sprintf(kinds[random.IntN(len(kinds))], i), false)
	}
	b.ReportAllocs()
	for b.Loop() {
		path, err := ParsePath("internal/room77/file77.go")
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for i := range patterns {
			if patterns[i].Matches(path) {
				n++
			}
		}
		if n > 10 {
			b.Fatal(n)
		}
	}
}
