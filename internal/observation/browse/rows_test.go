package browse

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/observationtest"
	"cairn/internal/store"
)

func TestGetKeepsTheOrderOfIDsAndLeavesOutWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	first, second := b.Prompt("one two three", "").IDs[0], b.Prompt("four five six", "").IDs[0]
	rows, err := Get(t.Context(), b.Service, []int64{second, 77, first, second})
	if err != nil || len(rows) != 2 || rows[0].ID != second || rows[1].ID != first {
		t.Errorf("%v, %v", rows, err)
	}
	if rows, err := Get(t.Context(), b.Service, []int64{77}); err != nil || rows == nil || len(rows) != 0 {
		t.Errorf("all missing: %v, %v", rows, err)
	}
	for message, ids := range map[string][]int64{
		"ids array must not be empty":           {},
		"ids array must not exceed 50 elements": make([]int64, 51),
	} {
		if _, err := Get(t.Context(), b.Service, ids); err == nil || err.Error() != message {
			t.Errorf("%v", err)
		}
	}
}

func TestFullObservationHasTheSeedsFieldsAndNullsWhereNothingIs(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	id := b.Record(observation.Event{Kind: observation.SessionStart, Text: "startup", Source: "SessionStart"}).IDs[0]
	rows, err := Get(t.Context(), b.Service, []int64{id})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(rows[0])
	want := fmt.Sprintf(`{"id":1,"timestamp":%d,"session_id":"s1","project":"shop","obs_type":"session_start",`+
		`"source_event":"SessionStart","tool_name":null,"content":"startup","file_path":null,"metadata":null,`+
		`"prompt_id":null,"is_pinned":false,"agent_id":null}`, b.Now.Load())
	if err != nil || string(text) != want {
		t.Errorf("%v\n got %s\nwant %s", err, text, want)
	}
}

func TestTimelineIsTheSessionAroundTheAnchor(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	for i := range 8 {
		b.Call(observation.Call{Tool: "Bash", Action: observation.Shell, Command: fmt.Sprint("step ", i)}, "")
		b.Record(observation.Event{Kind: observation.Prompt, Session: "other", Text: "something else entirely", Source: "UserPromptSubmit"})
	}
	ids := func(rows []observation.Observation) (out []int64) {
		for _, o := range rows {
			out = append(out, o.ID)
		}
		return out
	}
	tl, err := RowsAround(t.Context(), b.Service, 7, 2, 3)
	if err != nil || !slices.Equal(ids(tl.Before), []int64{3, 5}) || !slices.Equal(ids(tl.After), []int64{9, 11, 13}) {
		t.Errorf("%v %v %v", ids(tl.Before), ids(tl.After), err)
	}
	tl, err = RowsAround(t.Context(), b.Service, 1, -4, 0)
	if err != nil || tl.Before == nil || tl.After == nil || len(tl.Before)+len(tl.After) != 0 {
		t.Errorf("%+v, %v", tl, err)
	}
	if _, err := RowsAround(t.Context(), b.Service, 999, 5, 5); fault.KindOf(err) != fault.NotFound || err.Error() != "anchor observation not found" {
		t.Error(err)
	}
}

func TestTraceGroupsRowsByPromptAndBoundsBoth(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Record(observation.Event{Kind: observation.SessionStart, Text: "startup", Source: "SessionStart"}) // +1
	b.Prompt("first question here", "")                                                                  // +2
	b.Call(observation.Call{Tool: "Bash", Action: observation.Shell, Command: "one"}, "")                // +3
	b.Call(observation.Call{Tool: "Bash", Action: observation.Shell, Command: "two"}, "")                // +4
	b.Record(observation.Event{Kind: observation.Message, Text: "answer", Role: "turn", Source: "Stop"}) // +5
	shape := func(before, after *int64) (out []string) {
		tr, err := TraceSession(t.Context(), b.Service, "s1", before, after)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range tr.Prompts {
			out = append(out, fmt.Sprint(p.Source, p.ObservationCount, len(p.Observations)))
		}
		return out
	}
	b.Want("all", shape(nil, nil), []string{"system1 1", "user2 2", "agent0 0"})
	limit := int64(observationtest.Start + 4)
	b.Want("before", shape(&limit, nil), []string{"system1 1", "user1 1"})
	b.Want("after", shape(nil, &limit), []string{"agent0 0"})
	far := int64(observationtest.Start + 1000)
	b.Want("nothing", shape(nil, &far), nil)
	if _, err := TraceSession(t.Context(), b.Service, "nobody", nil, nil); err == nil || err.Error() != "session not found: nobody" {
		t.Error(err)
	}
}

