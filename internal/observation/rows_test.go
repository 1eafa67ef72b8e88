package observation

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
	"cairn/internal/store"
)

func TestGetKeepsTheOrderOfIDsAndLeavesOutWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second := b.prompt("one two three", "").IDs[0], b.prompt("four five six", "").IDs[0]
	rows, err := b.Get(t.Context(), []int64{second, 77, first, second})
	if err != nil || len(rows) != 2 || rows[0].ID != second || rows[1].ID != first {
		t.Errorf("%v, %v", rows, err)
	}
	if rows, err := b.Get(t.Context(), []int64{77}); err != nil || rows == nil || len(rows) != 0 {
		t.Errorf("all missing: %v, %v", rows, err)
	}
	for message, ids := range map[string][]int64{
		"ids array must not be empty":           {},
		"ids array must not exceed 50 elements": make([]int64, 51),
	} {
		if _, err := b.Get(t.Context(), ids); err == nil || err.Error() != message {
			t.Errorf("%v", err)
		}
	}
}

func TestFullObservationHasTheSeedsFieldsAndNullsWhereNothingIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.record(Event{Kind: SessionStart, Text: "startup", Source: "SessionStart"}).IDs[0]
	rows, err := b.Get(t.Context(), []int64{id})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(rows[0])
	want := fmt.Sprintf(`{"id":1,"timestamp":%d,"session_id":"s1","project":"shop","obs_type":"session_start",`+
		`"source_event":"SessionStart","tool_name":null,"content":"startup","file_path":null,"metadata":null,`+
		`"prompt_id":null,"is_pinned":false,"agent_id":null}`, b.now.Load())
	if err != nil || string(text) != want {
		t.Errorf("%v\n got %s\nwant %s", err, text, want)
	}
}

func TestTimelineIsTheSessionAroundTheAnchor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 8 {
		b.call(Call{Tool: "Bash", Action: Shell, Command: fmt.Sprint("step ", i)}, "")
		b.record(Event{Kind: Prompt, Session: "other", Text: "something else entirely", Source: "UserPromptSubmit"})
	}
	ids := func(rows []Observation) (out []int64) {
		for _, o := range rows {
			out = append(out, o.ID)
		}
		return out
	}
	tl, err := b.Timeline(t.Context(), 7, 2, 3)
	if err != nil || !slices.Equal(ids(tl.Before), []int64{3, 5}) || !slices.Equal(ids(tl.After), []int64{9, 11, 13}) {
		t.Errorf("%v %v %v", ids(tl.Before), ids(tl.After), err)
	}
	tl, err = b.Timeline(t.Context(), 1, -4, 0)
	if err != nil || tl.Before == nil || tl.After == nil || len(tl.Before)+len(tl.After) != 0 {
		t.Errorf("%+v, %v", tl, err)
	}
	if _, err := b.Timeline(t.Context(), 999, 5, 5); fault.KindOf(err) != fault.NotFound || err.Error() != "anchor observation not found" {
		t.Error(err)
	}
}

func TestTraceGroupsRowsByPromptAndBoundsBoth(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.record(Event{Kind: SessionStart, Text: "startup", Source: "SessionStart"}) // +1
	b.prompt("first question here", "")                                          // +2
	b.call(Call{Tool: "Bash", Action: Shell, Command: "one"}, "")                // +3
	b.call(Call{Tool: "Bash", Action: Shell, Command: "two"}, "")                // +4
	b.record(Event{Kind: Message, Text: "answer", Role: "turn", Source: "Stop"}) // +5
	shape := func(before, after *int64) (out []string) {
		tr, err := b.Trace(t.Context(), "s1", before, after)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range tr.Prompts {
			out = append(out, fmt.Sprint(p.Source, p.ObservationCount, len(p.Observations)))
		}
		return out
	}
	b.want("all", shape(nil, nil), []string{"system1 1", "user2 2", "agent0 0"})
	limit := int64(testStart + 4)
	b.want("before", shape(&limit, nil), []string{"system1 1", "user1 1"})
	b.want("after", shape(nil, &limit), []string{"agent0 0"})
	far := int64(testStart + 1000)
	b.want("nothing", shape(nil, &far), nil)
	if _, err := b.Trace(t.Context(), "nobody", nil, nil); err == nil || err.Error() != "session not found: nobody" {
		t.Error(err)
	}
}

