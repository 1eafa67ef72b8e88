package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// kept is a record in tool results, with the fields that these tests check.
type kept struct {
	ID, Type, Title, Summary, Body, State string
	ParentID                              *string `json:"parent_id"`
	ResolvedBy                            string  `json:"resolved_by"`
	Version                               int
}

// activated is the result of activate.
type activated struct {
	SessionID     string `json:"session_id"`
	AlreadyLoaded bool   `json:"already_loaded"`
	Conflict      *struct {
		SessionID string `json:"session_id"`
		Message   string
	}
	Context struct {
		Target   kept
		Parent   *kept
		Children struct{ Open, Other []kept }
		Warnings []struct{ Type string }
	}
}

// updated is the result of update_record.
type updated struct {
	Record   kept
	Conflict *struct {
		Message      string
		OtherVersion kept   `json:"other_version"`
		YourVersion  kept   `json:"your_version"`
		BaseVersion  int    `json:"base_version"`
		MergedBody   string `json:"merged_body"`
	}
}

// synced is the result of sync_session.
type synced struct {
	ProjectTick int `json:"project_tick"`
	TickGap     int `json:"tick_gap"`
	Warning     string
	Changes     []struct {
		RecordID   string `json:"record_id"`
		ChangeType string `json:"change_type"`
		NewValue   any    `json:"new_value"`
		BySession  string `json:"by_session"`
	}
}

// asked calls a tool and returns its result as T.
func asked[T any](c *client, tool string, args fields) (v T) {
	c.t.Helper()
	text, isError, err := c.answer(tool, args)
	if err == nil && !isError {
		err = json.Unmarshal([]byte(text), &v)
	}
	if err != nil || isError {
		c.t.Fatalf("%s %v: %s, %v", tool, args, text, err)
	}
	return v
}

// created creates a record and returns it.
func (c *client) created(args fields) kept {
	c.t.Helper()
	all := fields{"type": "question", "summary": "", "body": ""}
	for k, v := range args {
		all[k] = v
	}
	return asked[struct{ Record kept }](c, "create_record", all).Record
}

// envelope is an error of a record tool.
type envelope struct {
	Error struct {
		Code, Message string
		Details       map[string]any
		RecoveryHint  string `json:"recovery_hint"`
	}
}

// fails expects an error with a code and returns the error.
func (c *client) fails(tool string, args any, code string) envelope {
	c.t.Helper()
	text, isError, err := c.answer(tool, args)
	var e envelope
	if err == nil {
		err = json.Unmarshal([]byte(text), &e)
	}
	if err != nil || !isError || e.Error.Code != code || e.Error.Message == "" || e.Error.RecoveryHint == "" || e.Error.Details == nil {
		c.t.Errorf("%s %v: %s (error: %v), %v; want %s", tool, args, text, isError, err, code)
	}
	return e
}

