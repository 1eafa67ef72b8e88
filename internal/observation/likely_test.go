package observation

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func (b bench) likely(branch, prompt string, n int) (paths []string) {
	b.t.Helper()
	files, err := b.Likely(b.t.Context(), LikelyArgs{Project: b.project("shop"), Branch: branch, Prompt: prompt, Limit: n})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return paths
}

func (b bench) wantLikely(what string, got []string, want ...string) {
	b.t.Helper()
	if !slices.Equal(got, want) {
		b.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestFilesOfTheBranchAreLikelierThanNewerOnes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.worked("s1", "ada/refunds", "make refunds exact", []string{"pay/round.go"}, []string{"pay/money.go"})
	b.now.Add(20 * 24 * 60 * 60)
	b.worked("s2", "main", "tidy the shop window", []string{"window.go"}, []string{"door.go"})

	b.wantLikely("on the branch", b.likely("ada/refunds", "", 3), "pay/round.go", "pay/money.go", "window.go")
	b.wantLikely("on a main branch", b.likely("main", "", 2), "window.go", "pay/round.go")
	b.wantLikely("on a new branch whose name says it", b.likely("ada/round-prices", "", 1), "pay/round.go")
	b.wantLikely("one at most", b.likely("", "", 1), "window.go")
	b.wantLikely("none", b.likely("", "", 0))
}

func TestFilesOfOneScoreAreOrderedByTheirLastTouchAndHaveItsRow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	edit := func(file string, failed bool) int64 {
		b.now.Add(60)
		return b.record(Event{Kind: Tool, Session: "s1", Calls: []Call{{
			Tool: "Edit", Action: Edit, Path: filepath.Join(b.repo, file), Failed: failed, Error: "not unique",
		}}}).IDs[0]
	}
	edit("a.go", false)
	b2 := edit("b.go", false)
	c := edit("c.go", false)
	a := edit("a.go", false)
	edit("b.go", true)
	files, err := b.Likely(t.Context(), LikelyArgs{Project: b.project("shop"), Limit: 3})
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for i, want := range []LikelyFile{{Path: "a.go", Observation: a}, {Path: "c.go", Observation: c}, {Path: "b.go", Observation: b2}} {
		if files[i].Path != want.Path || files[i].Observation != want.Observation {
			t.Errorf("%d: %+v, want %+v", i, files[i], want)
		}
	}
}

func TestFilesThatThePromptNamesOrFindsAreLikeliest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.worked("s1", "", "the zeppelin loses height", []string{"hull/valve_test.go"}, []string{"hull/gas.go"})
	b.worked("s2", "", "say more", []string{"cmd/explain/text.go"}, nil)
	b.now.Add(20 * 24 * 60 * 60)
	for i := range 2 {
		b.worked(fmt.Sprint("t", i), "", "daily tidying", []string{"hub.go"}, nil)
	}
	b.now.Add(10 * 24 * 60 * 60)

	b.wantLikely("nothing asked", b.likely("", "", 1), "hub.go")
	b.wantLikely("a name", b.likely("", "look at valve_test.go:12 again", 1), "hull/valve_test.go")
	b.wantLikely("words of a name", b.likely("", "do the valves leak?", 1), "hull/valve_test.go")
	b.wantLikely("words of a folder", b.likely("", "why does `shop explain` crash", 1), "cmd/explain/text.go")
	if got := b.likely("", "the zeppelin again", 2); !slices.Contains(got, "hull/gas.go") && !slices.Contains(got, "hull/valve_test.go") {
		t.Errorf("what an earlier turn with the same rare word touched: %v", got)
	}
}