func TestHistoryFindsAFileInEverySpellingAndWorktree(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt("change the header please", "")
	b.call(Call{ID: "1", Tool: "Read", Action: Read, Path: filepath.Join(b.repo, "src", "a.go")}, "")
	b.call(Call{ID: "2", Tool: "Edit", Action: Edit, Path: "src/a.go"}, "")
	b.record(Event{Kind: Tool, Session: "s2", Cwd: filepath.Join(b.repo), Calls: []Call{{ID: "3", Tool: "Write", Action: Write, Path: "./src/a.go"}}})
	look := func(file, cwd string, edits bool) (out []string) {
		h, err := b.History(t.Context(), HistoryArgs{File: file, Cwd: cwd, Limit: 10, EditsOnly: edits})
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
	b.want("relative", look("src/a.go", b.repo, false), all)
	b.want("dotted", look("./src/../src/a.go", b.repo, false), all)
	b.want("backslashes", look(`src\a.go`, b.repo, false), all)
	b.want("absolute, from elsewhere", look(filepath.Join(b.repo, "src/a.go"), t.TempDir(), false), all)
	b.want("edits", look("src/a.go", b.repo, true), []string{"s2:file_write", "s1:file_edit"})
	b.want("unknown", look("src/b.go", b.repo, false), nil)
	h, err := b.History(t.Context(), HistoryArgs{File: "src/a.go", Cwd: b.repo, Limit: 10})
	if err != nil || *h.Sessions[1].Touches[0].PromptContent != "change the header please" || h.Sessions[0].Touches[0].PromptContent != nil {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestRecentContextScoresAsTheSeedSays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.repository(filepath.Join(filepath.Dir(b.repo), "billing"))
	calls := []Event{
		{Kind: Tool, Calls: []Call{{Tool: "Edit", Action: Edit, Path: "a.go"}}},
		{Kind: Tool, Calls: []Call{{Tool: "Bash", Action: Shell, Command: "make"}}},
		{Kind: SessionStart, Text: "compact", Source: "SessionStart"},
		{Kind: Tool, Calls: []Call{{Tool: "mcp__x__y", Action: MCP, Server: "x", Method: "y"}}},
		{Kind: Tool, Calls: []Call{{Tool: "Read", Action: Read, Path: "b.go"}}},
		{Kind: Tool, Session: "s9", Cwd: other, Calls: []Call{{Tool: "Edit", Action: Edit, Path: "a.go"}}},
	}
	for _, e := range calls {
		b.record(e)
	}
	b.now.Store(0) // every row lies in the future, which counts as now
	scores := func(s Scope) (out []string) {
		rows, err := b.Recent(t.Context(), s, 30)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			out = append(out, fmt.Sprintf("%s %s %.3f", r.Project, r.ObsType, r.Score))
		}
		return out
	}
	b.want("project", scores(Scope{Project: "shop"}), []string{
		"shop file_edit 1.000", "shop command 0.901", "billing file_edit 0.860", "shop session_compact 0.850", "shop mcp_call 0.799", "shop file_read 0.751",
	})
	b.want("all", scores(Scope{}), []string{
		"billing file_edit 1.000", "shop file_edit 1.000", "shop command 0.868", "shop session_compact 0.800", "shop mcp_call 0.732", "shop file_read 0.668",
	})
	b.want("unknown", scores(Scope{Project: "nothing"}), nil)
}

// The ranking merges lanes; sorting everything must give the same.
func TestRankingEqualsSortingEverything(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	repos := []string{b.repo, b.repository(filepath.Join(filepath.Dir(b.repo), "two")), b.repository(filepath.Join(filepath.Dir(b.repo), "three"))}
	for i := range 600 {
		c := Call{Tool: "Bash", Action: Shell, Command: fmt.Sprint("run ", i)}
		if rnd.IntN(3) > 0 {
			c = Call{Tool: "Edit", Action: []Action{Read, Write, Edit}[rnd.IntN(3)], Path: fmt.Sprintf("f%d.go", rnd.IntN(40))}
		}
		b.now.Add(int64(rnd.IntN(20_000)))
		n := rnd.IntN(3)
		b.record(Event{Kind: Tool, Session: fmt.Sprint("s", n), Cwd: repos[n], Calls: []Call{c}})
	}
	got, err := b.Recent(t.Context(), Scope{Project: "shop"}, 100)
	if err != nil {
		t.Fatal(err)
	}
	var all []Observation
	err = b.store.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		all, err = observations(ctx, tx, observationColumns+"ORDER BY o.timestamp DESC, o.id DESC")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	now := b.now.Load()
	score := func(o Observation) float64 {
		p := 0.3
		if o.Project == "shop" {
			p = 1
		}
		return 0.5*math.Exp(-math.Ln2*float64(now-o.Timestamp)/86400/7) + 0.3*toolWeight(o.ObsType) + 0.2*p
	}
	slices.SortStableFunc(all, func(x, y Observation) int {
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
	b := newBench(t)
	var ids []int64
	for i := range 50 {
		var text strings.Builder
		for l := range 30 {
			fmt.Fprintf(&text, "kiln %c says %s 漢字 at step %d\n", 'a'+i%26, strings.Repeat("hot ", 5+l%7), l)
		}
		ids = append(ids, b.call(printing("./say", text.String()), "").IDs[0])
	}
	rows, err := b.Get(t.Context(), ids)
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
