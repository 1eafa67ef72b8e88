package browse

import (
	"path/filepath"
	"slices"
	"testing"

	"cairn/internal/observation"
	"cairn/internal/observation/observationtest"
	"cairn/internal/observation/search"
)

func showcase(b observationtest.Bench) *SampleQuestion {
	b.T.Helper()
	s, err := FindSampleQuestion(b.T.Context(), b.Service)
	if err != nil {
		b.T.Fatal(err)
	}
	return s
}

func ran(b observationtest.Bench, id, command, failure string) {
	b.T.Helper()
	b.Call(observation.Call{ID: id, Tool: "Bash", Action: observation.Shell, Command: command, Failed: failure != "", Error: failure}, "")
}

func edit(b observationtest.Bench, id, path string) {
	b.T.Helper()
	b.Call(observation.Call{ID: id, Tool: "Edit", Action: observation.Edit, Path: filepath.Join(b.Repo, path)}, "")
}

// finds reports an error if the query of a sample question does not find its row.
func finds(b observationtest.Bench, s *SampleQuestion) {
	b.T.Helper()
	rows, err := search.Search(b.T.Context(), b.Service, search.SearchArgs{Query: s.Query, ObsType: s.Type, Limit: 20})
	if err != nil || !slices.ContainsFunc(rows, func(h search.Hit) bool { return h.ID == s.ID }) {
		b.T.Errorf("%q of type %s finds %v, %v, not row %d", s.Query, s.Type, rows, err, s.ID)
	}
}

func TestShowcaseTellsWhatMadeTheLastFailingCommandPass(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Prompt("make the refund test pass", "")
	ran(b, "1", "make lint", "Exit code 2\nlint: cart.go:3")
	ran(b, "2", "make lint", "") // without a change in between
	ran(b, "3", "cd app && FLAG=1 go test ./refund", "Exit code 1\n--- FAIL: TestRoundHalfUp")
	edit(b, "4", "a.go")
	edit(b, "5", "b.go")
	b.Call(observation.Call{ID: "6", Tool: "Edit", Action: observation.Edit, Path: "c.go", Failed: true, Error: "no match"}, "")
	b.Now.Add(300)
	ran(b, "7", "go test  ./refund", "")
	ran(b, "8", "ls nothing", "No such file")
	b.Now.Add(2 * 24 * 60 * 60)
	s := showcase(b)
	want := SampleQuestion{
		Question: "What made “go test ./refund” pass again in shop?",
		Answer:   "It failed 2d ago with “--- FAIL: TestRoundHalfUp”; after changes to b.go and 1 other file it passed, 5 minutes later.",
		ID:       4, Query: "go test refund", Type: "command_error", Project: "shop",
	}
	if s == nil || *s != want {
		t.Fatalf("got  %+v\nwant %+v", s, want)
	}
	finds(b, s)
}

func TestShowcasePrefersAFixWithAChangeToANewerOneWithout(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	ran(b, "1", "make", "cannot find -lz")
	ran(b, "2", "make", "")
	s := showcase(b)
	if s == nil || s.Answer != "It failed 0m ago with “cannot find -lz”; it passed again." {
		t.Errorf("without a change: %+v", s)
	}
	finds(b, s)
	b.Record(observation.Event{Kind: observation.Tool, Session: "s0", Calls: []observation.Call{{ID: "3", Tool: "Bash", Action: observation.Shell, Command: "npm run build", Failed: true, Error: "boom"}}})
	b.Record(observation.Event{Kind: observation.Tool, Session: "s0", Calls: []observation.Call{{ID: "4", Tool: "Edit", Action: observation.Edit, Path: filepath.Join(b.Repo, "x.ts")}}})
	b.Record(observation.Event{Kind: observation.Tool, Session: "s0", Calls: []observation.Call{{ID: "5", Tool: "Bash", Action: observation.Shell, Command: "npm run build"}}})
	ran(b, "6", "make", "cannot find -lz")
	ran(b, "7", "make", "")
	if s := showcase(b); s == nil || s.Query != "npm run build" {
		t.Errorf("with a change: %+v", s)
	}
}

func TestShowcaseFallsBackToTheBusiestFileAndThenToNothing(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	if s := showcase(b); s != nil {
		t.Errorf("of nothing: %+v", s)
	}
	ran(b, "0", "make", "never passes")
	b.Prompt("round the cart total half up", "")
	edit(b, "1", "src/cart.go")
	edit(b, "2", "src/cart.go")
	edit(b, "3", "src/other.go")
	want := SampleQuestion{
		Question: "Which file changes most in shop, and what for?",
		Answer:   "src/cart.go: 2 edits in 1 conversation, the last for “round the cart total half up”.",
		ID:       4, Query: "cart go", Type: "file_edit", Project: "shop",
	}
	s := showcase(b)
	if s == nil || *s != want {
		t.Fatalf("got  %+v\nwant %+v", s, want)
	}
	finds(b, s)
	if s, err := FindSampleQuestion(t.Context(), observation.New(nil, observation.Config{})); s != nil || err != nil {
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
	b := observationtest.New(t)
	edit(b, "1", "a.go")
	b.Record(observation.Event{Kind: observation.Tool, Session: "s2", Calls: []observation.Call{{ID: "2", Tool: "Read", Action: observation.Read, Path: "b.go"}}})
	for after, want := range map[int64]Totals{
		0: {Conversations: 2, Observations: 2, Projects: 1, Oldest: observationtest.Start + 1},
		1: {Conversations: 1, Observations: 1, Projects: 1, Oldest: observationtest.Start + 2},
		9: {},
	} {
		if got, err := CountAfter(t.Context(), b.Service, after); err != nil || got != want {
			t.Errorf("after %d: %+v, %v, want %+v", after, got, err, want)
		}
	}
}
