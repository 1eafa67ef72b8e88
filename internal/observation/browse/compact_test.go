package browse

import (
	"fmt"
	"strings"
	"testing"

	"cairn/internal/observation"
	"cairn/internal/observation/observationtest"
	"cairn/internal/oneline"
)

// longSession records a session of many prompts, each with many reads, edits and commands.
func longSession(b observationtest.Bench, prompts, calls int) {
	for p := range prompts {
		id := fmt.Sprint("p", p)
		b.Prompt(fmt.Sprintf("prompt %d: %s", p, strings.Repeat("make the cart add up ", 30)), id)
		for i := range calls {
			path := fmt.Sprintf("internal/cart/part%d/file%d.go", p, i)
			b.Call(observation.Call{ID: fmt.Sprint("r", p, "-", i), Tool: "Read", Action: observation.Read, Path: path}, id)
			b.Call(observation.Call{ID: fmt.Sprint("e", p, "-", i), Tool: "Edit", Action: observation.Edit, Path: path}, id)
		}
		b.Call(observation.Call{
			ID: fmt.Sprint("c", p), Tool: "Bash", Action: observation.Shell, Command: "go test ./cart", Failed: true,
			Error: "Exit code 1\nok  shop/a\n--- FAIL: TestTotal (0.00s)\n    cart_test.go:9: got 4, want 5\nFAIL",
		}, id)
		b.Record(observation.Event{Kind: observation.Message, Role: "turn", Source: "Stop", Text: strings.Repeat("I changed the cart. ", 40)})
	}
}