func TestHistoryFindsAFileInEverySpellingAndWorktree(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Prompt("change the header please", "")
	b.Call(observation.Call{ID: "1", Tool: "Read", Action: observation.Read, Path: filepath.Join(b.Repo, "src", "a.go")}, "")
	b.Call(observation.Call{ID: "2", Tool: "Edit", Action: observation.Edit, Path: "src/a.go"}, "")
	b.Record(observation.Event{Kind: observation.Tool, Session: "s2", Cwd: filepath.Join(b.Repo), Calls: []observation.Call{{ID: "3", Tool: "Write", Action: observation.Write, Path: "./src/a.go"}}})
	look := func(file, cwd string, edits bool) (out []string) {
		h, err := FileHistory(t.Context(), b.Service, HistoryArgs{File: file, Cwd: cwd, Limit: 10, EditsOnly: edits})
		if err != nil || h.FilePath != file {
			t.Fatalf("%+v, %v", h, err)
		}
		for _, s := range h.Sessions {
			var touches []string
			for _, x := range s.Touches {
				touches = append(touches, x.ObsType)
			}
			out = append(out, s.SessionID+":"+strings.Join(touches, ","))
		}
		return out
	}
	all := []string{"s2:file_write", "s1:file_read,file_edit"}
	b.Want("relative", look("src/a.go", b.Repo, false), all)
	b.Want("dotted", look("./src/../src/a.go", b.Repo, false), all)
	b.Want("backslashes", look(`src\a.go`, b.Repo, false), all)
	b.Want("absolute, from elsewhere", look(filepath.Join(b.Repo, "src/a.go"), t.TempDir(), false), all)
	b.Want("edits", look("src/a.go", b.Repo, true), []string{"s2:file_write", "s1:file_edit"})
	b.Want("unknown", look("src/b.go", b.Repo, false), nil)
	h, err := FileHistory(t.Context(), b.Service, HistoryArgs{File: "src/a.go", Cwd: b.Repo, Limit: 10})
	if err != nil || *h.Sessions[1].Touches[0].PromptContent != "change the header please" || h.Sessions[0].Touches[0].PromptContent != nil {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestRecentContextScoresAsTheSeedSays(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	other := b.Repository(filepath.Join(filepath.Dir(b.Repo), "billing"))
	calls := []observation.Event{
		{Kind: observation.Tool, Calls: []observation.Call{{Tool: "Edit", Action: observation.Edit, Path: "a.go"}}},
		{Kind: observation.Tool, Calls: []observation.Call{{Tool: "Bash", Action: observation.Shell, Command: "make"}}},
		{Kind: observation.SessionStart, Text: "compact", Source: "SessionStart"},
		{Kind: observation.Tool, Calls: []observation.Call{{Tool: "mcp__x__y", Action: observation.MCP, Server: "x", Method: "y"}}},
		{Kind: observation.Tool, Calls: []observation.Call{{Tool: "Read", Action: observation.Read, Path: "b.go"}}},
		{Kind: observation.Tool, Session: "s9", Cwd: other, Calls: []observation.Call{{Tool: "Edit", Action: observation.Edit, Path: "a.go"}}},
	}
	for _, e := range calls {
		b.Record(e)
	}
	b.Now.Store(0) // every row is in the future, which counts as now
	scores := func(s observation.Scope) (out []string) {
		rows, err := Recent(t.Context(), b.Service, s, 30)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			out = append(out, fmt.Sprintf("%s %s %.3f", r.Project, r.ObsType, r.Score))
		}
		return out
	}
	b.Want("project", scores(observation.Scope{Project: "shop"}), []string{
		"shop file_edit 1.000", "shop command 0.901", "billing file_edit 0.860", "shop session_compact 0.850", "shop mcp_call 0.799", "shop file_read 0.751",
	})
	b.Want("all", scores(observation.Scope{}), []string{
		"billing file_edit 1.000", "shop file_edit 1.000", "shop command 0.868", "shop session_compact 0.800", "shop mcp_call 0.732", "shop file_read 0.668",
	})
	b.Want("unknown", scores(observation.Scope{Project: "nothing"}), nil)
}

// The ranking merges lanes. Sorting all rows must give the same result.
func TestRankingEqualsSortingEverything(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	repos := []string{b.Repo, b.Repository(filepath.Join(filepath.Dir(b.Repo), "two")), b.Repository(filepath.Join(filepath.Dir(b.Repo), "three"))}
	for i := range 600 {
		c := observation.Call{Tool: "Bash", Action: observation.Shell, Command: fmt.Sprint("run ", i)}
		if rnd.IntN(3) > 0 {
			c = observation.Call{Tool: "Edit", Action: []observation.Action{observation.Read, observation.Write, observation.Edit}[rnd.IntN(3)], Path: fmt.Sprintf("f%d.go", rnd.IntN(40))}
		}
		b.Now.Add(int64(rnd.IntN(20_000)))
		n := rnd.IntN(3)
		b.Record(observation.Event{Kind: observation.Tool, Session: fmt.Sprint("s", n), Cwd: repos[n], Calls: []observation.Call{c}})
	}
	got, err := Recent(t.Context(), b.Service, observation.Scope{Project: "shop"}, 100)
	if err != nil {
		t.Fatal(err)
	}
	var all []observation.Observation
	err = b.Store.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		all, err = observations(ctx, tx, observationColumns+"ORDER BY o.timestamp DESC, o.id DESC")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	now := b.Now.Load()
	score := func(o observation.Observation) float64 {
		p := 0.3
		if o.Project == "shop" {
			p = 1
		}
		return 0.5*math.Exp(-math.Ln2*float64(now-o.Timestamp)/86400/7) + 0.3*observation.ToolWeight(o.ObsType) + 0.2*p
	}
	slices.SortStableFunc(all, func(x, y observation.Observation) int {
		switch d := score(y) - score(x); {
		case d > 1e-12:
			return 1
		case d < -1e-12:
			return -1
		}
		return 0
	})
	seen := map[string]bool{}
	var want []int64
	for _, o := range all {
		if o.FilePath != nil {
			if seen[*o.FilePath] {
				continue
			}
			seen[*o.FilePath] = true
		}
		if want = append(want, o.ID); len(want) == 100 {
			break
		}
	}
	for i := range want {
		if got[i].ID != want[i] {
			t.Fatalf("row %d: #%d, want #%d", i, got[i].ID, want[i])
		}
	}
}

func TestManyOutputsAreReturnedShortened(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	var ids []int64
	for i := range 50 {
		var text strings.Builder
		for l := range 30 {
			fmt.Fprintf(&text, "kiln %c says %s 漢字 at step %d\n", 'a'+i%26, strings.Repeat("hot ", 5+l%7), l)
		}
		ids = append(ids, b.Call(observationtest.Printing("./say", text.String()), "").IDs[0])
	}
	rows, err := Get(t.Context(), b.Service, ids)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, r := range rows {
		total += len(r.Output)
		if !strings.HasPrefix(r.Output, "kiln ") || !strings.HasSuffix(r.Output, "at step 29") || !utf8.ValidString(r.Output) {
			t.Errorf("%q", r.Output)
		}
	}
	if total > maxOutputs || total < maxOutputs/2 {
		t.Errorf("%d bytes together", total)
	}
}
