package commands_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/record"
	"cairn/internal/record/commands"
	"cairn/internal/store"
)

// tree creates R001 … R006: R001(R002(R004, R006), R005), R003.
func (d *desk) tree() {
	d.Helper()
	for _, parent := range []string{"", "R001", "", "R002", "R001", "R002"} {
		d.create("s", parent, "node")
	}
}

func TestListsAreInTreeOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.tree()
	d.move("s", "R002", record.Resolved, "R001")
	must(d.Create(t.Context(), record.CreateArgs{Caller: as("s"), ParentID: ptr("R005"), Type: "note", Title: "n"}))(t)
	for _, c := range []struct {
		name string
		args record.ListArgs
		want []any
	}{
		{"everything", record.ListArgs{Depth: 1}, []any{"R001", "R002", "R004", "R006", "R005", "R007", "R003"}},
		{"roots", record.ListArgs{Roots: true}, []any{"R001", "R003"}},
		{"roots and a level", record.ListArgs{Roots: true, Depth: 2}, []any{"R001", "R002", "R005", "R003"}},
		{"children", record.ListArgs{ParentID: "r1"}, []any{"R002", "R005"}},
		{"a depth below one", record.ListArgs{ParentID: "r1", Depth: -3}, []any{"R002", "R005"}},
		{"two levels", record.ListArgs{ParentID: "R001", Depth: 2}, []any{"R002", "R004", "R006", "R005", "R007"}},
		{"all levels below one", record.ListArgs{ParentID: "R002", Depth: math.MaxInt}, []any{"R004", "R006"}},
		{"all levels", record.ListArgs{Roots: true, Depth: math.MaxInt}, []any{"R001", "R002", "R004", "R006", "R005", "R007", "R003"}},
		{"a leaf", record.ListArgs{ParentID: "R003"}, nil},
		{"filters hide no descendants", record.ListArgs{ParentID: "R001", Depth: 2, States: []record.State{record.Open}}, []any{"R004", "R006", "R005", "R007"}},
		{"two states", record.ListArgs{Roots: true, Depth: 2, States: []record.State{record.Resolved, record.Later}}, []any{"R002"}},
		{"types", record.ListArgs{Types: []string{"note", "none"}}, []any{"R007"}},
	} {
		c.args.Caller = as("")
		list := must(d.List(t.Context(), c.args))(t)
		if list == nil {
			t.Errorf("%s: nil", c.name)
		}
		wantList(t, c.name, idsOf(list), c.want...)
	}
	_, err := d.List(t.Context(), record.ListArgs{Caller: as(""), ParentID: "R404"})
	wantError(t, "an unknown parent", err, fault.NotFound, record.CodeNotFound)
	_, err = d.List(t.Context(), record.ListArgs{Caller: as(""), States: []record.State{"x"}})
	wantError(t, "an unknown state", err, fault.Invalid, record.CodeInvalid, `"states"`)
	r := must(d.GetRef(t.Context(), record.GetRefArgs{Caller: as(""), ID: "r1"}))(t)
	if r.ID != "R001" || r.ChildrenCount != 2 || r.OpenChildrenCount != 1 || r.ParentID != nil {
		t.Errorf("reference %+v", r)
	}
	_, err = d.GetRef(t.Context(), record.GetRefArgs{Caller: as(""), ID: "R404"})
	wantError(t, "an unknown record", err, fault.NotFound, record.CodeNotFound)
}

