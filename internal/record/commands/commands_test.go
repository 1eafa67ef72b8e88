package commands_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/record"
	"cairn/internal/record/commands"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestProjects(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	p := must(d.CreateProject(ctx, record.CreateProjectArgs{ID: "my-app", Name: " My App ", Description: "d"}))(t)
	if p.ID != "my-app" || p.Name != "My App" || p.Description != "d" || p.Tick != 0 || p.Created == 0 {
		t.Errorf("created %+v", p)
	}
	made := must(d.CreateProject(ctx, record.CreateProjectArgs{Name: "x"}))(t)
	if !strings.HasPrefix(made.ID, "p-") || len(made.ID) != 28 || made.ID != strings.ToLower(made.ID) {
		t.Errorf("the generated id is %q", made.ID)
	}
	for _, id := range []string{"my-app", "default", "home", "unknown"} {
		_, err := d.CreateProject(ctx, record.CreateProjectArgs{ID: id, Name: "x"})
		wantError(t, id, err, fault.Conflict, record.CodeExists)
		if hintOf(err) != "use get_project or choose another id" {
			t.Errorf("hint %q", hintOf(err))
		}
	}
	for field, a := range map[string]record.CreateProjectArgs{
		"id": {ID: "Bad Id", Name: "x"}, "name": {ID: "a", Name: " "}, "description": {ID: "a", Name: "x", Description: strings.Repeat("é", 2001)},
	} {
		_, err := d.CreateProject(ctx, a)
		wantError(t, field, err, fault.Invalid, record.CodeInvalid, `"field":"`+field+`"`)
	}
	_, err := d.CreateProject(ctx, record.CreateProjectArgs{ID: "a", Name: strings.Repeat("x", 201)})
	wantError(t, "a long name", err, fault.Invalid, record.CodeInvalid, `"name"`)

	d.create("s", "", "a")
	list := must(d.ListProjects(ctx))(t)
	wantList(t, "projects, last changed first", []string{list[0].ID, list[1].ID, list[2].ID}, "p", made.ID, "my-app")
	if list[0].OpenRecords != 1 || list[0].OpenSessions != 1 || list[0].Tick != 1 || list[2].Description != "d" {
		t.Errorf("listed %+v", list)
	}
	must(d.Create(ctx, record.CreateArgs{Caller: record.Caller{ProjectID: "my-app"}, Type: "t", Title: "t"}))(t)
	if list := must(d.ListProjects(ctx))(t); list[0].ID != "my-app" {
		t.Errorf("after a change of my-app the first is %s", list[0].ID)
	}
}

func TestTheCurrentProject(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	unknown := record.Caller{ProjectID: "nowhere"}
	_, err := d.GetProject(ctx, record.GetProjectArgs{Caller: unknown})
	wantError(t, "read of an unknown project", err, fault.NotFound, record.CodeProjectNotFound)
	_, err = d.Create(ctx, record.CreateArgs{Caller: unknown, Type: "t", Title: "t"})
	wantError(t, "write to an unknown project", err, fault.NotFound, record.CodeProjectNotFound)

	for _, c := range []record.Caller{{}, {Project: "later"}} {
		o := must(d.Overview(ctx, record.OverviewArgs{Caller: c}))(t)
		if o.Project.Tick != 0 || o.RootRecords == nil || o.OpenRecords == nil || o.LaterRecords == nil || o.OpenSessions == nil || o.RecentActivity == nil {
			t.Errorf("before the first write: %+v", o)
		}
		if p := must(d.GetProject(ctx, record.GetProjectArgs{Caller: c}))(t); p.Created == 0 || p.Tick != 0 {
			t.Errorf("a project without a row: %+v", p)
		}
	}
	if list := must(d.ListProjects(ctx))(t); len(list) != 0 {
		t.Errorf("reading made %+v", list)
	}
	must(d.Create(ctx, record.CreateArgs{Type: "t", Title: "t"}))(t)
	must(d.Create(ctx, record.CreateArgs{Caller: record.Caller{Project: "later"}, Type: "t", Title: "t"}))(t)
	for _, id := range []string{"default", "later"} {
		if p := must(d.GetProject(ctx, record.GetProjectArgs{Caller: record.Caller{ProjectID: id}}))(t); p.Tick != 1 || p.ID != id {
			t.Errorf("%s after the first write: %+v", id, p)
		}
	}
	none := commands.New(nil, record.Config{})
	if o := must(none.Overview(ctx, record.OverviewArgs{}))(t); o.Project.ID != "default" || len(o.OpenRecords) != 0 {
		t.Errorf("without a store: %+v", o)
	}
}