func TestExistingWorkIsContinued(t *testing.T) { // the seed's pattern 1
	t.Parallel()
	h := newHome(t)
	first := h.connect("", nil)
	top := first.created(fields{"parent_id": nil, "title": "Where do refunds expire?", "body": "Nobody knows."})
	open := first.created(fields{"parent_id": top.ID, "title": "In the ledger?", "body": "Look at ledger.go."})
	asked[fields](first, "close_session", nil)
	first.leave()

	c := h.connect("", nil)
	overview := asked[struct {
		Project      struct{ Tick int }
		OpenSessions []any  `json:"open_sessions"`
		RootRecords  []kept `json:"root_records"`
		OpenRecords  []kept `json:"open_records"`
	}](c, "get_project_overview", nil)
	if overview.Project.Tick != 2 || len(overview.OpenSessions) != 0 || len(overview.RootRecords) != 1 || len(overview.OpenRecords) != 2 {
		t.Fatalf("overview: %+v", overview)
	}
	got := asked[activated](c, "activate", fields{"id": strings.ToLower(overview.RootRecords[0].ID)})
	if got.Context.Target.Body != "Nobody knows." || got.Context.Parent != nil || len(got.Context.Children.Open) != 1 ||
		got.Context.Children.Open[0].Body != "Look at ledger.go." || got.Conflict != nil || got.AlreadyLoaded || !strings.HasPrefix(got.SessionID, "S-") {
		t.Errorf("activated: %+v", got)
	}
	if u := asked[updated](c, "update_record", fields{"id": top.ID, "body": "After 30 days."}); u.Record.Version != 2 || u.Conflict != nil || u.Record.Title != top.Title {
		t.Errorf("updated: %+v", u)
	}
	answer := c.created(fields{"parent_id": top.ID, "type": "conclusion", "title": "In 30 days"})
	asked[activated](c, "activate", fields{"id": open.ID})
	moved := asked[struct {
		Record kept
	}](c, "transition", fields{"id": open.ID, "to_state": "RESOLVED", "resolved_by": answer.ID})
	if moved.Record.State != "RESOLVED" || moved.Record.ResolvedBy != answer.ID {
		t.Errorf("moved: %+v", moved)
	}
	saved := asked[struct {
		Success      bool
		SavedRecords []string `json:"saved_records"`
	}](c, "save_session", fields{"summary": "decided"})
	if !saved.Success || !slices.Equal(saved.SavedRecords, []string{top.ID, answer.ID, open.ID}) {
		t.Errorf("saved: %+v", saved)
	}
	closed := asked[struct {
		DeactivatedRecords []string `json:"deactivated_records"`
		UnsavedWarning     string   `json:"unsaved_warning"`
	}](c, "close_session", nil)
	if len(closed.DeactivatedRecords) != 3 || closed.UnsavedWarning != "" {
		t.Errorf("closed: %+v", closed)
	}
	h.check()
}

func TestANewTopicIsStarted(t *testing.T) { // the seed's pattern 2
	t.Parallel()
	h := newHome(t)
	c := h.connect("", nil)
	if found := asked[struct{ Total int }](c, "search_records", fields{"query": "refunds"}); found.Total != 0 {
		t.Errorf("found before: %+v", found)
	}
	top := c.created(fields{"title": "Where do refunds expire?", "state": "OPEN", "metadata": fields{"asked_by": "ada"}})
	if top.ID != "R001" || top.ParentID != nil || top.State != "OPEN" || top.Version != 1 {
		t.Errorf("created: %+v", top)
	}
	below := c.created(fields{"parent_id": "r1", "title": "Who owns the ledger?", "related": []string{"R1"}})
	if below.ID != "R002" || below.ParentID == nil || *below.ParentID != "R001" {
		t.Errorf("created below: %+v", below)
	}
	for depth, want := range map[any]int{-1: 1, 0: 1, 1: 1, 1e30: 1} {
		if got := asked[[]kept](c, "list_records", fields{"parent_id": "R1", "depth": depth}); len(got) != want {
			t.Errorf("depth %v: %+v", depth, got)
		}
	}
	if found := asked[struct{ Total int }](c, "search_records", fields{"query": "refunds"}); found.Total != 1 {
		t.Errorf("found: %+v", found)
	}
	asked[fields](c, "save_session", nil)
	asked[fields](c, "close_session", nil)
	h.check()
}

func TestASubtopicIsWorkedOnInANewChat(t *testing.T) { // the seed's pattern 3
	t.Parallel()
	h := newHome(t)
	one, two := h.connect("", nil), h.connect("2025-11-25", nil)
	top := one.created(fields{"title": "Where do refunds expire?", "body": "All of it."})
	sub := one.created(fields{"parent_id": top.ID, "title": "Subtopic"})
	got := asked[activated](two, "activate", fields{"id": sub.ID})
	if got.Context.Parent == nil || got.Context.Parent.Body != "All of it." || got.Conflict == nil || len(got.Context.Warnings) != 1 {
		t.Errorf("activated: %+v", got)
	}
	answer := two.created(fields{"title": "The answer"})
	asked[fields](two, "transition", fields{"id": sub.ID, "to_state": "RESOLVED", "resolved_by": answer.ID})
	asked[fields](two, "close_session", nil)
	s := asked[synced](one, "sync_session", nil)
	if s.TickGap != 2 || len(s.Changes) != 2 || s.Changes[1].RecordID != sub.ID || s.Changes[1].ChangeType != "state_changed" ||
		s.Changes[1].BySession != got.SessionID || s.Warning != "2 writes occurred since your last sync" {
		t.Errorf("synced: %+v", s)
	}
	if again := asked[synced](one, "sync_session", nil); again.TickGap != 0 || len(again.Changes) != 0 || again.Warning != "" {
		t.Errorf("synced again: %+v", again)
	}
	h.check()
}