func TestOverviewCutsAndSaysSo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.tree()
	d.move("s", "R006", record.Later, "x")
	for range 60 {
		d.create("s", "", "root")
	}
	d.activate("s2", "R003")
	o := must(d.Overview(t.Context(), record.OverviewArgs{Caller: as("")}))(t)
	if o.Totals != (record.Totals{Roots: 62, Open: 65, Later: 1}) || len(o.RootRecords) != 50 || len(o.OpenRecords) != 50 || len(o.RecentActivity) != 20 {
		t.Errorf("totals %+v of %d, %d, %d", o.Totals, len(o.RootRecords), len(o.OpenRecords), len(o.RecentActivity))
	}
	wantList(t, "open ones in tree order", idsOf(o.OpenRecords[:5]), "R001", "R002", "R004", "R005", "R003")
	wantList(t, "later ones", idsOf(o.LaterRecords), "R006")
	if o.OpenSessions[0].ID != "s2" || fmt.Sprint(o.OpenSessions[0].ActiveRecords) != "[R003]" || len(o.OpenSessions[1].ActiveRecords) != 66 {
		t.Errorf("sessions %+v", o.OpenSessions[0])
	}
	d.create("s", "", "one more")
	o = must(d.Overview(t.Context(), record.OverviewArgs{Caller: as("")}))(t)
	want(t, "tick gap", o.OpenSessions[1].TickGap, 1)
}

func TestSearch(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	add := func(parent, kind, title, summary, body string) {
		a := record.CreateArgs{Caller: as("s"), Type: kind, Title: title, Summary: summary, Body: body}
		if parent != "" {
			a.ParentID = &parent
		}
		must(d.Create(ctx, a))(t)
	}
	add("", "note", "plain", "s", strings.Repeat("deploy ", 30)+"deployments everywhere")
	add("", "note", "plain", "how we deploy", "nothing here")
	add("", "note", "Deploying", "s", "nothing "+strings.Repeat("words ", 200))
	add("R001", "question", "child", "s", "getUserById fails\nin the cache layer")
	add("R004", "note", "grandchild", "the cache", "cold cache")
	d.move("s", "R005", record.Later, "x")
	search := func(query string, change ...func(a *record.SearchArgs)) record.SearchResult {
		t.Helper()
		a := record.SearchArgs{Caller: as(""), Query: query}
		for _, c := range change {
			c(&a)
		}
		return must(d.Search(ctx, a))(t)
	}
	ids := func(r record.SearchResult) (ids []string) {
		for _, h := range r.Results {
			ids = append(ids, h.ID)
		}
		return ids
	}
	out := search("deploy")
	wantList(t, "title before summary before body", ids(out), "R003", "R002", "R001")
	want(t, "the best is", out.Results[0].Relevance, 1.0)
	for i, h := range out.Results {
		if h.Relevance > 1 || h.Relevance <= 0 || i > 0 && h.Relevance > out.Results[i-1].Relevance ||
			!strings.Contains(h.Snippet, "**") || utf8.RuneCountInString(strings.ReplaceAll(h.Snippet, "**", "")) > 200 {
			t.Errorf("hit %d: %v %q", i, h.Relevance, h.Snippet)
		}
	}
	want(t, "snippet", search("deploy", func(a *record.SearchArgs) { a.Limit = 2 }).Results[1].Snippet, "how we **deploy**")
	limited := search("deploy", func(a *record.SearchArgs) { a.Limit = 1 })
	if limited.Total != 3 || len(limited.Results) != 1 {
		t.Errorf("limited to 1: %d of %d", len(limited.Results), limited.Total)
	}
	for _, c := range []struct {
		name, query string
		want        []any
	}{
		{"alternatives", "layer cold", []any{"R005", "R004"}},
		{"stems", "failing", []any{"R004"}},
		{"a phrase", `"cache layer"`, []any{"R004"}},
		{"a prefix", "grandch*", []any{"R005"}},
		{"AND", "cache AND layer", []any{"R004"}},
		{"NOT", "cache NOT layer", []any{"R005"}},
		{"groups", "(cache OR deploy) AND (cold OR layer)", []any{"R005", "R004"}},
		{"NEAR", "NEAR(cache layer, 2)", []any{"R004"}},
		{"identifiers by their parts", "user", []any{"R004"}},
		{"identifiers in small letters", "getuserbyid", []any{"R004"}},
		{"no column syntax", "title:child", []any{}},
		{"what is no query", `"layer (`, []any{"R004"}},
		{"a query that is too long", "layer " + strings.Repeat("x", 1000), []any{"R004"}},
		{"punctuation", "--!", []any{}},
		{"nothing", "absent", []any{}},
	} {
		out := search(c.query)
		got := ids(out)
		if len(got) == 2 && c.name != "alternatives" && c.name != "groups" {
			t.Errorf("%s: %v", c.name, got)
		}
		if c.name == "alternatives" || c.name == "groups" {
			if strings.Join(got, " ") != "R005 R004" && strings.Join(got, " ") != "R004 R005" {
				t.Errorf("%s: %v", c.name, got)
			}
			continue
		}
		wantList(t, c.name, got, c.want...)
		if out.Results == nil || out.Total != len(c.want) {
			t.Errorf("%s: total %d, %v", c.name, out.Total, out.Results)
		}
	}
	wantList(t, "below a record, itself included", ids(search("plain child", func(a *record.SearchArgs) { a.ParentID = "r1" })), "R004", "R001")
	wantList(t, "by type", ids(search("cache", func(a *record.SearchArgs) { a.Types = []string{"question"} })), "R004")
	wantList(t, "by state", ids(search("cache", func(a *record.SearchArgs) { a.States = []record.State{record.Later} })), "R005")
	_, err := d.Search(ctx, record.SearchArgs{Caller: as(""), Query: " \n"})
	wantError(t, "a blank query", err, fault.Invalid, record.CodeInvalid, `"query"`)
	_, err = d.Search(ctx, record.SearchArgs{Caller: as(""), Query: "x", ParentID: "R404"})
	wantError(t, "an unknown parent", err, fault.NotFound, record.CodeNotFound)
	_, err = d.Search(ctx, record.SearchArgs{Caller: as(""), Query: "x", States: []record.State{"x"}})
	wantError(t, "an unknown state", err, fault.Invalid, record.CodeInvalid, `"states"`)

	must(d.Create(ctx, record.CreateArgs{Caller: record.Caller{Project: "q"}, Type: "t", Title: "deploy"}))(t)
	want(t, "other projects are not searched", search("deploy").Total, 3)
	must(d.Update(ctx, record.UpdateArgs{Caller: as("s"), ID: "R003", Title: ptr("renamed")}))(t)
	want(t, "old words are forgotten", search("deploy").Total, 2)
}

