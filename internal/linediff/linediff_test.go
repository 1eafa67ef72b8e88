package linediff_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/linediff"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, base, a, b, want string
		ok                     bool
	}{
		{"one side", "1\n2\n3\n", "1\nX\n3\n", "1\n2\n3\n", "1\nX\n3\n", true},
		{"far apart", "1\n2\n3\n4\n5\n", "X\n2\n3\n4\n5\n", "1\n2\n3\n4\nY\n", "X\n2\n3\n4\nY\n", true},
		{"one unchanged line between", "1\n2\n3\n", "X\n2\n3\n", "1\n2\nY\n", "X\n2\nY\n", true},
		{"the same line", "1\n2\n3\n", "1\nX\n3\n", "1\nY\n3\n", "", false},
		{"neighbouring lines", "1\n2\n3\n", "X\n2\n3\n", "1\nY\n3\n", "", false},
		{"equal changes", "1\n2\n3\n", "1\nX\n3\n", "1\nX\n3\n", "1\nX\n3\n", true},
		{"two insertions at one place", "1\n2\n", "1\na\n2\n", "1\nb\n2\n", "", false},
		{"deleted and changed", "1\n2\n3\n", "1\n3\n", "1\nX\n3\n", "", false},
		{"appended without a last line break", "1\n2\n3", "1\n2\n3\n4", "0\n2\n3", "0\n2\n3\n4", true},
		{"from nothing", "", "a\n", "", "a\n", true},
		{"both from nothing", "", "a\n", "b\n", "", false},
	} {
		got, ok := linediff.Merge(c.base, c.a, c.b)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: %q, %v, want %q, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestMergeKeepsBothSidesInEitherOrder(t *testing.T) {
	t.Parallel()
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "d\n", "e"}), 0, 12).Draw(t, "lines"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		base, a, b := text.Draw(t, "base"), text.Draw(t, "a"), text.Draw(t, "b")
		x, ok := linediff.Merge(base, a, b)
		y, okAgain := linediff.Merge(base, b, a)
		if x != y || ok != okAgain {
			t.Fatalf("%q, %v one way and %q, %v the other", x, ok, y, okAgain)
		}
		if got, ok := linediff.Merge(base, a, base); !ok || got != a {
			t.Fatalf("one side alone: %q, %v, want %q", got, ok, a)
		}
		if got, ok := linediff.Merge(base, a, a); !ok || got != a {
			t.Fatalf("equal sides: %q, %v, want %q", got, ok, a)
		}
	})
}

func TestUnifiedIsEmptyForEqualTexts(t *testing.T) {
	t.Parallel()
	if got := linediff.Unified("a", "b", "x\n", "x\n"); got != "" {
		t.Errorf("%q", got)
	}
	if got, want := linediff.Unified("a", "b", "x\ny\n", "x\nz\n"), "--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
