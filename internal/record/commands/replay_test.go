package commands_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cairn/internal/record"
	"cairn/internal/record/commands"
	"cairn/internal/store"
)

// rowsOf returns the content of all tables of records as text.
func rowsOf(t testing.TB, s *store.Store) string {
	t.Helper()
	var out strings.Builder
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for _, query := range []string{
			`SELECT json_array(id, tick, last_record) FROM projects WHERE last_record > 0 ORDER BY id`,
			`SELECT json_array(p.id, r.number, r.parent, hex(r.path), r.version, r.state, r.type, r.title, r.summary, r.created_at, r.modified_at,
				s.id, r.resolved_by, r.related, r.metadata, r.cited, r.body)
			 FROM records r JOIN projects p ON p.key = r.project_key JOIN sessions s ON s.key = r.creator ORDER BY p.id, r.number`,
			`SELECT json_array(p.id, s.id, r.opened_at, r.last_activity, r.last_sync_tick, r.save_tick, r.last_save, r.closed, b.id)
			 FROM record_sessions r JOIN projects p ON p.key = r.project_key JOIN sessions s ON s.key = r.session_key
			 LEFT JOIN sessions b ON b.key = r.parent ORDER BY p.id, s.id`,
			`SELECT json_array(p.id, s.id, a.number, a.base_version, a.at, a.holders, a.settled)
			 FROM activations a JOIN projects p ON p.key = a.project_key JOIN sessions s ON s.key = a.session_key ORDER BY p.id, a.number, s.id`,
			`SELECT json_array(project_key IS NULL, tick) FROM record_ticks ORDER BY project_key, tick`,
		} {
			err := tx.Each(ctx, func(r *sql.Rows) error {
				var line string
				err := r.Scan(&line)
				fmt.Fprintln(&out, line)
				return err
			}, query)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// pastOf returns the output of all commands that read the past of project p.
func pastOf(t testing.TB, b *commands.Commands, at string) string {
	t.Helper()
	found := must(b.Search(t.Context(), record.SearchArgs{Caller: as("s0"), Query: "red blue green", Limit: 500, At: at}))(t)
	found.At = nil // it only marks the output as past
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	return pastOfOther(t, b, as("s0"), at) + string(text)
}

// pastOfOther returns the same for another project, without a search, because its ranking
// depends on all projects.
func pastOfOther(t testing.TB, b *commands.Commands, c record.Caller, at string) string {
	t.Helper()
	ctx := t.Context()
	overview := must(b.Overview(ctx, record.OverviewArgs{Caller: c, At: at}))(t)
	overview.At = nil
	all := []any{
		overview,
		must(b.RecentActivity(ctx, record.ActivityArgs{Caller: c, Limit: 500, At: at}))(t),
	}
	list := must(b.List(ctx, record.ListArgs{Caller: c, At: at}))(t)
	for _, r := range list {
		all = append(all, r,
			must(b.Get(ctx, record.GetRefArgs{Caller: c, ID: r.ID, At: at}))(t),
			must(b.History(ctx, record.HistoryArgs{Caller: c, ID: r.ID, At: at}))(t),
			must(b.ActiveSessions(ctx, record.ActiveSessionsArgs{Caller: c, RecordID: r.ID, At: at}))(t))
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tally counts how often each command succeeded and was refused.
type tally map[string]*struct{ done, refused int }

func (n tally) count(name string, err error) {
	if n[name] == nil {
		n[name] = &struct{ done, refused int }{}
	}
	if err != nil {
		n[name].refused++
	} else {
		n[name].done++
	}
}

// wantAll fails the test unless each command of the seed succeeded, and was refused if it
// can be.
func (n tally) wantAll(t testing.TB) {
	t.Helper()
	if len(n) != 18 {
		t.Errorf("%d of 18 commands", len(n))
	}
	for name, c := range n {
		if c.done == 0 || c.refused == 0 && name != "list_projects" {
			t.Errorf("%s was done %d times and refused %d times", name, c.done, c.refused)
		}
	}
}

// hand is one command of a random session with random arguments.
type hand struct {
	*desk
	*rapid.T
	caller record.Caller
	id     string
}

func (h *hand) pick(name string, of ...string) string {
	return rapid.SampledFrom(of).Draw(h.T, name)
}

func (h *hand) maybe(name string) bool { return rapid.Bool().Draw(h.T, name) }

func (h *hand) text(name string) *string {
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"red", "blue", "green", "getUserById", "色", "<b>&", "\n"}), 0, 6).Draw(h.T, name)
	return ptr(strings.Join(words, " "))
}

// related returns ids; some may not exist or be the record's own.
func (h *hand) related() []string {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"r1", "R002", "R3", "R404"}), 0, 2).Draw(h.T, "related")
}