func TestHistoryAndDiff(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	var times []string
	now := func() {
		d.clock.Move(time.Minute)
		times = append(times, record.Time(d.clock.Now().UnixNano()).String())
		d.clock.Move(time.Minute)
	}
	now()
	d.create("s", "", "a")
	now()
	d.body("s", "R001", "body of a\nmore\n")
	now()
	d.save("s")
	must(d.Update(ctx, record.UpdateArgs{Caller: as("s"), ID: "R001", Title: ptr("A"), Summary: ptr("S")}))(t)
	now()
	d.move("s", "R001", record.Discarded, "why not")
	history := func(a record.HistoryArgs) []record.HistoryItem {
		a.Caller, a.ID = as(""), "r1"
		return must(d.History(ctx, a))(t)
	}
	all := history(record.HistoryArgs{})
	var types []string
	for _, h := range all {
		types = append(types, fmt.Sprint(h.ChangeType, " ", h.Version, " ", h.Tick, " ", h.SessionID, " ", h.Diff != ""))
	}
	wantList(t, "history", types, "state_transition 4 5 s false", "record_updated 3 4 s false", "record_updated 2 2 s true", "record_created 1 1 s true")
	if !strings.Contains(all[0].Summary, "why not") || !strings.Contains(all[2].Diff, "\n body of a\n+more\n") {
		t.Errorf("%q, %q", all[0].Summary, all[2].Diff)
	}
	want(t, "limited", len(history(record.HistoryArgs{Limit: 2})), 2)
	want(t, "since", len(history(record.HistoryArgs{Since: times[2]})), 2)
	want(t, "since is inclusive", len(history(record.HistoryArgs{Since: all[2].Timestamp.String()})), 3)

	diff := func(from, to string) (record.VersionDiff, error) {
		return d.Diff(ctx, record.DiffArgs{Caller: as("s"), ID: "R001", From: from, To: to})
	}
	for _, c := range []struct {
		from, to string
		want     string
	}{
		{"v1", "", "1 4"}, {"v2", "v3", "2 3"}, {"tick:1", "tick:4", "1 3"}, {"tick:3", "v3", "2 3"}, {times[1], times[2], "1 2"},
		{"last_save", "", "2 4"}, {all[1].Timestamp.String(), "", "3 4"}, {"v4", "v4", "4 4"}, {times[1], "", "1 4"},
	} {
		out, err := diff(c.from, c.to)
		if got := fmt.Sprint(out.FromVersion.Version, " ", out.ToVersion.Version); got != c.want || err != nil {
			t.Errorf("from %s to %q: versions %s, %v, want %s", c.from, c.to, got, err, c.want)
		}
	}
	out := must(diff("v1", ""))(t)
	if out.Diff.Title.Old != "a" || out.Diff.Summary.New != "S" || out.Diff.State.New != "DISCARDED" || !strings.Contains(out.Diff.Body, "+more") {
		t.Errorf("diff %+v", out.Diff)
	}
	if out := must(diff("v2", "v3"))(t); out.Diff.Body != "" || out.Diff.State != nil {
		t.Errorf("what did not change: %+v", out.Diff)
	}
	for _, c := range [][2]string{
		{times[0], ""}, {"", ""}, {"v0", ""}, {"v5", ""}, {"tick:6", ""}, {"tick:0", ""}, {"v3", "v2"}, {times[2], times[1]}, {"yesterday", ""},
		{"v1", "junk"}, {"tick:-1", ""}, {"v1.5", ""}, {"1999-13-01T00:00:00Z", ""}, {"v99999999999999999999", ""},
	} {
		_, err := diff(c[0], c[1])
		wantError(t, fmt.Sprint("from ", c), err, fault.Invalid, record.CodeInvalid, `"field"`)
	}
	_, err := diff(times[0], "")
	if !strings.Contains(err.Error(), all[3].Timestamp.String()) {
		t.Errorf("it does not name the time of creation: %v", err)
	}
	d.create("other", "", "b")
	_, err = d.Diff(ctx, record.DiffArgs{Caller: as("other"), ID: "R001", From: "last_save"})
	if err != nil {
		t.Errorf("another session's last save counts where there is no own: %v", err)
	}
	fresh := newDesk(t)
	fresh.create("s", "", "a")
	_, err = fresh.Diff(ctx, record.DiffArgs{Caller: as("s"), ID: "R001", From: "last_save"})
	wantError(t, "without any save", err, fault.Invalid, record.CodeInvalid, `"from"`)
	_, err = d.History(ctx, record.HistoryArgs{Caller: as(""), ID: "R404"})
	wantError(t, "an unknown record", err, fault.NotFound, record.CodeNotFound)
}