func TestIdsAreMatchedWithoutCaseAndLeadingZeros(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := range 7 {
		d.create("s", "", fmt.Sprint("t", n))
	}
	for _, id := range []string{"R007", "r7", "R7", "r0000000000000000000000007"} {
		want(t, id, d.get(id).ID, "R007")
	}
	for _, id := range []string{
		"", "R", "R-1", "R+1", "R1.5", "../R1", "R0", "R000", "R 1", " R1", "R1 ", "R1\x00", "R٣", "1", "RR1", "R1e3", "R0x1", "R008", "Ｒ001",
		"R" + strings.Repeat("9", 400), "R4294967297", "R9223372036854775808", "\xff",
	} {
		_, err := d.Get(t.Context(), record.GetRefArgs{Caller: as(""), ID: id})
		wantError(t, fmt.Sprintf("%.20q", id), err, fault.NotFound, record.CodeNotFound, `"missing"`)
	}
	_, err := d.Activate(t.Context(), record.ActivateArgs{Caller: as("new"), ID: "R999"})
	wantError(t, "activate", err, fault.NotFound, record.CodeNotFound)
	_, err = d.Sync(t.Context(), record.SyncArgs{Caller: as("new")})
	wantError(t, "a failed call leaves no session behind", err, fault.NotFound, record.CodeSessionNotFound)
}

func TestCreateStoresActivatesAndCostsATick(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	root := d.create("s", "", "root")
	out := must(d.Create(ctx, record.CreateArgs{
		Caller: as("s"), ParentID: ptr("r1"), Type: "note", Title: "  child\t", Summary: "", Body: "b", State: record.Later,
		Related: []string{"r1", "R001"}, Metadata: json.RawMessage(` {"b": 1.50, "a": []} `),
	}))(t)
	r := out.Record
	if !out.AutoActivated || r.ID != "R002" || *r.ParentID != root.ID || r.Title != "child" || r.State != record.Later || r.Version != 1 ||
		fmt.Sprint(r.Related) != "[R001]" || string(r.Metadata) != `{"a":[],"b":1.50}` || r.Created != r.Modified {
		t.Errorf("created %+v", out)
	}
	text, err := json.Marshal(d.get("R002"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"parent_id":"R001"`, `"state":"LATER"`, `"version":1`, `"related":["R001"]`, `"body":"b"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("as JSON %s, want %s in it", text, part)
		}
	}
	want(t, "tick", d.tick(), 2)
	wantList(t, "activity", d.types(), "session_started", "record_created", "record_created")
	d.body("s", "R002", "auto-activated, so it can be changed")
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.create("s", "", "root")
	ok := record.CreateArgs{Caller: as("s"), Type: "t", Title: "t"}
	many := make([]string, 101)
	for i := range many {
		many[i] = "R001"
	}
	for name, c := range map[string]struct {
		change func(a *record.CreateArgs)
		field  string
	}{
		"no type":           {func(a *record.CreateArgs) { a.Type = "" }, "type"},
		"a long type":       {func(a *record.CreateArgs) { a.Type = strings.Repeat("é", 65) }, "type"},
		"a type of lines":   {func(a *record.CreateArgs) { a.Type = "a\nb" }, "type"},
		"a blank title":     {func(a *record.CreateArgs) { a.Title = " \t" }, "title"},
		"a long title":      {func(a *record.CreateArgs) { a.Title = strings.Repeat("é", 201) }, "title"},
		"a title of lines":  {func(a *record.CreateArgs) { a.Title = "a\nb" }, "title"},
		"a NUL":             {func(a *record.CreateArgs) { a.Title = "a\x00b" }, "title"},
		"a long summary":    {func(a *record.CreateArgs) { a.Summary = strings.Repeat("é", 1001) }, "summary"},
		"invalid UTF-8":     {func(a *record.CreateArgs) { a.Body = "\xff" }, "body"},
		"a lone surrogate":  {func(a *record.CreateArgs) { a.Body = "\xed\xa0\x80" }, "body"},
		"a NUL in the body": {func(a *record.CreateArgs) { a.Body = "a\x00" }, "body"},
		"a body over 1 MiB": {func(a *record.CreateArgs) { a.Body = strings.Repeat("x", 1<<20+1) }, "body"},
		"an unknown state":  {func(a *record.CreateArgs) { a.State = "open" }, "state"},
		"a blank parent":    {func(a *record.CreateArgs) { a.ParentID = ptr("") }, "parent_id"},
		"101 related":       {func(a *record.CreateArgs) { a.Related = many }, "related"},
		"metadata: a list":  {func(a *record.CreateArgs) { a.Metadata = json.RawMessage(`[]`) }, "metadata"},
		"metadata: null":    {func(a *record.CreateArgs) { a.Metadata = json.RawMessage(`null`) }, "metadata"},
		"metadata: two":     {func(a *record.CreateArgs) { a.Metadata = json.RawMessage(`{} {}`) }, "metadata"},
		"metadata: torn":    {func(a *record.CreateArgs) { a.Metadata = json.RawMessage(`{`) }, "metadata"},
		"metadata: too long": {func(a *record.CreateArgs) {
			a.Metadata = json.RawMessage(`{"a":"` + strings.Repeat("x", 64<<10) + `"}`)
		}, "metadata"},
		"a session of lines": {func(a *record.CreateArgs) { a.SessionID = "a\nb" }, "session_id"},
	} {
		a := ok
		c.change(&a)
		_, err := d.Create(ctx, a)
		wantError(t, name, err, fault.Invalid, record.CodeInvalid, `"field":"`+c.field+`"`)
	}
	a := ok
	a.Related = []string{"R001", "R404", "x"}
	_, err := d.Create(ctx, a)
	wantError(t, "unknown related", err, fault.NotFound, record.CodeNotFound, `"missing":["R404","x"]`)
	a = ok
	a.ParentID = ptr("R404")
	_, err = d.Create(ctx, a)
	wantError(t, "unknown parent", err, fault.NotFound, record.CodeNotFound)
	a.ParentID, a.SessionID = ptr("r1"), "other"
	_, err = d.Create(ctx, a)
	wantError(t, "a parent that is not active", err, fault.Conflict, record.CodeParentNotActivated, `"R001"`)
	want(t, "nothing was stored: tick", d.tick(), 1)
	want(t, "and no session is left: open sessions", must(d.ListProjects(ctx))(t)[0].OpenSessions, 1)

	a = ok
	a.Body, a.Title, a.Summary, a.Type = strings.Repeat("x", 1<<20), strings.Repeat("é", 200), strings.Repeat("é", 1000), strings.Repeat("é", 64)
	must(d.Create(ctx, a))(t)
}