func TestAConflictIsShownAndResolved(t *testing.T) { // the seed's pattern 4
	t.Parallel()
	h := newHome(t)
	one, two := h.connect("", nil), h.connect("", nil)
	r := one.created(fields{"title": "Where do refunds expire?", "body": "a\nb\nc\nd\n"})
	if got := asked[activated](two, "activate", fields{"id": r.ID}); got.Conflict == nil {
		t.Errorf("activated without a conflict: %+v", got)
	}
	if got := asked[activated](two, "activate", fields{"id": r.ID, "override": true}); got.Conflict != nil || !got.AlreadyLoaded {
		t.Errorf("activated over it: %+v", got)
	}
	asked[updated](one, "update_record", fields{"id": r.ID, "body": "version A\nb\nc\nd\n"})
	u := asked[updated](two, "update_record", fields{"id": r.ID, "body": "a\nb\nc\nversion B\n"})
	if u.Conflict == nil || u.Record.Body != "version A\nb\nc\nd\n" || u.Conflict.OtherVersion.Version != 2 || u.Conflict.BaseVersion != 1 ||
		u.Conflict.YourVersion.Body != "a\nb\nc\nversion B\n" || u.Conflict.MergedBody != "version A\nb\nc\nversion B\n" {
		t.Fatalf("conflict: %+v", u)
	}
	u = asked[updated](two, "update_record", fields{"id": r.ID, "body": u.Conflict.MergedBody, "force": true})
	if u.Conflict != nil || u.Record.Version != 3 {
		t.Errorf("forced: %+v", u)
	}
	types := []string{}
	for _, a := range asked[[]struct{ Type string }](one, "get_recent_activity", fields{"types": []string{"conflict_detected", "conflict_resolved"}}) {
		types = append(types, a.Type)
	}
	if !slices.Contains(types, "conflict_detected") || types[0] != "conflict_resolved" {
		t.Errorf("activity: %v", types)
	}
	history := asked[[]struct{ Diff string }](one, "get_record_history", fields{"id": r.ID})
	if len(history) != 3 || !strings.Contains(history[1].Diff, "+version A") {
		t.Errorf("history: %+v", history)
	}
	h.check()
}

// TestWrongArgumentsAreExplainedInTheEnvelope checks every record tool's required and typed
// arguments.
func TestWrongArgumentsAreExplainedInTheEnvelope(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	for _, revision := range revisions() {
		c := h.dialTo(h.command("serve", "--toolsets", "observations,records"), revision, nil)
		t.Cleanup(c.leave)
		listed, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range listed.Tools {
			var schema struct {
				Properties map[string]struct{ Type string }
				Required   []string
			}
			data, err := json.Marshal(tool.InputSchema)
			if err == nil {
				err = json.Unmarshal(data, &schema)
			}
			if err != nil {
				t.Fatal(err)
			}
			if tool.Name == "recall" || slices.Contains(observationTools(), tool.Name) || isOfMail(schema.Properties) {
				continue
			}
			for name, p := range schema.Properties {
				wrong := any(fields{"never": "of this type"})
				if p.Type == "object" {
					wrong = []int{1}
				}
				e := c.fails(tool.Name, fields{name: wrong}.with(schema.Required, name), "INVALID_ARGUMENT")
				if e.Error.Details["field"] != name {
					t.Errorf("%s: wrong %s: %+v", tool.Name, name, e)
				}
			}
			if len(schema.Required) > 0 {
				e := c.fails(tool.Name, nil, "INVALID_ARGUMENT")
				if !slices.Contains(schema.Required, fmt.Sprint(e.Error.Details["field"])) {
					t.Errorf("%s: nothing given: %+v", tool.Name, e)
				}
			}
		}
	}
}

func observationTools() []string {
	return []string{"search", "get_observations", "timeline", "recent_context", "session_trace", "file_history"}
}