func (h *hand) metadata() json.RawMessage {
	return json.RawMessage(h.pick("metadata", `{"a": 1.50, "b": ["x"]}`, `{}`, `{"state_reason":"mine","<":9007199254740993}`, `[]`))
}

// at returns a moment for commands that read the past; some are invalid.
func (h *hand) at() string {
	return h.pick("at", "", "", "tick:0", "tick:1", "tick:9999", "yesterday", record.Time(h.clock.Now().UnixNano()).String())
}

// random runs one command of the seed, which may be refused.
func (d *desk) random(t *rapid.T, counts tally) {
	h := &hand{
		desk: d, T: t,
		caller: as(rapid.SampledFrom([]string{"s0", "s0", "s1", "s1", "s2", "s2", "", "two\nlines"}).Draw(t, "session")),
		id:     fmt.Sprintf("R%03d", rapid.IntRange(1, 6).Draw(t, "record")),
	}
	var name string
	var err error
	switch rapid.IntRange(0, 5).Draw(t, "sort") {
	case 0:
		name, err = h.orient()
	case 1:
		name, err = h.lookBack()
	case 2:
		name, err = h.endOrSync()
	default:
		name, err = h.change()
	}
	counts.count(name, err)
	if h.maybe("wait") {
		d.clock.Move(time.Second)
	}
}

// orient runs a command about projects, or one that reads present records.
func (h *hand) orient() (name string, err error) {
	ctx, c := h.Context(), h.caller
	name = h.pick("command", "create_project", "list_projects", "get_project", "get_project_overview", "search_records", "list_records", "get_record_ref")
	switch name {
	case "create_project":
		_, err = h.CreateProject(ctx, record.CreateProjectArgs{ID: h.pick("project", "q", "r", "default"), Name: *h.text("name"), Description: *h.text("description")})
	case "list_projects":
		_, err = h.ListProjects(ctx)
	case "get_project":
		_, err = h.GetProject(ctx, record.GetProjectArgs{Caller: c, At: h.at()})
	case "get_project_overview":
		_, err = h.Overview(ctx, record.OverviewArgs{Caller: c, At: h.at()})
	case "search_records":
		_, err = h.Search(ctx, record.SearchArgs{Caller: c, Query: *h.text("query"), ParentID: h.pick("parent", "", h.id), At: h.at()})
	case "list_records":
		_, err = h.List(ctx, record.ListArgs{Caller: c, ParentID: h.pick("parent", "", h.id), Depth: 2, At: h.at()})
	default:
		_, err = h.GetRef(ctx, record.GetRefArgs{Caller: c, ID: h.id, At: h.at()})
	}
	return name, err
}

// lookBack runs a command about history.
func (h *hand) lookBack() (name string, err error) {
	ctx, c := h.Context(), h.caller
	name = h.pick("command", "get_record_history", "get_record_diff", "get_active_sessions", "get_recent_activity")
	switch name {
	case "get_record_history":
		_, err = h.History(ctx, record.HistoryArgs{Caller: c, ID: h.id, At: h.at()})
	case "get_record_diff":
		_, err = h.Diff(ctx, record.DiffArgs{Caller: c, ID: h.id, From: h.pick("from", "v1", "v2", "tick:1", "last_save"), To: h.pick("to", "", "v2")})
	case "get_active_sessions":
		_, err = h.ActiveSessions(ctx, record.ActiveSessionsArgs{Caller: c, RecordID: h.id, At: h.at()})
	default:
		_, err = h.RecentActivity(ctx, record.ActivityArgs{Caller: c, RecordID: h.pick("of", "", h.id), At: h.at()})
	}
	return name, err
}

func (h *hand) endOrSync() (name string, err error) {
	ctx, c := h.Context(), h.caller
	name = h.pick("command", "sync_session", "save_session", "close_session")
	switch name {
	case "sync_session":
		_, err = h.Sync(ctx, record.SyncArgs{Caller: c})
	case "save_session":
		_, err = h.Save(ctx, record.SaveArgs{Caller: c, Summary: *h.text("summary")})
	default:
		_, err = h.Close(ctx, record.SaveArgs{Caller: c, Summary: *h.text("summary")})
	}
	return name, err
}