func TestTheTreeIsAtMostSoDeep(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	parent := ""
	for range 32 {
		parent = d.create("s", parent, "t").ID
	}
	_, err := d.Create(t.Context(), record.CreateArgs{Caller: as("s"), ParentID: &parent, Type: "t", Title: "t"})
	wantError(t, "33 levels", err, fault.Invalid, record.CodeDepth, `"max_depth":32`)
	flat := commands.New(d.store, record.Config{MaxDepth: 1})
	_, err = flat.Create(t.Context(), record.CreateArgs{Caller: as("s"), ParentID: ptr("R001"), Type: "t", Title: "t"})
	wantError(t, "max_depth is a setting", err, fault.Invalid, record.CodeDepth, `"max_depth":1`)
}

func TestSecretsAreTakenOutBeforeAnythingIsStored(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	d.create("s", "", "root")
	must(d.Create(ctx, record.CreateArgs{
		Caller: as("s"), Type: "t " + secret, Title: "title " + secret, Summary: secret, Body: "x " + secret,
		Metadata: json.RawMessage(`{"k": ["` + secret + `"]}`),
	}))(t)
	must(d.Update(ctx, record.UpdateArgs{Caller: as("s"), ID: "R002", Title: ptr("t " + secret), Metadata: json.RawMessage(`{"m":"` + secret + `"}`)}))(t)
	d.move("s", "R002", record.Later, "because of "+secret)
	must(d.Save(ctx, record.SaveArgs{Caller: as("s"), Summary: "saved " + secret}))(t)
	if _, err := d.CreateProject(ctx, record.CreateProjectArgs{Name: "n " + secret, Description: secret}); err != nil {
		t.Error(err)
	}
	for _, c := range storetest.Changes(t, d.store) {
		if strings.Contains(string(c.Doc), secret) {
			t.Errorf("change %d holds the secret: %s", c.Seq, c.Doc)
		}
	}
	if rows := rowsOf(t, d.store); strings.Contains(rows, secret) {
		t.Errorf("the rows hold the secret: %s", rows)
	}
	if r := d.get("R002"); !strings.Contains(r.Body, "[REDACTED]") || !strings.Contains(string(r.Metadata), "because of") {
		t.Errorf("%+v", r)
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.create("s", "", "a")
	d.create("s", "", "b")
	before := d.get("R001")
	out := must(d.Update(ctx, record.UpdateArgs{
		Caller: as("s"), ID: "r1", Title: ptr(" A "), Related: []string{"R002", "r2"}, Metadata: json.RawMessage(`{"k":1}`),
	}))(t)
	r := out.Record
	if out.Conflict != nil || r.Title != "A" || r.Body != before.Body || r.Version != 2 || fmt.Sprint(r.Related) != "[R002]" ||
		string(r.Metadata) != `{"k":1}` || r.Modified <= before.Modified || r.Created != before.Created {
		t.Errorf("updated %+v", out)
	}
	tick := d.tick()
	same := must(d.Update(ctx, record.UpdateArgs{Caller: as("s"), ID: "R001", Title: ptr("A"), Metadata: json.RawMessage(`{ "k" : 1 }`)}))(t)
	want(t, "an update that changes nothing: version", same.Record.Version, 2)
	want(t, "and tick", d.tick(), tick)
	must(d.Update(ctx, record.UpdateArgs{Caller: as("s"), ID: "R001", Related: []string{}, Metadata: json.RawMessage(`{}`)}))(t)
	if r := d.get("R001"); r.Related != nil || r.Metadata != nil {
		t.Errorf("emptied %+v", r)
	}

	_, err := d.Update(ctx, record.UpdateArgs{Caller: as("s"), ID: "R001"})
	wantError(t, "no field", err, fault.Invalid, record.CodeInvalid, `"field"`)
	_, err = d.Update(ctx, record.UpdateArgs{Caller: as("s"), ID: "R001", Title: ptr("")})
	wantError(t, "a blank title", err, fault.Invalid, record.CodeInvalid, `"title"`)
	_, err = d.Update(ctx, record.UpdateArgs{Caller: as("s"), ID: "R001", Related: []string{"R001"}})
	wantError(t, "related to itself", err, fault.Invalid, record.CodeInvalid, `"related"`)
	_, err = d.Update(ctx, record.UpdateArgs{Caller: as("s"), ID: "R404", Title: ptr("x")})
	wantError(t, "an unknown record", err, fault.NotFound, record.CodeNotFound)
	_, err = d.Update(ctx, record.UpdateArgs{Caller: as("stranger"), ID: "R001", Title: ptr("x")})
	wantError(t, "not activated", err, fault.Conflict, record.CodeNotActivated, `"R001"`)
	if !strings.Contains(hintOf(err), "activate") || !strings.Contains(hintOf(err), "R001") {
		t.Errorf("hint %q", hintOf(err))
	}
	d.close("s")
	_, err = d.Update(ctx, record.UpdateArgs{Caller: as("s"), ID: "R001", Title: ptr("x")})
	wantError(t, "a closed session", err, fault.Conflict, record.CodeNotActivated)
}

func TestConflictIsShownAndNothingIsLost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.create("s1", "", "a")
	d.body("s1", "R001", "1\n2\n3\n4\n5\n")
	d.activate("s2", "R001")
	d.body("s1", "R001", "one\n2\n3\n4\n5\n")
	tick := d.tick()

	same := d.body("s2", "R001", "one\n2\n3\n4\n5\n")
	if same.Conflict != nil || same.Record.Version != 3 {
		t.Errorf("what another session stored already: %+v", same)
	}
	out := d.body("s2", "R001", "1\n2\n3\n4\nfive\n")
	c := out.Conflict
	if c == nil || out.Record.Version != 3 || c.OtherVersion.Body != "one\n2\n3\n4\n5\n" || c.YourVersion.Body != "1\n2\n3\n4\nfive\n" ||
		c.BaseVersion != 2 || c.MergedBody == nil || *c.MergedBody != "one\n2\n3\n4\nfive\n" || !strings.Contains(c.Message, "s1") {
		t.Fatalf("conflict %+v", out)
	}
	want(t, "nothing was written: tick", d.tick(), tick)
	if out := d.body("s2", "R001", "uno\n2\n3\n4\n5\n"); out.Conflict == nil || out.Conflict.MergedBody != nil {
		t.Errorf("both changed one line: %+v", out.Conflict)
	}
	title := must(d.Update(ctx, record.UpdateArgs{Caller: as("s2"), ID: "R001", Title: ptr("new")}))(t)
	if title.Conflict == nil || title.Conflict.MergedBody != nil {
		t.Errorf("no body was given: %+v", title.Conflict)
	}
	d.sync("s2")
	if out := d.body("s2", "R001", "x"); out.Conflict == nil {
		t.Error("a sync has moved the base version")
	}
	forced := must(d.Update(ctx, record.UpdateArgs{Caller: as("s2"), ID: "R001", Body: c.MergedBody, Force: true}))(t)
	if forced.Conflict != nil || forced.Record.Version != 4 || forced.Record.Body != *c.MergedBody {
		t.Errorf("forced %+v", forced)
	}
	if out := d.body("s2", "R001", "next"); out.Conflict != nil {
		t.Error("an own update has not moved the base version")
	}
	if out := d.body("s1", "R001", "late"); out.Conflict == nil {
		t.Error("the other session has not seen versions 4 and 5")
	}
	again := must(d.Update(ctx, record.UpdateArgs{Caller: as("s2"), ID: "R001", Body: ptr("no conflict"), Force: true}))(t)
	want(t, "force without a conflict: version", again.Record.Version, 6)
	var versions []int
	for _, h := range must(d.History(ctx, record.HistoryArgs{Caller: as(""), ID: "R001"}))(t) {
		versions = append(versions, h.Version)
	}
	wantList(t, "what was overridden stays in the history", versions, 6, 5, 4, 3, 2, 1)
	types := strings.Join(d.types(), " ")
	want(t, "conflicts detected", strings.Count(types, "conflict_detected"), 1+5)
	want(t, "conflicts resolved", strings.Count(types, "conflict_resolved"), 1)
}