// isOfMail reports whether a tool with these arguments is a mail tool. Mail tools have
// their own project argument and their own codes.
func isOfMail(properties map[string]struct{ Type string }) bool {
	return slices.ContainsFunc([]string{"project_key", "human_key", "code_repo_path"}, func(name string) bool {
		_, ok := properties[name]
		return ok
	})
}

// with sets a text in f for each name except but, and returns f.
func (f fields) with(names []string, but string) fields {
	for _, name := range names {
		if name != but {
			f[name] = "x"
		}
	}
	return f
}

func TestBadInputOfRecordsStoresNothing(t *testing.T) { // records §6
	t.Parallel()
	h := newHome(t)
	c := h.connect("", nil)
	r := c.created(fields{"title": "A", "body": "b"})
	other := h.connect("", nil)
	long := strings.Repeat("x", 201)
	for _, bad := range []struct {
		tool  string
		args  fields
		code  string
		field string
	}{
		{"create_project", fields{"name": ""}, "INVALID_ARGUMENT", "name"},
		{"create_project", fields{"name": "x", "id": "Upper"}, "INVALID_ARGUMENT", "id"},
		{"create_project", fields{"name": "x", "id": "default"}, "ALREADY_EXISTS", ""},
		{"create_project", fields{"name": "x", "id": "shop"}, "ALREADY_EXISTS", ""},
		{"get_project", fields{"id": "nowhere"}, "PROJECT_NOT_FOUND", ""},
		{"get_project_overview", fields{"project_id": "nowhere"}, "PROJECT_NOT_FOUND", ""},
		{"create_record", fields{"project_id": "nowhere", "type": "q", "title": "t", "summary": "", "body": ""}, "PROJECT_NOT_FOUND", ""},
		{"search_records", fields{"query": "  "}, "INVALID_ARGUMENT", "query"},
		{"search_records", fields{"query": "a", "states": []string{"open?"}}, "INVALID_ARGUMENT", "states"},
		{"search_records", fields{"query": "a", "parent_id": "R9"}, "RECORD_NOT_FOUND", ""},
		{"list_records", fields{"parent_id": "R9"}, "RECORD_NOT_FOUND", ""},
		{"get_record_ref", fields{"id": "R9"}, "RECORD_NOT_FOUND", ""},
		{"get_record_ref", fields{"id": "R"}, "RECORD_NOT_FOUND", ""},
		{"get_record_ref", fields{"id": "../R1"}, "RECORD_NOT_FOUND", ""},
		{"get_record_ref", fields{"id": "R" + strings.Repeat("9", 400)}, "RECORD_NOT_FOUND", ""},
		{"activate", fields{"id": "R-1"}, "RECORD_NOT_FOUND", ""},
		{"activate", fields{"id": "R1.5"}, "RECORD_NOT_FOUND", ""},
		{"create_record", fields{"parent_id": "", "type": "q", "title": "t", "summary": "", "body": ""}, "INVALID_ARGUMENT", "parent_id"},
		{"create_record", fields{"parent_id": "R9", "type": "q", "title": "t", "summary": "", "body": ""}, "RECORD_NOT_FOUND", ""},
		{"create_record", fields{"type": "", "title": "t", "summary": "", "body": ""}, "INVALID_ARGUMENT", "type"},
		{"create_record", fields{"type": "q", "title": long, "summary": "", "body": ""}, "INVALID_ARGUMENT", "title"},
		{"create_record", fields{"type": "q", "title": "t", "summary": "", "body": "a\x00b"}, "INVALID_ARGUMENT", "body"},
		{"create_record", fields{"type": "q", "title": "t", "summary": "", "body": "", "state": "open?"}, "INVALID_ARGUMENT", "state"},
		{"create_record", fields{"type": "q", "title": "t", "summary": "", "body": "", "related": []string{"R9"}}, "RECORD_NOT_FOUND", ""},
		{"create_record", fields{"type": "q", "title": "t", "summary": strings.Repeat("x", 1001), "body": ""}, "INVALID_ARGUMENT", "summary"},
		{"update_record", fields{"id": r.ID}, "INVALID_ARGUMENT", ""},
		{"update_record", fields{"id": r.ID, "title": "two\nlines"}, "INVALID_ARGUMENT", "title"},
		{"update_record", fields{"id": r.ID, "related": []string{r.ID}}, "INVALID_ARGUMENT", "related"},
		{"transition", fields{"id": r.ID, "to_state": "LATER"}, "INVALID_ARGUMENT", "reason"},
		{"transition", fields{"id": r.ID, "to_state": "RESOLVED"}, "INVALID_ARGUMENT", "resolved_by"},
		{"transition", fields{"id": r.ID, "to_state": "RESOLVED", "resolved_by": "R9"}, "RECORD_NOT_FOUND", ""},
		{"transition", fields{"id": r.ID, "to_state": "gone"}, "INVALID_ARGUMENT", "to_state"},
		{"transition", fields{"id": r.ID, "to_state": "OPEN"}, "INVALID_TRANSITION", ""},
		{"get_record_diff", fields{"id": r.ID, "from": "v9"}, "INVALID_ARGUMENT", "from"},
		{"get_record_diff", fields{"id": r.ID, "from": "yesterday"}, "INVALID_ARGUMENT", "from"},
		{"get_record_diff", fields{"id": r.ID, "from": "last_save"}, "INVALID_ARGUMENT", "from"},
		{"get_record_history", fields{"id": r.ID, "since": "yesterday"}, "INVALID_ARGUMENT", "since"},
		{"get_recent_activity", fields{"types": []string{"dream"}}, "INVALID_ARGUMENT", "types"},
		{"get_active_sessions", fields{"record_id": "R9"}, "RECORD_NOT_FOUND", ""},
		{"list_records", fields{"at": "tick:99"}, "INVALID_ARGUMENT", "at"},
		{"sync_session", fields{"session_id": "nobody"}, "SESSION_NOT_FOUND", ""},
		{"save_session", fields{"session_id": "nobody"}, "SESSION_NOT_FOUND", ""},
		{"close_session", fields{"session_id": "nobody"}, "SESSION_NOT_FOUND", ""},
	} {
		e := c.fails(bad.tool, bad.args, bad.code)
		if bad.field != "" && e.Error.Details["field"] != bad.field {
			t.Errorf("%s %v: %+v; want the field %s", bad.tool, bad.args, e, bad.field)
		}
	}
	other.fails("update_record", fields{"id": r.ID, "title": "B"}, "NOT_ACTIVATED")
	other.fails("transition", fields{"id": r.ID, "to_state": "DISCARDED", "reason": "x"}, "NOT_ACTIVATED")
	other.fails("create_record", fields{"parent_id": r.ID, "type": "q", "title": "t", "summary": "", "body": ""}, "PARENT_NOT_ACTIVATED")
	other.fails("save_session", nil, "SESSION_NOT_FOUND")
	if tick := asked[struct{ Tick int }](c, "get_project", nil).Tick; tick != 1 {
		t.Errorf("the tick is %d", tick)
	}
	if n := len(asked[[]any](c, "get_recent_activity", nil)); n > 3 {
		t.Errorf("%d events", n)
	}
	h.check()
}