func TestActivity(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.create("s", "", "a")
	d.create("s", "", "b")
	d.activate("s2", "R001")
	d.move("s", "R001", record.Later, "why")
	activity := func(a record.ActivityArgs) (types []string) {
		t.Helper()
		a.Caller = as("")
		for _, e := range must(d.RecentActivity(ctx, a))(t) {
			types = append(types, e.Type)
			if e.Timestamp == 0 || e.SessionID == "" {
				t.Errorf("%+v", e)
			}
		}
		return types
	}
	wantList(t, "newest first", activity(record.ActivityArgs{}), "state_transition", "conflict_detected", "activation", "session_branched",
		"session_started", "record_created", "record_created", "session_started")
	wantList(t, "limited", activity(record.ActivityArgs{Limit: 1}), "state_transition")
	wantList(t, "by type", activity(record.ActivityArgs{Types: []string{"activation", "record_created"}}), "activation", "record_created", "record_created")
	wantList(t, "by record", activity(record.ActivityArgs{RecordID: "r2"}), "record_created")
	all := must(d.RecentActivity(ctx, record.ActivityArgs{Caller: as("")}))(t)
	wantList(t, "since, inclusively", activity(record.ActivityArgs{Since: all[0].Timestamp.String()}), "state_transition")
	if e := all[0]; e.RecordID != "R001" || e.Details["reason"] != "why" || !strings.Contains(e.Summary, "OPEN → LATER: why") {
		t.Errorf("a transition: %+v", e)
	}
	_, err := d.RecentActivity(ctx, record.ActivityArgs{Caller: as(""), Types: []string{"record_deleted"}})
	wantError(t, "an unknown type", err, fault.Invalid, record.CodeInvalid, `"types"`)
	if !strings.Contains(err.Error(), "session_branched") {
		t.Errorf("it does not list the types: %v", err)
	}
	_, err = d.RecentActivity(ctx, record.ActivityArgs{Caller: as(""), Since: "junk"})
	wantError(t, "junk", err, fault.Invalid, record.CodeInvalid, `"since"`)
	_, err = d.RecentActivity(ctx, record.ActivityArgs{Caller: as(""), RecordID: "R404"})
	wantError(t, "an unknown record", err, fault.NotFound, record.CodeNotFound)
}