func TestAllPairsOfStates(t *testing.T) {
	t.Parallel()
	valid := map[string]bool{
		"OPEN LATER": true, "OPEN RESOLVED": true, "OPEN DISCARDED": true, "LATER OPEN": true, "LATER DISCARDED": true,
		"RESOLVED OPEN": true, "DISCARDED OPEN": true,
	}
	d := newDesk(t)
	ctx := t.Context()
	d.create("s", "", "root")
	for _, from := range allStates() {
		for _, to := range allStates() {
			made := must(d.Create(ctx, record.CreateArgs{Caller: as("s"), Type: "t", Title: "t", State: from}))(t).Record
			a := record.TransitionArgs{Caller: as("s"), ID: made.ID, ToState: to, Reason: "why", ResolvedBy: "r1"}
			pair := fmt.Sprint(from, " ", to)
			out, err := d.Transition(ctx, a)
			if !valid[pair] {
				wantError(t, pair, err, fault.Conflict, record.CodeInvalidTransition, fmt.Sprintf(`"from":%q`, from), fmt.Sprintf(`"to":%q`, to), `"allowed":[`)
				want(t, pair+": version", d.get(made.ID).Version, 1)
				continue
			}
			if err != nil || out.Record.State != to || out.Record.Version != 2 {
				t.Errorf("%s: %+v, %v", pair, out, err)
			}
			wantReason, wantBy := "why", ""
			if to == record.Resolved {
				wantBy = "R001"
			}
			if to == record.Open {
				wantReason = ""
			}
			if hasReason := strings.Contains(string(out.Record.Metadata), `"state_reason":"why"`); hasReason != (wantReason != "") {
				t.Errorf("%s: metadata %s", pair, out.Record.Metadata)
			}
			want(t, pair+": resolved_by", out.Record.ResolvedBy, wantBy)
		}
	}
}

func TestTransitionRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.create("s", "", "a")
	d.create("s", "", "b")
	for field, a := range map[string]record.TransitionArgs{
		"to_state":    {ToState: "DONE"},
		"reason":      {ToState: record.Later, Reason: " "},
		"resolved_by": {ToState: record.Resolved},
	} {
		a.Caller, a.ID = as("s"), "R001"
		_, err := d.Transition(ctx, a)
		wantError(t, field, err, fault.Invalid, record.CodeInvalid, `"field":"`+field+`"`)
	}
	a := record.TransitionArgs{Caller: as("s"), ID: "R001", ToState: record.Discarded}
	_, err := d.Transition(ctx, a)
	wantError(t, "DISCARDED without a reason", err, fault.Invalid, record.CodeInvalid, `"reason"`)
	a.Reason = strings.Repeat("é", 1001)
	_, err = d.Transition(ctx, a)
	wantError(t, "a long reason", err, fault.Invalid, record.CodeInvalid, `"reason"`)
	a = record.TransitionArgs{Caller: as("s"), ID: "R001", ToState: record.Resolved, ResolvedBy: "R404"}
	_, err = d.Transition(ctx, a)
	wantError(t, "resolved by nothing", err, fault.NotFound, record.CodeNotFound, "R404")
	a.ResolvedBy = "r1"
	_, err = d.Transition(ctx, a)
	wantError(t, "resolved by itself", err, fault.Invalid, record.CodeInvalid, `"resolved_by"`)
	a.SessionID, a.ResolvedBy = "stranger", "R002"
	_, err = d.Transition(ctx, a)
	wantError(t, "not activated", err, fault.Conflict, record.CodeNotActivated)
	want(t, "tick", d.tick(), 2)

	d.activate("other", "R001")
	d.move("s", "R001", record.Later, "no time")
	a = record.TransitionArgs{Caller: as("other"), ID: "R001", ToState: record.Discarded, Reason: "x"}
	_, err = d.Transition(ctx, a)
	wantError(t, "another session changed the state", err, fault.Conflict, record.CodeConflict, `"from_state":"LATER"`, `"by_session":"s"`)
	d.activate("other", "R001")
	d.move("other", "R001", record.Discarded, "x")
}