// change runs a command that changes or loads records.
func (h *hand) change() (name string, err error) {
	ctx, c := h.Context(), h.caller
	name = h.pick("command", "create_record", "create_record", "activate", "activate", "update_record", "update_record", "transition", "transition")
	switch name {
	case "create_record":
		a := record.CreateArgs{
			Caller: c, Type: "note", Title: "T" + strings.ReplaceAll(*h.text("title"), "\n", ""), Body: *h.text("body"),
			State: rapid.SampledFrom(append(allStates(), "")).Draw(h.T, "state"),
		}
		if h.maybe("child") {
			a.ParentID = &h.id
		}
		if h.maybe("more") {
			a.Metadata, a.Related, a.Cited = h.metadata(), h.related(), []record.Cited{{Path: "a.go", Lines: "L1", Hash: "h"}}
		}
		_, err = h.Create(ctx, a)
	case "activate":
		_, err = h.Activate(ctx, record.ActivateArgs{Caller: c, ID: h.id, Override: h.maybe("override")})
	case "update_record":
		a := record.UpdateArgs{Caller: c, ID: h.id, Force: h.maybe("force")}
		if h.maybe("text") {
			a.Title, a.Summary, a.Body = ptr("T"+strings.ReplaceAll(*h.text("title"), "\n", "")), h.text("summary"), h.text("body")
		}
		if h.maybe("related") {
			a.Related = h.related()
		}
		if h.maybe("metadata") {
			a.Metadata = h.metadata()
		}
		_, err = h.Update(ctx, a)
	default:
		_, err = h.Transition(ctx, record.TransitionArgs{
			Caller: c, ID: h.id, ToState: rapid.SampledFrom(allStates()).Draw(h.T, "to"), Reason: *h.text("reason"),
			ResolvedBy: h.pick("resolved by", "R001", "R002", ""),
		})
	}
	return name, err
}

func allStates() []record.State {
	return []record.State{record.Open, record.Later, record.Resolved, record.Discarded}
}

// happenings returns the events that a log can contain, each by a property of its
// documents.
func happenings() map[string]string {
	return map[string]string{
		"a parent": `"parent_id":"R`, "related": `"related":["R`, "metadata": `"metadata":{"a"`, "citations": `"cited":[{`,
		"a reason": `"reason":"`, "a resolver": `"resolved_by":"R`, "a reason kept": `"state_reason":"`, "another's version overridden": `"forced":true`,
		"an update": record.RecordUpdated, "a transition": record.StateTransition, "a start": record.SessionStarted, "a save": record.SessionSaved,
		"an end": record.SessionClosed, "a branch": `"parent_session":"`, "an activation": `"activation"`, "a conflict": record.ConflictDetected,
		"a conflict resolved": record.ConflictResolved, "an overridden warning": `"settled":true`, "a sync": "session_synced", "a reload": "record_reloaded",
		"a state at creation": `"state":"DISCARDED"`,
	}
}

// seen contains the events in the logs of a test.
type seen struct {
	missing         map[string]string // of the happenings
	stale, reopened bool
}

func (n *seen) look(d *desk) {
	starts := map[string]int{}
	for _, e := range exported(d, d.store) {
		for name, sign := range n.missing {
			if strings.Contains(string(e.Doc), sign) {
				delete(n.missing, name)
			}
		}
		if strings.Contains(string(e.Doc), record.SessionStarted) {
			starts[e.Session]++
			n.reopened = n.reopened || starts[e.Session] > 1
		}
	}
	for _, s := range must(d.Overview(d.Context(), record.OverviewArgs{Caller: as("")}))(d).OpenSessions {
		n.stale = n.stale || s.TickGap > 20
	}
}

// story does what random commands seldom do: a tree of records that refer to one another,
// a stale session, and versions that override others.
func (d *desk) story(counts tally) {
	must(d.Create(d.Context(), record.CreateArgs{
		Caller: as("s0"), ParentID: ptr("R001"), Type: "answer", Title: "because", Related: []string{"R1"}, State: record.Discarded,
		Metadata: json.RawMessage(`{"a":[1.50]}`), Cited: []record.Cited{{Path: "a.go", Lines: "L1", Hash: "h"}},
	}))(d)
	d.move("s0", "R001", record.Resolved, "R002")
	d.move("s0", "R001", record.Open, "again")
	d.activate("s2", "R001")
	d.activate("s1", "R001")
	for n := range 21 {
		d.body("s0", "R001", fmt.Sprint("line ", n))
	}
	a := record.UpdateArgs{Caller: as("s1"), ID: "R001", Body: ptr("mine")}
	if out := must(d.Update(d.Context(), a))(d); out.Conflict == nil {
		d.Error("no conflict")
	}
	a.Force = true
	must(d.Update(d.Context(), a))(d)
	for _, at := range []string{"", "yesterday"} {
		d.read(counts, at)
	}
}