func TestFilesThatFailedOrLieOutsideOrAreTheSessionsOwnAreNotLikely(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.worked("s1", "", "work", []string{"in.go"}, nil)
	b.call(Call{Tool: "Edit", Action: Edit, Path: "/etc/hosts"}, "")
	b.call(Call{Tool: "Edit", Action: Edit, Path: filepath.Join(b.repo, "broken.go"), Failed: true, Error: "no match"}, "")
	b.worked("s2", "", "other work", []string{"own.go"}, nil)

	files, err := b.Likely(t.Context(), LikelyArgs{Project: b.project("shop"), Session: "s2", Limit: 9})
	if err != nil || len(files) != 1 || files[0].Path != "in.go" || files[0].Asked {
		t.Errorf("%+v, %v", files, err)
	}
	if files, err := New(nil, b.config).Likely(t.Context(), LikelyArgs{Prompt: "x", Limit: 9}); err != nil || len(files) > 0 {
		t.Errorf("without a store: %v, %v", files, err)
	}
}

func TestTheContextListsLikelyFilesThatItsTablesDoNotShow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var old []string
	for i := range 3 {
		old = append(old, fmt.Sprintf("pay/old%d.go", i))
	}
	b.worked("s1", "ada/refunds", "make refunds exact", append(old, "README.md"), nil)
	b.now.Add(20 * 24 * 60 * 60)
	var files []string
	for i := range 20 {
		files = append(files, fmt.Sprintf("new%02d.go", i))
	}
	b.worked("s2", "main", "many files", files, nil)

	told, err := b.Context(t.Context(), b.project("shop"), "startup", "ada/refunds")
	if err != nil {
		t.Fatal(err)
	}
	want := "\n## Likely Files\n- README.md\n- pay/: old2.go, old1.go, old0.go\n"
	if !strings.Contains(told.Text, want) {
		t.Errorf("want %s in\n%s", want, told.Text)
	}
	listed := 0
	for _, i := range told.Items {
		if i.Section == sectionLikely {
			listed++
		}
	}
	if listed != 4 || told.Rows() != 20 {
		t.Errorf("%d files listed beside %d rows", listed, told.Rows())
	}
}

func TestAFirstPromptIsToldOfLikelyFilesOnce(t *testing.T) {
	t.Parallel()
	b := helped(t)
	b.worked("s1", "", "set the sails", []string{"mast/sail.go"}, nil)
	b.worked("s1", "", "scrape our keel", []string{"keel.go"}, nil)
	b.record(Event{Kind: SessionStart, Session: "s2", Text: "startup", Source: "SessionStart"})
	told := b.asks("s2", "the sail is torn again")
	if !strings.Contains(told.Text, "- mast/: sail.go\n") || strings.Contains(told.Text, "keel.go") {
		t.Errorf("told:\n%s", told.Text)
	}
	if later := b.asks("s2", "and what of the keel?").Text; strings.Contains(later, ".go") || !strings.Contains(later, "scrape our keel") {
		t.Errorf("a later prompt was told:\n%s", later)
	}
}

func TestNamesOfLikelyFilesCannotForgeStructure(t *testing.T) {
	t.Parallel()
	lines := fileLines([]LikelyFile{
		{Path: "a|b/#`x`\n## Pinned.go", Observation: 1},
		{Path: "a|b/two.go", Observation: 2},
		{Path: "three.go", Observation: 3},
	}, "")
	want := []contextRow{
		{id: 1, line: "- a¦b/: ♯'x', two.go", also: []int64{2}},
		{id: 3, line: "- three.go"},
	}
	if !slices.EqualFunc(lines, want, func(a, b contextRow) bool {
		return a.id == b.id && a.line == b.line && slices.Equal(a.also, b.also)
	}) {
		t.Errorf("%+v", lines)
	}
}

func BenchmarkLikely(b *testing.B) {
	bench := newBench(b)
	for s := range 150 {
		var edited, read []string
		for f := range 10 {
			edited, read = append(edited, fmt.Sprintf("pkg%d/file%d.go", s%20, f)), append(read, fmt.Sprintf("pkg%d/other%d.go", s%30, f))
		}
		bench.worked(fmt.Sprint("s", s), fmt.Sprint("branch", s%15), "change the file of the package", edited, read)
	}
	args := LikelyArgs{Project: bench.project("shop"), Branch: "branch3", Prompt: "explain file3 of package 7", Limit: maxLikely}
	for b.Loop() {
		if _, err := bench.Likely(b.Context(), args); err != nil {
			b.Fatal(err)
		}
	}
}