func TestAsOfTakesATickOrATime(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.create("s", "", "first")
	d.body("s", "R001", "second text")
	d.create("s", "R001", "child")
	ref := func(at string) (record.Record, error) {
		return d.Get(ctx, record.GetRefArgs{Caller: as(""), ID: "R001", At: at})
	}
	want(t, "tick 1", must(ref("tick:1"))(t).Body, "body of first\n")
	want(t, "tick 2", must(ref("tick:2"))(t).Version, 2)
	_, err := ref("tick:0")
	wantError(t, "tick 0", err, fault.NotFound, record.CodeNotFound)
	for _, at := range []string{"tick:4", "tick:x", "v1", "last_save", "#99999", "tomorrow", "2200-01-01T00:00:00Z"} {
		_, err := ref(at)
		wantError(t, at, err, fault.Invalid, record.CodeInvalid, `"field":"at"`)
	}
	old := must(d.Search(ctx, record.SearchArgs{Caller: as(""), Query: "body", At: "tick:1"}))(t)
	want(t, "searching the past", old.Total, 1)
	want(t, "and not the present", must(d.Search(ctx, record.SearchArgs{Caller: as(""), Query: "child", At: "tick:2"}))(t).Total, 0)
	want(t, "the clock of the past", must(d.GetProject(ctx, record.GetProjectArgs{Caller: as(""), At: "tick:2"}))(t).Tick, 2)
	modified := must(ref("tick:2"))(t).Modified
	want(t, "a millisecond is covered as a whole", must(ref(modified.String()))(t).Version, 2)
	want(t, "the one before", must(ref((modified - 1_000_000).String()))(t).Version, 1)
	want(t, "now", must(ref("now"))(t).Version, 2)
	o := must(d.Overview(ctx, record.OverviewArgs{Caller: as(""), At: "tick:1"}))(t)
	same := must(d.Overview(ctx, record.OverviewArgs{Caller: as(""), At: fmt.Sprint("#", o.At.Tick)}))(t)
	want(t, "a change of the log", fmt.Sprint(same.Project.Tick, *same.At), fmt.Sprint(1, *o.At))
	o = must(d.Overview(ctx, record.OverviewArgs{Caller: as(""), At: "2001-01-01T00:00:00Z"}))(t)
	want(t, "before all", fmt.Sprint(len(o.RootRecords), o.At.Note), fmt.Sprint(0, store.BeforeFirst))
}

