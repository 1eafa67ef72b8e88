package citation

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree creates a folder of files.
func tree(t *testing.T, files map[string]string) (string, Tree) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		put(t, dir, name, text)
	}
	tr, ok := Open(dir)
	if !ok {
		t.Fatal("no tree")
	}
	return dir, tr
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, tr Tree, c ...Citation) []Cited {
	t.Helper()
	cited, err := tr.HashLines(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return cited
}

func checkDrift(t *testing.T, tr Tree, c []Cited) []DriftResult {
	t.Helper()
	v, err := tr.CheckDrift(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDrift(t *testing.T) {
	t.Parallel()
	const before = "one\ntwo\nthree\nfour\nfive\n"
	still := DriftResult{Checked: true}
	gone := DriftResult{Checked: true, Drifted: true}
	at := func(first, last int) DriftResult { return DriftResult{Checked: true, First: first, Last: last} }
	for name, c := range map[string]struct {
		first, last int
		after       string
		want        DriftResult
	}{
		"unchanged":                     {2, 3, before, still},
		"other lines changed":           {2, 3, "ONE\ntwo\nthree\nFOUR\nfive\n", still},
		"moved down":                    {2, 3, "zero\nzero\n" + before, at(4, 5)},
		"moved up":                      {2, 3, "two\nthree\n", at(1, 2)},
		"moved to the end, no newline":  {2, 3, "one\nfour\nfive\ntwo\nthree", at(4, 5)},
		"the nearest of several":        {3, 3, "three\nx\nx\nthree\nx\nthree\n", at(4, 4)},
		"changed":                       {2, 3, "one\ntwo\nTHREE\nfour\nfive\n", gone},
		"divided":                       {2, 3, "one\ntwo\nmore\nthree\nfour\nfive\n", gone},
		"indented":                      {2, 2, "one\n\ttwo\nthree\n", gone},
		"deleted":                       {2, 3, "one\nfour\nfive\n", gone},
		"emptied":                       {1, 1, "", gone},
		"shorter than what was cited":   {1, 5, "one\n", gone},
		"line ends of another system":   {2, 3, "one\r\ntwo\r\nthree\r\nfour\r\n", still},
		"the whole file":                {1, 5, before, still},
		"the last line, newline gone":   {5, 5, strings.TrimSuffix(before, "\n"), still},
		"now binary":                    {2, 3, "\x00" + before, gone},
		"now more than a file may have": {2, 3, strings.Repeat("x", MaxFile+1), DriftResult{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, tr := tree(t, map[string]string{"a b/c.go": before})
			cited := take(t, tr, Citation{"a b/c.go", c.first, c.last})
			put(t, dir, "a b/c.go", c.after)
			if got := checkDrift(t, tr, cited)[0]; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAFileThatIsGoneHasDrifted(t *testing.T) {
	t.Parallel()
	dir, tr := tree(t, map[string]string{"a.go": "one\n"})
	cited := take(t, tr, Citation{"a.go", 1, 1})
	if err := os.Remove(filepath.Join(dir, "a.go")); err != nil {
		t.Fatal(err)
	}
	if got := checkDrift(t, tr, cited)[0]; !got.Checked || !got.Drifted {
		t.Errorf("deleted: %+v", got)
	}
	if err := os.Mkdir(filepath.Join(dir, "a.go"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := checkDrift(t, tr, cited)[0]; !got.Checked || !got.Drifted {
		t.Errorf("a folder now: %+v", got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, ok := Open(dir); ok {
		t.Error("a tree that is gone opens")
	}
	if got := checkDrift(t, tr, cited)[0]; got.Checked {
		t.Errorf("no working tree, and it is checked: %+v", got)
	}
}

func TestMissingLinesHaveNoHash(t *testing.T) {
	t.Parallel()
	dir, tr := tree(t, map[string]string{"a.go": "one\ntwo", "binary": "a\x00b\n", "huge": strings.Repeat("x\n", MaxFile/2+1)})
	outside := t.TempDir()
	put(t, outside, "secret", "one\n")
	put(t, dir, "sub/in.go", "one\n")
	for name, target := range map[string]string{"out": filepath.Join(outside, "secret"), "outdir": outside, "in": filepath.Join("sub", "in.go")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skip("no symbolic links here")
		}
	}
	cited := take(t, tr,
		Citation{"in", 1, 1}, Citation{"a.go", 1, 2}, // has a hash
		Citation{"a.go", 3, 3}, Citation{"a.go", 2, 10_000_000}, Citation{"none.go", 1, 1}, Citation{"binary", 1, 1},
		Citation{"huge", 1, 1}, Citation{"out", 1, 1}, Citation{"outdir/secret", 1, 1}, Citation{"sub", 1, 1}, Citation{"../x", 1, 1},
		Citation{"a.go/b", 1, 1})
	for i, c := range cited {
		if kept := c.Hash != ""; kept != (i < 2) {
			t.Errorf("%v kept: %v", c.Citation, kept)
		}
	}
	for i, v := range checkDrift(t, tr, cited) {
		if v.Checked != (i < 2) || v.Drifted {
			t.Errorf("%v: %+v", cited[i].Citation, v)
		}
	}
}

func TestALinkThatLeadsOutLaterHasDrifted(t *testing.T) {
	t.Parallel()
	dir, tr := tree(t, map[string]string{"a.go": "one\n"})
	cited := take(t, tr, Citation{"a.go", 1, 1})
	outside := filepath.Join(t.TempDir(), "a.go")
	if err := os.Rename(filepath.Join(dir, "a.go"), outside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "a.go")); err != nil {
		t.Skip("no symbolic links here")
	}
	if got := checkDrift(t, tr, cited)[0]; !got.Drifted {
		t.Errorf("a file outside counts: %+v", got)
	}
}

// A search that compares texts could not handle that many lines.
func TestManyEqualLinesAreSearchedInOnePass(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("same\n", 200_000)
	dir, tr := tree(t, map[string]string{"a": lines + "last\n"})
	cited := take(t, tr, Citation{"a", 1, 100_000}, Citation{"a", 100_001, 200_001}, Citation{"a", 150_000, 200_001})
	put(t, dir, "a", "first\n"+lines+"other\n")
	got := checkDrift(t, tr, cited)
	want := []DriftResult{{Checked: true, First: 2, Last: 100_001}, {Checked: true, Drifted: true}, {Checked: true, Drifted: true}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestACancelledContextStopsReading(t *testing.T) {
	t.Parallel()
	_, tr := tree(t, map[string]string{"a": "one\n"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tr.HashLines(ctx, []Citation{{"a", 1, 1}}); err == nil {
		t.Error("no error")
	}
}

func FuzzCheckDrift(f *testing.F) {
	f.Add("one\ntwo\nthree\n", "zero\none\ntwo\n", uint8(1), uint8(2))
	f.Add("a\r\nb", "b\na", uint8(2), uint8(0))
	f.Add("x\nx\nx\n", "x\nx\n", uint8(2), uint8(1))
	f.Fuzz(func(t *testing.T, before, after string, first, more uint8) {
		old, now := newFile([]byte(before)), newFile([]byte(after))
		c := Citation{"f", int(first) + 1, int(first) + 1 + int(more)}
		if c.Last > len(old.prints) {
			return
		}
		k, ok := parseLineHash(lineHash{old.sum(c.First, c.Last), old.print(c.First, c.Last)}.String())
		if v := old.checkDrift(c, k); !ok || v != (DriftResult{Checked: true}) {
			t.Fatalf("unchanged, and %+v", v)
		}
		v := now.checkDrift(c, k)
		n := c.Last - c.First + 1
		best := 0 // the nearest place, found by trying each
		for i := 1; i+n-1 <= len(now.prints); i++ {
			if now.sum(i, i+n-1) == k.sum && (best == 0 || distance(i, c.First) < distance(best, c.First)) {
				best = i
			}
		}
		want := DriftResult{Checked: true, Drifted: best == 0}
		if best != 0 && best != c.First {
			want.First, want.Last = best, best+n-1
		}
		if v != want {
			t.Fatalf("got %+v, want %+v", v, want)
		}
	})
}

func distance(a, b int) int { return max(a-b, b-a) }

func TestAnInvalidHashIsNotChecked(t *testing.T) {
	t.Parallel()
	_, tr := tree(t, map[string]string{"a": "one\n"})
	good := take(t, tr, Citation{"a", 1, 1})[0].Hash
	for _, hash := range []string{"", "x", "-1", good + "x", "z" + good[1:], good[:64], good[:64] + "-"} {
		if v := checkDrift(t, tr, []Cited{{Citation{"a", 1, 1}, hash}})[0]; v.Checked {
			t.Errorf("%q is checked", hash)
		}
	}
}
