package observation

import (
	"path/filepath"
	"slices"
	"testing"
)

func (b bench) showcase() *SampleQuestion {
	b.t.Helper()
	s, err := b.Showcase(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b bench) shell(id, command, failure string) {
	b.t.Helper()
	b.call(Call{ID: id, Tool: "Bash", Action: Shell, Command: command, Failed: failure != "", Error: failure}, "")
}

func (b bench) edit(id, path string) {
	b.t.Helper()
	b.call(Call{ID: id, Tool: "Edit", Action: Edit, Path: filepath.Join(b.repo, path)}, "")
}

// finds reports whether the query of a showcase finds its row.
func (b bench) finds(s *SampleQuestion) {
	b.t.Helper()
	rows, err := b.Search(b.t.Context(), SearchArgs{Query: s.Query, ObsType: s.Type, Limit: 20})
	if err != nil || !slices.ContainsFunc(rows, func(h Hit) bool { return h.ID == s.ID }) {
		b.t.Errorf("%q of type %s finds %v, %v, not row %d", s.Query, s.Type, rows, err, s.ID)
	}
}

func TestShowcaseTellsWhatMadeTheLastFailingCommandPass(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt("make the refund test pass", "")
	b.shell("1", "make lint", "Exit code 2\nlint: cart.go:3")
	b.shell("2", "make lint", "") // by itself: nothing was changed in between
	b.shell("3", "cd app && FLAG=1 go test ./refund", "Exit code 1\n--- FAIL: TestRoundHalfUp")
	b.edit("4", "a.go")
	b.edit("5", "b.go")
	b.call(Call{ID: "6", Tool: "Edit", Action: Edit, Path: "c.go", Failed: true, Error: "no match"}, "")
	b.now.Add(300)
	b.shell("7", "go test  ./refund", "")
	b.shell("8", "ls nothing", "No such file")
	b.now.Add(2 * 24 * 60 * 60)
	s := b.showcase()
	want := SampleQuestion{
		Question: "What made “go test ./refund” pass again in shop?",
		Answer:   "It failed 2d ago with “--- FAIL: TestRoundHalfUp”; after changes to b.go and 1 other file it passed, 5 minutes later.",
		ID:       4, Query: "go test refund", Type: "command_error", Project: "shop",
	}
	if s == nil || *s != want {
		t.Fatalf("got  %+v\nwant %+v", s, want)
	}
	b.finds(s)
}

func TestShowcasePrefersAFixWithAChangeToANewerOneWithout(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.shell("1", "make", "cannot find -lz")
	b.shell("2", "make", "")
	s := b.showcase()
	if s == nil || s.Answer != "It failed 0m ago with “cannot find -lz”; it passed again." {
		t.Errorf("without a change: %+v", s)
	}
	b.finds(s)
	b.record(Event{Kind: Tool, Session: "s0", Calls: []Call{{ID: "3", Tool: "Bash", Action: Shell, Command: "npm run build", Failed: true, Error: "boom"}}})
	b.record(Event{Kind: Tool, Session: "s0", Calls: []Call{{ID: "4", Tool: "Edit", Action: Edit, Path: filepath.Join(b.repo, "x.ts")}}})
	b.record(Event{Kind: Tool, Session: "s0", Calls: []Call{{ID: "5", Tool: "Bash", Action: Shell, Command: "npm run build"}}})
	b.shell("6", "make", "cannot find -lz")
	b.shell("7", "make", "")
	if s := b.showcase(); s == nil || s.Query != "npm run build" {
		t.Errorf("with a change: %+v", s)
	}
}

func TestShowcaseFallsBackToTheBusiestFileAndThenToNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if s := b.showcase(); s != nil {
		t.Errorf("of nothing: %+v", s)
	}
	b.shell("0", "make", "never passes")
	b.prompt("round the cart total half up", "")
	b.edit("1", "src/cart.go")
	b.edit("2", "src/cart.go")
	b.edit("3", "src/other.go")
	want := SampleQuestion{
		Question: "Which file changes most in shop, and what for?",
		Answer:   "src/cart.go: 2 edits in 1 conversation, the last for “round the cart total half up”.",
		ID:       4, Query: "cart go", Type: "file_edit", Project: "shop",
	}
	s := b.showcase()
	if s == nil || *s != want {
		t.Fatalf("got  %+v\nwant %+v", s, want)
	}
	b.finds(s)
	if s, err := New(nil, Config{}).Showcase(t.Context()); s != nil || err != nil {
		t.Errorf("without a store: %+v, %v", s, err)
	}
}

func TestSearchableWordsAreNoOperatorsAndNeedNoQuotes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`grep -n "a AND b" $HOME/x.go`: "grep n a and b HOME",
		"NEAR OR NOT":                  "near or not",
		"größe 測試":                     "größe 測試",
		"&& || ;":                      "",
	} {
		if got := searchable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestHaulCountsWhatCameAfterARow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.edit("1", "a.go")
	b.record(Event{Kind: Tool, Session: "s2", Calls: []Call{{ID: "2", Tool: "Read", Action: Read, Path: "b.go"}}})
	for after, want := range map[int64]Totals{
		0: {Conversations: 2, Observations: 2, Projects: 1, Oldest: testStart + 1},
		1: {Conversations: 1, Observations: 1, Projects: 1, Oldest: testStart + 2},
		9: {},
	} {
		if got, err := b.Haul(t.Context(), after); err != nil || got != want {
			t.Errorf("after %d: %+v, %v, want %+v", after, got, err, want)
		}
	}
}