func TestCitingFindsRecordsByPath(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	cited := []record.Cited{{Path: "src/a.go", Lines: "L1-L2", Hash: "h"}}
	must(d.Create(ctx, record.CreateArgs{Caller: as("s"), Type: "t", Title: "t", Body: "see src/a.go#L1-L2", Cited: cited}))(t)
	d.create("s", "", "other")
	list := must(d.Citing(ctx, as(""), "src/a.go"))(t)
	if len(list) != 1 || list[0].ID != "R001" || fmt.Sprint(list[0].Cited) != fmt.Sprint(cited) {
		t.Errorf("citing %+v", list)
	}
	must(d.Update(ctx, record.UpdateArgs{Caller: as("s"), ID: "R001", Title: ptr("x")}))(t)
	want(t, "citations stay with the body", len(must(d.Citing(ctx, as(""), "src/a.go"))(t)), 1)
	d.body("s", "R001", "nothing cited")
	want(t, "and go with it", len(must(d.Citing(ctx, as(""), "src/a.go"))(t)), 0)
}

func TestWithoutAStoreCommandsAreRefusedAsWithAnEmptyOneAndStoreNothing(t *testing.T) {
	t.Parallel()
	empty, nothing := newDesk(t).Commands, commands.New(nil, record.Config{})
	if nothing.Exists() || !empty.Exists() {
		t.Error("which one has a store?")
	}
	for name, command := range map[string]func(*commands.Commands) error{
		"activate": func(b *commands.Commands) error {
			_, err := b.Activate(t.Context(), record.ActivateArgs{Caller: as("s"), ID: "R1"})
			return err
		},
		"sync": func(b *commands.Commands) error {
			_, err := b.Sync(t.Context(), record.SyncArgs{Caller: as("s")})
			return err
		},
		"save": func(b *commands.Commands) error {
			_, err := b.Save(t.Context(), record.SaveArgs{Caller: as("s")})
			return err
		},
		"close": func(b *commands.Commands) error {
			_, err := b.Close(t.Context(), record.SaveArgs{Caller: as("s")})
			return err
		},
		"create": func(b *commands.Commands) error {
			_, err := b.Create(t.Context(), record.CreateArgs{Caller: as("s"), ParentID: ptr("R1"), Type: "note", Title: "t"})
			return err
		},
		"update": func(b *commands.Commands) error {
			_, err := b.Update(t.Context(), record.UpdateArgs{Caller: as("s"), ID: "R1", Title: ptr("t")})
			return err
		},
		"transition": func(b *commands.Commands) error {
			_, err := b.Transition(t.Context(), record.TransitionArgs{Caller: as("s"), ID: "R1", ToState: record.Open})
			return err
		},
		"create_project": func(b *commands.Commands) error {
			_, err := b.CreateProject(t.Context(), record.CreateProjectArgs{ID: "home", Name: "x"})
			return err
		},
	} {
		want, got := command(empty), command(nothing)
		if want == nil || got == nil || got.Error() != want.Error() || fault.As(got).Code != fault.As(want).Code {
			t.Errorf("%s: %v; with an empty store %v", name, got, want)
		}
	}
	made := must(nothing.Create(t.Context(), record.CreateArgs{Caller: as("s"), Type: "note", Title: "t"}))(t)
	if made.Record.ID != "R001" {
		t.Errorf("what would be made is %+v", made.Record)
	}
	if list := must(nothing.List(t.Context(), record.ListArgs{Caller: as("s")}))(t); len(list) != 0 {
		t.Errorf("it was kept: %v", list)
	}
}