func TestATraceThatIsShortIsTheSameInBothForms(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	longSession(b, 1, 3)
	full, err := TraceSession(t.Context(), b.Service, "s1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := observation.CompactJSON(full.Compact())
	want, _ := observation.CompactJSON(full)
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestALongTraceFitsAndStillCountsEveryRow(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{3, 30}, {12, 10}, {30, 20}} {
		b := observationtest.New(t)
		longSession(b, size[0], size[1])
		full, err := TraceSession(t.Context(), b.Service, "s1", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		short := full.Compact()
		text, _ := observation.CompactJSON(short)
		if oneline.Tokens(text) > compactTokens {
			t.Errorf("%v: %d tokens", size, oneline.Tokens(text))
		}
		rows, shown, failed := 0, 0, 0
		for _, p := range short.Prompts {
			rows += p.ObservationCount
			for _, r := range p.Observations {
				shown += max(r.Count, 1)
				if r.Failed {
					failed++
					if r.Error != "cart_test.go:9: got 4, want 5" || r.ContentPreview != "go test ./cart" {
						t.Errorf("%v: a failed row shows %q, %q", size, r.ContentPreview, r.Error)
					}
				}
			}
		}
		if want := size[0] * (2*size[1] + 1); rows != want || shown > rows || failed > size[0] || failed < min(size[0], 3) {
			t.Errorf("%v: %d rows counted, %d shown, %d failed; want %d", size, rows, shown, failed, want)
		}
		whole, _ := observation.CompactJSON(full)
		if oneline.Tokens(whole) <= compactTokens {
			t.Errorf("%v: the full form has %d tokens, so nothing was shortened", size, oneline.Tokens(whole))
		}
	}
}

func TestRowsOfOneTypeAreFoldedWithTheirNumber(t *testing.T) {
	t.Parallel()
	path := func(s string) *string { return &s }
	rows := []TraceRow{
		{ID: 1, ObsType: observation.TypeRead, FilePath: path("/r/a.go"), ContentPreview: "/r/a.go"},
		{ID: 2, ObsType: observation.TypeRead, FilePath: path("/r/b.go"), ContentPreview: "/r/b.go"},
		{ID: 3, ObsType: observation.TypeRead, FilePath: path("/r/a.go"), ContentPreview: "/r/a.go"},
		{ID: 4, ObsType: observation.TypeEdit, FilePath: path("/r/a.go"), ContentPreview: "/r/a.go", Failed: true, Error: "no such text"},
		{ID: 5, ObsType: observation.TypeRead, FilePath: path("/r/c.go"), ContentPreview: "/r/c.go"},
	}
	out := foldRows(rows, traceForm{preview: 60, fold: foldRuns})
	if len(out) != 3 || out[0].Count != 3 || out[0].LastID != 3 || out[0].ContentPreview != "a.go ×2, b.go" || out[0].FilePath != nil ||
		!out[1].Failed || out[1].Error != "no such text" || out[2].Count != 0 || *out[2].FilePath != "/r/c.go" {
		t.Errorf("runs: %+v", out)
	}
	out = foldRows(rows, traceForm{preview: 60, fold: foldTypes})
	if len(out) != 2 || out[0].Count != 4 || out[0].LastID != 5 || !out[1].Failed {
		t.Errorf("types: %+v", out)
	}
}

func TestCompactRecentKeepsEveryRowAndFits(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	longSession(b, 3, 20)
	rows, short, err := RecentCompact(t.Context(), b.Service, observation.Scope{}, 30)
	if err != nil || len(short) != len(rows) || len(rows) != 30 {
		t.Fatalf("%d rows, %d short, %v", len(rows), len(short), err)
	}
	for i := range rows {
		if rows[i].ID != short[i].ID {
			t.Errorf("row %d: %d and %d", i, rows[i].ID, short[i].ID)
		}
	}
	text, _ := observation.CompactJSON(short)
	if oneline.Tokens(text) > compactTokens {
		t.Errorf("%d tokens", oneline.Tokens(text))
	}
	if strings.Contains(text, `"PostToolUse"`) {
		t.Errorf("the shortest form repeats the event of every call: %s", text)
	}
	if rows, short, err := RecentCompact(t.Context(), b.Service, observation.Scope{}, 3); err != nil || len(rows) != 3 || short != nil {
		t.Errorf("%d rows that fit, %v, %v", len(rows), short, err)
	}
}

func TestCompactHistoryShortensPromptsAndMarksFailedTouches(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Prompt(strings.Repeat("make the cart add up ", 95), "p1")
	for i := range 20 {
		b.Call(observation.Call{ID: fmt.Sprint("e", i), Tool: "Edit", Action: observation.Edit, Path: "cart.go", Failed: i == 19, Error: "Exit code 1\nnot unique"}, "p1")
	}
	b.Call(observation.Call{ID: "i", Tool: "Edit", Action: observation.Edit, Path: "cart.go", Interrupted: true}, "p1")
	full, err := FileHistory(t.Context(), b.Service, HistoryArgs{File: "cart.go", Cwd: b.Repo, Limit: 20})
	if err != nil || len(full.Sessions) != 1 || len(full.Sessions[0].Touches) != 20 {
		t.Fatalf("%+v, %v", full, err)
	}
	short := full.Compact()
	text, _ := observation.CompactJSON(short)
	touches := short.Sessions[0].Touches
	if oneline.Tokens(text) > compactTokens || len(touches) != 20 || touches[18].Error != "not unique" || !touches[18].Failed || !touches[19].Interrupted {
		t.Errorf("%d tokens, %+v", oneline.Tokens(text), touches[18:])
	}
	if first := *touches[0].PromptContent; !strings.HasPrefix(first, "make the cart add up make") || len(first) < len(*touches[1].PromptContent) {
		t.Errorf("prompts %q, %q", first, *touches[1].PromptContent)
	}
	edits, err := FileHistory(t.Context(), b.Service, HistoryArgs{File: "cart.go", Cwd: b.Repo, Limit: 20, EditsOnly: true})
	if err != nil || len(edits.Sessions) != 1 || len(edits.Sessions[0].Touches) != 1 || edits.Sessions[0].Touches[0].Failed {
		t.Errorf("edits only: %+v, %v", edits, err)
	}
}