func TestLoneSurrogatesAreRefused(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := h.connect("", nil)
	for _, field := range []string{"body", "title", "metadata"} {
		args := map[string]json.RawMessage{
			"type": json.RawMessage(`"q"`), "title": json.RawMessage(`"t"`), "summary": json.RawMessage(`""`), "body": json.RawMessage(`""`),
		}
		args[field] = json.RawMessage(`"half \ud800 pair"`)
		if field == "metadata" {
			args[field] = json.RawMessage(`{"k":"\udc00"}`)
		}
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		if e := c.fails("create_record", json.RawMessage(raw), "INVALID_ARGUMENT"); e.Error.Details["field"] != field {
			t.Errorf("%s: %+v", field, e)
		}
	}
}

func TestUnknownArgumentsAreIgnoredAndNamed(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	c := h.connect("", nil)
	for tool, isError := range map[string]bool{"list_projects": false, "get_record_ref": true} {
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: fields{"zeta": 1, "alpha": nil, "id": "R9"}})
		want := `["alpha","id","zeta"]`
		if isError {
			want = `["alpha","zeta"]`
		}
		if err != nil || r.IsError != isError {
			t.Fatalf("%s: %+v, %v", tool, r, err)
		}
		if got, err := json.Marshal(r.Meta["cairn/ignored"]); err != nil || string(got) != want {
			t.Errorf("%s: ignored %s, %v; want %s", tool, got, err, want)
		}
	}
}