func TestLengthOfARecordDoesNotHideThatItsTitleOrSummaryHits(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	add := func(title, summary, body string) {
		must(d.Create(t.Context(), record.CreateArgs{Caller: as("s"), Type: "note", Title: title, Summary: summary, Body: body}))(t)
	}
	for range 50 {
		add("plain", "", "some words")
	}
	add("plain", "", strings.Repeat("gecko ", 50))
	add("plain", "gecko", strings.Repeat("other words ", 10_000))
	add("plain", "gecko", "")
	add("gecko", "", strings.Repeat("other words ", 20_000))
	found := must(d.Search(t.Context(), record.SearchArgs{Caller: as(""), Query: "gecko"}))(t)
	var ids []string
	for _, h := range found.Results {
		ids = append(ids, h.ID)
	}
	wantList(t, "title before summary before body", ids, "R054", "R053", "R052", "R051")
}

func TestTimesBeyondAllChangesAreTheNearest(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.create("s", "", "first")
	for at, n := range map[string]int{"0001-01-01T00:00:00Z": 0, "1900-01-01T00:00:00+14:00": 0, "9999-12-31T23:59:59.999Z": 1} {
		list, err := d.List(ctx, record.ListArgs{Caller: as(""), At: at})
		if n == 0 {
			want(t, "records at "+at, len(must(list, err)(t)), 0)
		} else {
			wantError(t, "records at "+at, err, fault.Invalid, record.CodeInvalid, `"field":"at"`)
		}
		since := must(d.History(ctx, record.HistoryArgs{Caller: as(""), ID: "R001", Since: at}))(t)
		want(t, "versions since "+at, len(since), 1-n)
	}
	_, err := d.Diff(ctx, record.DiffArgs{Caller: as(""), ID: "R001", From: "0001-01-01T00:00:00Z"})
	wantError(t, "from before all", err, fault.Invalid, record.CodeInvalid, `"field":"from"`)
	want(t, "to after all", must(d.Diff(ctx, record.DiffArgs{Caller: as(""), ID: "R001", From: "v1", To: "9999-12-31T00:00:00Z"}))(t).ToVersion.Version, 1)
}

func TestATickThatIsNotThereIsRefusedWhereThereIsNothingToo(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*commands.Commands{"no project": newDesk(t).Commands, "no store": commands.New(nil, record.Config{})} {
		_, err := b.List(t.Context(), record.ListArgs{Caller: as(""), At: "tick:1"})
		wantError(t, name, err, fault.Invalid, record.CodeInvalid, `"field":"at"`)
		for _, at := range []string{"tick:0", "2026-01-01T00:00:00Z"} {
			want(t, name+" at "+at, len(must(b.List(t.Context(), record.ListArgs{Caller: as(""), At: at}))(t)), 0)
		}
	}
}

func TestUnclosedSessionsDoNotFillResults(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.create("s000", "", "held by all")
	for i := 1; i < 50; i++ {
		d.activate(fmt.Sprintf("s%03d", i), "R001")
	}
	overview := func(all bool) record.Overview {
		t.Helper()
		return must(d.Overview(ctx, record.OverviewArgs{Caller: as(""), AllSessions: all}))(t)
	}
	o := overview(false)
	want(t, "sessions", len(o.OpenSessions), 50)
	want(t, "total where all are listed", o.Totals.Sessions, 0)
	last := d.activate("s050", "R001")
	o = overview(false)
	want(t, "sessions of the overview", len(o.OpenSessions), 50)
	want(t, "the first is the last active", o.OpenSessions[0].ID, "s050")
	want(t, "their total", o.Totals.Sessions, 51)
	all := overview(true)
	want(t, "all sessions", len(all.OpenSessions), 51)
	want(t, "and no total", all.Totals.Sessions, 0)
	details := map[string]map[string]any{"the warning": last.Context.Warnings[0].Details, "the event": o.RecentActivity[0].Details}
	for what, told := range details {
		want(t, what+" names", len(told["sessions"].([]string)), 20)
		want(t, what+" counts", told["sessions_total"].(int), 50)
	}
	want(t, "the type of the event", o.RecentActivity[0].Type, record.ConflictDetected)
}
