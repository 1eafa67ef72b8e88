package assist

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/likely"
	"cairn/internal/observation/observationtest"
	"cairn/internal/observation/sessionstart"
)

func likelyFiles(b observationtest.Bench, branch, prompt string, n int) (paths []string) {
	b.T.Helper()
	files, err := likely.Files(b.T.Context(), b.Service, likely.Args{Project: b.Project("shop"), Branch: branch, Prompt: prompt, Limit: n})
	if err != nil {
		b.T.Fatal(err)
	}
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return paths
}

func wantLikely(b observationtest.Bench, what string, got []string, want ...string) {
	b.T.Helper()
	if !slices.Equal(got, want) {
		b.T.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestFilesOfTheBranchAreLikelierThanNewerOnes(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Worked("s1", "ada/refunds", "make refunds exact", []string{"pay/round.go"}, []string{"pay/money.go"})
	b.Now.Add(20 * 24 * 60 * 60)
	b.Worked("s2", "main", "tidy the shop window", []string{"window.go"}, []string{"door.go"})

	wantLikely(b, "on the branch", likelyFiles(b, "ada/refunds", "", 3), "pay/round.go", "pay/money.go", "window.go")
	wantLikely(b, "on a main branch", likelyFiles(b, "main", "", 2), "window.go", "pay/round.go")
	wantLikely(b, "on a new branch whose name says it", likelyFiles(b, "ada/round-prices", "", 1), "pay/round.go")
	wantLikely(b, "one at most", likelyFiles(b, "", "", 1), "window.go")
	wantLikely(b, "none", likelyFiles(b, "", "", 0))
}

func TestFilesOfOneScoreAreOrderedByTheirLastTouchAndHaveItsRow(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	edit := func(file string, failed bool) int64 {
		b.Now.Add(60)
		return b.Record(observation.Event{Kind: observation.Tool, Session: "s1", Calls: []observation.Call{{
			Tool: "Edit", Action: observation.Edit, Path: filepath.Join(b.Repo, file), Failed: failed, Error: "not unique",
		}}}).IDs[0]
	}
	edit("a.go", false)
	b2 := edit("b.go", false)
	c := edit("c.go", false)
	a := edit("a.go", false)
	edit("b.go", true)
	files, err := likely.Files(t.Context(), b.Service, likely.Args{Project: b.Project("shop"), Limit: 3})
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for i, want := range []likely.File{{Path: "a.go", Observation: a}, {Path: "c.go", Observation: c}, {Path: "b.go", Observation: b2}} {
		if files[i].Path != want.Path || files[i].Observation != want.Observation {
			t.Errorf("%d: %+v, want %+v", i, files[i], want)
		}
	}
}

func TestFilesThatThePromptNamesOrFindsAreLikeliest(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Worked("s1", "", "the zeppelin loses height", []string{"hull/valve_test.go"}, []string{"hull/gas.go"})
	b.Worked("s2", "", "say more", []string{"cmd/explain/text.go"}, nil)
	b.Now.Add(20 * 24 * 60 * 60)
	for i := range 2 {
		b.Worked(fmt.Sprint("t", i), "", "daily tidying", []string{"hub.go"}, nil)
	}
	b.Now.Add(10 * 24 * 60 * 60)

	wantLikely(b, "nothing asked", likelyFiles(b, "", "", 1), "hub.go")
	wantLikely(b, "a name", likelyFiles(b, "", "look at valve_test.go:12 again", 1), "hull/valve_test.go")
	wantLikely(b, "words of a name", likelyFiles(b, "", "do the valves leak?", 1), "hull/valve_test.go")
	wantLikely(b, "words of a folder", likelyFiles(b, "", "why does `shop explain` crash", 1), "cmd/explain/text.go")
	if got := likelyFiles(b, "", "the zeppelin again", 2); !slices.Contains(got, "hull/gas.go") && !slices.Contains(got, "hull/valve_test.go") {
		t.Errorf("what an earlier turn with the same rare word touched: %v", got)
	}
}

func TestFilesThatFailedOrLieOutsideOrAreTheSessionsOwnAreNotLikely(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Worked("s1", "", "work", []string{"in.go"}, nil)
	b.Call(observation.Call{Tool: "Edit", Action: observation.Edit, Path: "/etc/hosts"}, "")
	b.Call(observation.Call{Tool: "Edit", Action: observation.Edit, Path: filepath.Join(b.Repo, "broken.go"), Failed: true, Error: "no match"}, "")
	b.Worked("s2", "", "other work", []string{"own.go"}, nil)

	files, err := likely.Files(t.Context(), b.Service, likely.Args{Project: b.Project("shop"), Session: "s2", Limit: 9})
	if err != nil || len(files) != 1 || files[0].Path != "in.go" || files[0].Asked {
		t.Errorf("%+v, %v", files, err)
	}
	if files, err := likely.Files(t.Context(), observation.New(nil, b.Config), likely.Args{Prompt: "x", Limit: 9}); err != nil || len(files) > 0 {
		t.Errorf("without a store: %v, %v", files, err)
	}
}

func TestTheContextListsLikelyFilesThatItsTablesDoNotShow(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	var old []string
	for i := range 3 {
		old = append(old, fmt.Sprintf("pay/old%d.go", i))
	}
	b.Worked("s1", "ada/refunds", "make refunds exact", append(old, "README.md"), nil)
	b.Now.Add(20 * 24 * 60 * 60)
	var files []string
	for i := range 20 {
		files = append(files, fmt.Sprintf("new%02d.go", i))
	}
	b.Worked("s2", "main", "many files", files, nil)

	told, err := sessionstart.BuildForProject(t.Context(), b.Service, b.Project("shop"), "startup", "ada/refunds")
	if err != nil {
		t.Fatal(err)
	}
	want := "\n## Likely Files\n- README.md\n- pay/: old2.go, old1.go, old0.go\n"
	if !strings.Contains(told.Text, want) {
		t.Errorf("want %s in\n%s", want, told.Text)
	}
	listed := 0
	for _, i := range told.Items {
		if i.Section == ledger.SectionLikely {
			listed++
		}
	}
	if listed != 4 || told.Rows() != 20 {
		t.Errorf("%d files listed beside %d rows", listed, told.Rows())
	}
}

func TestAFirstPromptIsToldOfLikelyFilesOnce(t *testing.T) {
	t.Parallel()
	b := observationtest.Helped(t)
	b.Worked("s1", "", "set the sails", []string{"mast/sail.go"}, nil)
	b.Worked("s1", "", "scrape our keel", []string{"keel.go"}, nil)
	b.Record(observation.Event{Kind: observation.SessionStart, Session: "s2", Text: "startup", Source: "SessionStart"})
	told := asks(b, "s2", "the sail is torn again")
	if !strings.Contains(told.Text, "- mast/: sail.go\n") || strings.Contains(told.Text, "keel.go") {
		t.Errorf("told:\n%s", told.Text)
	}
	if later := asks(b, "s2", "and what of the keel?").Text; strings.Contains(later, ".go") || !strings.Contains(later, "scrape our keel") {
		t.Errorf("a later prompt was told:\n%s", later)
	}
}

func TestNamesOfLikelyFilesCannotForgeStructure(t *testing.T) {
	t.Parallel()
	lines := likely.FileLines([]likely.File{
		{Path: "a|b/#`x`\n## Pinned.go", Observation: 1},
		{Path: "a|b/two.go", Observation: 2},
		{Path: "three.go", Observation: 3},
	}, "")
	want := []ledger.Line{
		{ID: 1, Text: "- a¦b/: ♯'x', two.go", Also: []int64{2}},
		{ID: 3, Text: "- three.go"},
	}
	if !slices.EqualFunc(lines, want, func(a, b ledger.Line) bool {
		return a.ID == b.ID && a.Text == b.Text && slices.Equal(a.Also, b.Also)
	}) {
		t.Errorf("%+v", lines)
	}
}

func BenchmarkLikely(b *testing.B) {
	bench := observationtest.New(b)
	for s := range 150 {
		var edited, read []string
		for f := range 10 {
			edited, read = append(edited, fmt.Sprintf("pkg%d/file%d.go", s%20, f)), append(read, fmt.Sprintf("pkg%d/other%d.go", s%30, f))
		}
		bench.Worked(fmt.Sprint("s", s), fmt.Sprint("branch", s%15), "change the file of the package", edited, read)
	}
	args := likely.Args{Project: bench.Project("shop"), Branch: "branch3", Prompt: "explain file3 of package 7", Limit: likely.MaxLikely}
	for b.Loop() {
		if _, err := likely.Files(b.Context(), bench.Service, args); err != nil {
			b.Fatal(err)
		}
	}
}