// TestTheSessionOfTheAgentThatStartedTheServerIsUsed records a hook with this process as
// the agent. This process starts the servers too.
func TestTheSessionOfTheAgentThatStartedTheServerIsUsed(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	early := h.connect("", nil)
	r := early.created(fields{"title": "before any hook"})
	own := asked[activated](early, "activate", fields{"id": r.ID})
	if !strings.HasPrefix(own.SessionID, "S-") || !own.AlreadyLoaded {
		t.Errorf("without a hook: %+v", own)
	}
	h.recorded(h.payload("SessionStart", fields{"source": "startup", "session_id": "agent-1"}))
	for _, c := range []*client{early, h.connect("", nil)} {
		if got := asked[activated](c, "activate", fields{"id": r.ID, "override": true}); got.SessionID != "agent-1" {
			t.Errorf("with a hook: %s", got.SessionID)
		}
		if got := asked[activated](c, "activate", fields{"id": r.ID, "session_id": "mine", "override": true}); got.SessionID != "mine" {
			t.Errorf("explicit: %s", got.SessionID)
		}
	}
}

func TestTheEndOfTheStreamClosesNothing(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	one := h.connect("", nil)
	r := one.created(fields{"title": "kept"})
	one.leave()
	holders := asked[[]struct {
		SessionID string `json:"session_id"`
		IsCurrent bool   `json:"is_current"`
	}](h.connect("", nil), "get_active_sessions", fields{"record_id": r.ID})
	if len(holders) != 1 || holders[0].IsCurrent {
		t.Errorf("holders: %+v", holders)
	}
}

func TestTheProjectIsExplicitThenConfiguredThenHere(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.connect("", nil).created(fields{"title": "here"})
	h.vars["CAIRN_PROJECT"] = "design"
	c := h.connect("", nil)
	if p := asked[struct {
		ID   string
		Tick int
	}](c, "get_project", nil); p.ID != "design" || p.Tick != 0 {
		t.Errorf("before its first write: %+v", p)
	}
	h.wantRows(`SELECT id FROM projects`, "shop")
	if r := c.created(fields{"title": "there"}); r.ID != "R001" {
		t.Errorf("created: %+v", r)
	}
	if r := c.created(fields{"title": "here again", "project_id": "shop"}); r.ID != "R002" {
		t.Errorf("explicit: %+v", r)
	}
	h.wantRows(`SELECT id, tick FROM projects ORDER BY id`, "design|1", "shop|2")
	h.check()
}

func TestReadingRecordsWithoutAStoreFindsNothingAndMakesNone(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := h.connect("", nil)
	for tool, want := range map[string]string{
		"list_projects": "[]", "list_records": "[]", "get_recent_activity": "[]",
		"get_project_overview": `{"project":{"id":"shop","name":"shop","description":"","tick":0},"open_sessions":[],"root_records":[],"open_records":[],` +
			`"later_records":[],"totals":{"roots":0,"open":0,"later":0},"recent_activity":[]}`,
	} {
		c.says(tool, nil, want)
	}
	c.says("search_records", fields{"query": "refund"}, `{"results":[],"total":0,"hint":"No record contains any of these words or a similar one. `+
		`Try other words, or recall, which searches what agents did, mail and memories, too."}`)
	for _, tool := range []string{"get_record_ref", "get_record_history"} {
		c.fails(tool, fields{"id": "R1"}, "RECORD_NOT_FOUND")
	}
	c.fails("get_record_diff", fields{"id": "R1", "from": "v1"}, "RECORD_NOT_FOUND")
	c.fails("get_active_sessions", fields{"record_id": "R1"}, "RECORD_NOT_FOUND")
	c.fails("list_records", fields{"project_id": "nowhere"}, "PROJECT_NOT_FOUND")
	if _, err := os.Stat(h.dataDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading made the data directory: %v", err)
	}
}