// read runs the commands that change nothing.
func (d *desk) read(counts tally, at string) {
	ctx, c := d.Context(), as("s0")
	_, err := d.GetProject(ctx, record.GetProjectArgs{Caller: c, At: at})
	counts.count("get_project", err)
	_, err = d.Overview(ctx, record.OverviewArgs{Caller: c, At: at})
	counts.count("get_project_overview", err)
	_, err = d.Search(ctx, record.SearchArgs{Caller: c, Query: "red", At: at})
	counts.count("search_records", err)
	_, err = d.List(ctx, record.ListArgs{Caller: c, At: at})
	counts.count("list_records", err)
	_, err = d.GetRef(ctx, record.GetRefArgs{Caller: c, ID: "R001", At: at})
	counts.count("get_record_ref", err)
	_, err = d.History(ctx, record.HistoryArgs{Caller: c, ID: "R001", At: at})
	counts.count("get_record_history", err)
	_, err = d.Diff(ctx, record.DiffArgs{Caller: c, ID: "R001", From: "v1", To: at})
	counts.count("get_record_diff", err)
	_, err = d.ActiveSessions(ctx, record.ActiveSessionsArgs{Caller: c, RecordID: "R001", At: at})
	counts.count("get_active_sessions", err)
	_, err = d.RecentActivity(ctx, record.ActivityArgs{Caller: c, At: at})
	counts.count("get_recent_activity", err)
}

// wantReplays fails the test unless the desk's log, applied to an empty store twice or as
// an export, gives an equal desk, and applying the export again changes nothing.
func wantReplays(t testing.TB, d *desk) {
	t.Helper()
	applied, imported := deskOver(t, d), deskOver(t, d)
	log := logOf(t, d.store, "d")
	if n := merged(t, applied.store, log, log); n.Added != len(log) || n.Known != len(log) {
		t.Fatalf("applied %+v of %d", n, len(log))
	}
	wantRows(t, applied, d)
	list := exported(t, d.store)
	if n := restored(t, imported.store, list); n.Known != 0 || n.Added != len(list) {
		t.Fatalf("imported %+v of %d", n, len(list))
	}
	wantCopy(t, imported, d)
	if n := restored(t, imported.store, list); n.Known != len(list) || n.Added != 0 {
		t.Fatalf("imported again %+v of %d", n, len(list))
	}
	wantRows(t, imported, d)
}

// The logs come from random commands.
func TestTheLogAppliedToAnEmptyStoreGivesEqualRecordsTicksSessionsAndHistory(t *testing.T) {
	t.Parallel()
	counts, told := tally{}, seen{missing: happenings()}
	d := newDesk(t)
	d.create("s0", "", "red")
	d.story(counts)
	told.look(d)
	wantReplays(t, d)
	rapid.Check(t, func(rt *rapid.T) {
		d := deskWhere(t, rapid.SampledFrom([]time.Duration{time.Millisecond, 0}).Draw(rt, "step of the clock"))
		d.create("s0", "", "red")
		d.create("s1", "", "blue")
		for range rapid.IntRange(1, 60).Draw(rt, "commands") {
			d.random(rt, counts)
		}
		told.look(d)
		wantReplays(t, d)
	})
	if t.Failed() || os.Getenv("CAIRN_SOAK") == "" {
		return // too few logs to have everything for certain
	}
	counts.wantAll(t)
	if len(told.missing) > 0 || !told.stale || !told.reopened {
		t.Errorf("no log contains %v; a stale session: %t, one opened again: %t", told.missing, told.stale, told.reopened)
	}
}

// someOf returns three of the moments, because each costs a replay of the log per
// command. A soak uses all of them.
func someOf(t *rapid.T, moments []string) []string {
	if os.Getenv("CAIRN_SOAK") != "" {
		return moments
	}
	return rapid.Permutation(moments).Draw(t, "moments")[:min(3, len(moments))]
}

func TestAsOfShowsTheProjectAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		d.create("s0", "", "red")
		seen := map[string]string{}
		for range rapid.IntRange(1, 25).Draw(rt, "commands") {
			d.random(rt, tally{})
			d.clock.Move(time.Second) // so that no two commands share a millisecond
			at := record.Time(d.clock.Now().UnixNano()).String()
			seen[at] = pastOf(t, d.Commands, "")
			d.clock.Move(time.Second)
		}
		for _, at := range someOf(rt, slices.Sorted(maps.Keys(seen))) {
			if got, want := pastOf(t, d.Commands, at), seen[at]; got != want {
				t.Fatalf("at %s it has\n%s\nwant\n%s", at, got, want)
			}
		}
	})
}