func TestTransitionMovesTheBaseVersionOnlyFromTheNewest(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "a")
	d.activate("s2", "R001")
	d.move("s1", "R001", record.Later, "x")
	if out := d.body("s1", "R001", "after the own transition"); out.Conflict != nil {
		t.Error("the own transition has not moved the base version")
	}
	d.create("s1", "", "b")
	d.activate("s2", "R002")
	d.body("s2", "R002", "by s2")
	d.move("s1", "R002", record.Later, "x") // s1 has not loaded version 2
	if out := d.body("s1", "R002", "by s1"); out.Conflict == nil || out.Conflict.BaseVersion != 1 {
		t.Error("a transition of a version that was not loaded has moved the base version")
	}
}

func TestLeavingOpenReportsOpenChildren(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s", "", "root")
	d.create("s", "R001", "open")
	d.create("s", "R001", "later")
	d.create("s", "R002", "grandchild")
	d.move("s", "R003", record.Later, "x")
	out := d.move("s", "R001", record.Later, "x")
	if w := out.CascadeWarning; w == nil || fmt.Sprint(idsOf(w.OpenChildren)) != "[R002]" || w.Message != "1 child of R001 is still OPEN; it stays so" {
		t.Errorf("cascade warning %+v", w)
	}
	want(t, "the child stays", d.get("R002").State, record.Open)
	if out := d.move("s", "R001", record.Open, ""); out.CascadeWarning != nil || strings.Contains(string(out.Record.Metadata), "state_reason") {
		t.Errorf("reopened %+v", out)
	}
	if out := d.move("s", "R004", record.Discarded, "x"); out.CascadeWarning != nil {
		t.Errorf("without children %+v", out.CascadeWarning)
	}
	must(d.Update(t.Context(), record.UpdateArgs{Caller: as("s"), ID: "R003", Metadata: json.RawMessage(`{"k":1,"state_reason":"mine"}`)}))(t)
	want(t, "metadata replaces all but the reason", string(d.get("R003").Metadata), `{"k":1,"state_reason":"x"}`)
}

func TestStorageThatIsClosedIsUnavailable(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s", "", "a")
	s := storetest.Open(t, store.Config{Path: d.store.Path(), ReadOnly: true})
	b := commands.New(s, record.Config{})
	_, err := b.Create(t.Context(), record.CreateArgs{Caller: as("s"), Type: "t", Title: "t"})
	wantError(t, "a store for reading", err, fault.Unavailable, record.CodeUnavailable, `"cause":"store_read_only"`)
}
