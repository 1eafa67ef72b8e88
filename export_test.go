package cairn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/copies"
	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/forget"
	"cairn/internal/observation/search"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/commands"
	"cairn/internal/repair"
	"cairn/internal/store"

	"pgregory.net/rapid"
)

// home is a cairn over its own store, with a clock that the test moves.
type home struct {
	*Cairn
	t   testing.TB
	dir string
	now *atomic.Int64 // Unix seconds
}

func newHome(t testing.TB, now *atomic.Int64, key string) home {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "home")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Dir: dir, Cwd: dir, Home: dir, Key: key, Wait: time.Minute,
	}
	ticks := &atomic.Int64{} // the clock advances between two commands
	c.Clock = func() time.Time { return time.Unix(now.Load(), ticks.Add(1)) }
	if key != "" { // encrypted from the start
		raw, err := hex.DecodeString(key)
		if err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), store.Config{Path: filepath.Join(dir, "cairn.db"), Key: raw})
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	h := home{Cairn: opened(t, c), t: t, dir: dir, now: now}
	return h
}

// sound fails the test unless `cairn doctor --deep` reports the whole store as intact.
func (h home) sound() {
	h.t.Helper()
	s, err := h.Store(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	found, err := s.Check(context.Background())
	if err == nil && len(found) == 0 {
		found, err = repair.CheckContent(context.Background(), s)
	}
	if err != nil || len(found) > 0 {
		h.t.Fatalf("check: %v %v", found, err)
	}
}

func (h home) export(project string) []byte {
	h.t.Helper()
	var b bytes.Buffer
	_, err := h.Export(context.Background(), &b, copies.ExportArgs{Project: project, All: project == "", Version: "test"})
	if err != nil {
		h.t.Fatalf("export: %v", err)
	}
	return b.Bytes()
}

func (h home) restore(text []byte, change ...func(*ImportArgs)) (copies.Imported, error) {
	h.t.Helper()
	path := filepath.Join(h.dir, "export.jsonl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		h.t.Fatal(err)
	}
	args := ImportArgs{Paths: []string{path}}
	for _, f := range change {
		f(&args)
	}
	r, err := h.Import(context.Background(), args)
	if err != nil {
		return copies.Imported{}, err
	}
	if len(r.Restored) != 1 || r.Lines != 0 {
		return copies.Imported{}, fmt.Errorf("not taken for an export: %+v", r)
	}
	return r.Restored[0], nil
}

func (h home) mustRestore(text []byte, change ...func(*ImportArgs)) copies.Imported {
	h.t.Helper()
	r, err := h.restore(text, change...)
	if err != nil {
		h.t.Fatalf("import: %v\n%s", err, text)
	}
	h.sound()
	return r
}

// head returns the length of the change log.
func (h home) head() (seq int64) {
	h.t.Helper()
	s, err := h.Store(context.Background())
	if err == nil {
		err = s.Read(context.Background(), func(ctx context.Context, tx *store.Tx) (err error) {
			seq, err = tx.Head(ctx)
			return err
		})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return seq
}

// event records an event as a hook would.
func (h home) event(e observation.Event) observation.Recorded {
	h.t.Helper()
	j, err := h.WritableObservations(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	e.Harness = "claude"
	place, err := project.Locate(e.Cwd, h.dir)
	if err != nil {
		h.t.Fatal(err)
	}
	done, err := capture.Record(context.Background(), j, e, place, project.Process{PID: 4, Start: 2})
	if err != nil {
		h.t.Fatal(err)
	}
	return done
}

// answers returns the results of the tools for a set of questions.
func (h home) answers() string {
	h.t.Helper()
	ctx := context.Background()
	j, err := h.Observations(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	var out []any
	keep := func(v any, err error) {
		if err != nil {
			v = err.Error()
		}
		out = append(out, v)
	}
	for _, q := range []string{"ledger", "make", "page*", "b", "red OR green", `"tidy the"`, "go"} {
		hits, err := search.Search(ctx, j, search.SearchArgs{Query: q, Limit: 100})
		// FTS5 ranks by averages that still include purged rows.
		slices.SortFunc(hits, func(a, b search.Hit) int { return cmp.Compare(a.ID, b.ID) })
		keep(hits, err)
	}
	for _, p := range []string{"", "shop", "works", "store-front"} {
		recent, err := browse.Recent(ctx, j, observation.Scope{Project: p}, 50)
		keep(recent, err)
		told, err := h.Context(ctx, p, "compact")
		keep(told.Text, err)
	}
	for id := range int64(30) {
		line, err := browse.RowsAround(ctx, j, id, 3, 3)
		keep(line, err)
	}
	for _, s := range sessionNames {
		trace, err := browse.TraceSession(ctx, j, s, nil, nil)
		keep(trace, err)
	}
	list, err := h.Projects(ctx)
	for i := range list {
		list[i].UID, list[i].Checkouts = "", nil // specific to the device
	}
	keep(list, err)
	h.recordAnswers(keep)
	h.memoryAnswers(keep)
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

// recordAnswers passes results about records to keep.
func (h home) recordAnswers(keep func(any, error)) {
	h.t.Helper()
	ctx := context.Background()
	book := h.book()
	list, err := book.ListProjects(ctx)
	slices.SortFunc(list, func(a, b record.ProjectSummary) int { return cmp.Compare(a.ID, b.ID) }) // equal within one second
	keep(list, err)
	for _, p := range []string{"shop", "works"} {
		c := record.Caller{ProjectID: p}
		overview, err := book.Overview(ctx, record.OverviewArgs{Caller: c})
		keep(overview, err)
		refs, err := book.List(ctx, record.ListArgs{Caller: c})
		keep(refs, err)
		past, err := book.List(ctx, record.ListArgs{Caller: c, At: "tick:5"})
		keep(past, err)
		activity, err := book.RecentActivity(ctx, record.ActivityArgs{Caller: c, Limit: 500})
		keep(activity, err)
		hits, err := book.Search(ctx, record.SearchArgs{Caller: c, Query: "ledger OR make"})
		slices.SortFunc(hits.Results, func(a, b record.Hit) int { return cmp.Compare(a.ID, b.ID) })
		keep(hits, err)
		for n := range 6 {
			id := fmt.Sprintf("R%03d", n)
			whole, err := book.Get(ctx, record.GetRefArgs{Caller: c, ID: id})
			keep(whole, err)
			items, err := book.History(ctx, record.HistoryArgs{Caller: c, ID: id})
			keep(items, err)
			holders, err := book.ActiveSessions(ctx, record.ActiveSessionsArgs{Caller: c, RecordID: id})
			keep(holders, err)
			diff, err := book.Diff(ctx, record.DiffArgs{Caller: c, ID: id, From: "v1"})
			keep(diff, err)
		}
	}
}

func (h home) book() *commands.Commands {
	h.t.Helper()
	s, err := h.Store(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	return commands.New(s, record.Config{Filter: h.ObservationConfig.Filter})
}

var sessionNames = []string{"s1", "s2", "s3"}

// history performs random actions on a store, through the methods that users' commands and
// hooks call.
type history struct {
	home
	*rapid.T
	shop, works, folder string
	rows                int64
}

func newHistory(t *rapid.T, h home) *history {
	x := &history{home: h, T: t}
	for name, dir := range map[string]*string{"shop": &x.shop, "works": &x.works} {
		*dir = filepath.Join(h.dir, name)
		put(h.t, filepath.Join(*dir, ".git", "HEAD"), "ref: refs/heads/main\n", 0o600)
	}
	x.folder = filepath.Join(h.dir, "notes")
	if err := os.MkdirAll(x.folder, 0o700); err != nil {
		h.t.Fatal(err)
	}
	return x
}

func pick[E any](t *rapid.T, label string, of ...E) E { return rapid.SampledFrom(of).Draw(t, label) }

// step performs one action.
func (x *history) step() {
	x.now.Add(int64(pick(x.T, "seconds", 0, 0, 1, 40, 4000)))
	switch rapid.IntRange(0, 38).Draw(x.T, "what") {
	case 0:
		_, err := x.Mark(x.ctx(), capture.MarkArgs{Text: x.words(), Cwd: x.cwd(), Pin: rapid.Bool().Draw(x.T, "pin")})
		x.fine(err, fault.NotFound)
	case 1:
		_, err := x.Pin(x.ctx(), capture.PinArgs{IDs: []int64{x.id()}, Cwd: x.shop, Unpin: rapid.Bool().Draw(x.T, "unpin")})
		x.fine(err, fault.NotFound)
	case 2:
		a := forget.PurgeArgs{Confirm: true, IDs: []int64{x.id(), x.id()}}
		if rapid.IntRange(0, 4).Draw(x.T, "whole session") == 0 {
			a = forget.PurgeArgs{Confirm: true, Session: pick(x.T, "session", sessionNames...)}
		}
		_, err := x.Purge(x.ctx(), a)
		x.fine(err, fault.NotFound)
	case 3:
		x.fine(x.AddAlias(x.ctx(), pick(x.T, "alias", "store-front", "s h o p", "lib"), pick(x.T, "project", "shop", "works")),
			fault.NotFound, fault.Conflict)
	case 4:
		if rapid.IntRange(0, 5).Draw(x.T, "merge") == 0 {
			x.fine(x.Merge(x.ctx(), "notes", "shop"), fault.NotFound, fault.Invalid, fault.Conflict)
		}
	case 5, 6, 7, 8, 9, 10, 11, 12, 13:
		x.recordStep()
	case 14, 15, 16, 17, 18, 19, 20, 21:
		x.mailStep()
	case 22, 23, 24, 25, 26, 27:
		x.memoryStep()
	default:
		done := x.event(x.randomEvent())
		for _, id := range done.IDs {
			x.rows = max(x.rows, id)
		}
	}
}

// recordStep performs one action on the records. The action may be refused.
func (x *history) recordStep() {
	ctx, book := x.ctx(), x.book()
	c := record.Caller{
		Project: pick(x.T, "project", "shop", "shop", "works"), SessionID: pick(x.T, "session", "s1", "s2", "r1", "r2"),
	}
	id := fmt.Sprintf("R%03d", rapid.IntRange(1, 4).Draw(x.T, "record"))
	var err error
	switch rapid.IntRange(0, 8).Draw(x.T, "command") {
	case 0, 1:
		a := record.CreateArgs{Caller: c, Type: "question", Title: "about " + x.id3(), Summary: x.words(), Body: x.body()}
		if rapid.Bool().Draw(x.T, "child") {
			a.ParentID = &id
		}
		if rapid.Bool().Draw(x.T, "metadata") {
			a.Metadata, a.Related = json.RawMessage(`{"b":1.50,"a":["<x>",null]}`), []string{id}
		}
		_, err = book.Create(ctx, a)
	case 2, 3:
		_, err = book.Activate(ctx, record.ActivateArgs{Caller: c, ID: id, Override: rapid.Bool().Draw(x.T, "override")})
	case 4:
		text := x.body()
		_, err = book.Update(ctx, record.UpdateArgs{Caller: c, ID: id, Body: &text, Force: rapid.Bool().Draw(x.T, "force")})
	case 5:
		_, err = book.Transition(ctx, record.TransitionArgs{
			Caller: c, ID: id, ToState: pick(x.T, "state", record.Open, record.Later, record.Resolved, record.Discarded),
			Reason: "because", ResolvedBy: "R001",
		})
	case 6:
		_, err = book.Save(ctx, record.SaveArgs{Caller: c, Summary: x.id3()})
	case 7:
		_, err = book.Close(ctx, record.SaveArgs{Caller: c})
	default:
		_, err = book.Sync(ctx, record.SyncArgs{Caller: c})
	}
	x.fine(err, fault.NotFound, fault.Invalid, fault.Conflict)
}

func (x *history) body() string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"tidy", "ledger", "日本語", "<b>&", "see a/b.go#L1-L3", `"\"`}), 0, 6).Draw(x.T, "body"), "\n")
}

func (x *history) id3() string { return pick(x.T, "title", "red", "green", "ledgers & <pages>") }

func (x *history) ctx() context.Context { return context.Background() }

func (x *history) fine(err error, allowed ...fault.Kind) {
	x.Helper()
	for _, k := range allowed {
		if fault.KindOf(err) == k {
			return
		}
	}
	if err != nil {
		x.Fatal(err)
	}
}

func (x *history) id() int64   { return rapid.Int64Range(1, max(1, x.rows)).Draw(x.T, "id") }
func (x *history) cwd() string { return pick(x.T, "cwd", x.shop, x.shop, x.works, x.folder) }

func (x *history) words() string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
		"tidy", "the", "ledger", "page", "make", "red", "green", "getUserName", "HTTPServer", "日本語", "<b>&amp;</b>", "a\u2028b", `"\`, "é", "\x01",
	}), 1, 8).Draw(x.T, "words"), " ")
}

func (x *history) randomEvent() observation.Event {
	e := observation.Event{
		Session: pick(x.T, "session", sessionNames...), Cwd: x.cwd(), Source: "PostToolUse",
		AgentID: pick(x.T, "agent", "", "", "a1"), PromptID: pick(x.T, "prompt id", "", "p1", "p2"), Branch: pick(x.T, "branch", "", "main", "topic/<x>"),
	}
	switch rapid.IntRange(0, 6).Draw(x.T, "event") {
	case 0:
		e.Kind, e.Source, e.Text = observation.Prompt, "UserPromptSubmit", x.words()
	case 1:
		e.Kind, e.Source, e.Text, e.Role, e.TurnEnds = observation.Message, "Stop", x.words(), "turn", true
		e.LineID = pick(x.T, "line", "", "l1", "l2")
	case 2:
		e.Kind, e.Source, e.Text, e.Model = observation.SessionStart, "SessionStart", pick(x.T, "source", "startup", "resume", "compact"), "opus"
	case 3:
		e.Kind, e.Source, e.Text = observation.SessionEnd, "SessionEnd", "other"
	default:
		e.Kind = observation.Tool
		c := observation.Call{ID: pick(x.T, "call", "", "", "c1", "c2", "c3", "c4", "c5")}
		switch rapid.IntRange(0, 3).Draw(x.T, "tool") {
		case 0:
			c.Tool, c.Action, c.Path = "Edit", observation.Edit, pick(x.T, "path", "a/b.go", "b.go", "/elsewhere/c.go")
		case 1:
			c.Tool, c.Action, c.Command = "Bash", observation.Shell, "make "+x.words()
			c.Failed = rapid.Bool().Draw(x.T, "failed")
			c.Error = "Exit code 2 " + x.words()
		case 2:
			c.Tool, c.Action, c.Path = "Read", observation.Read, "a/b.go"
		default:
			c.Tool, c.Action, c.Pattern, c.Path = "Grep", observation.Search, x.words(), "a"
		}
		e.Calls = []observation.Call{c}
	}
	return e
}

// maxHistories returns the maximum number of histories: fewer with the second driver
// (-short), many in a soak test. It does not limit the search for the shortest failing
// history.
func maxHistories() int {
	switch {
	case os.Getenv("CAIRN_SOAK") != "":
		return 100
	case testing.Short():
		return 4
	}
	return 8
}

// randomHome returns a home in which between least and most random actions happened in all
// parts, and its clock.
func randomHome(t *testing.T, r *rapid.T, least, most int) (source home, now *atomic.Int64) {
	now = &atomic.Int64{}
	now.Store(1_770_000_000)
	source = newHome(t, now, "")
	x := newHistory(r, source)
	x.event(observation.Event{Kind: observation.SessionStart, Session: "s1", Cwd: x.shop, Source: "SessionStart", Text: "startup"})
	for range rapid.IntRange(least, most).Draw(r, "steps") {
		x.step()
	}
	return source, now
}

// TestAnImportedExportIsTheProjectItself performs random actions and exports everything and
// each project. It imports the exports elsewhere, and compares the exports and results
// there.
func TestAnImportedExportIsTheProjectItself(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"plain": "", "encrypted": hex.EncodeToString(newKey(t))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, failed := 0, false
			rapid.Check(t, func(r *rapid.T) {
				defer func() { failed = failed || r.Failed() }()
				if runs++; runs > maxHistories() && !failed { // each takes a second on a loaded machine
					return
				}
				source, now := randomHome(t, r, 1, 60)
				source.sound()
				whole := source.export("")
				compareCopy(r, source, newHome(t, now, key), whole)
				compareProject(r, source, newHome(t, now, key))
			})
		})
	}
}

func compareCopy(r *rapid.T, source, target home, whole []byte) {
	target.mustRestore(whole)
	if again := target.export(""); !bytes.Equal(again, whole) {
		r.Fatalf("the copy's export differs\n%s", firstDifference(whole, again))
	}
	if a, b := source.answers(), target.answers(); a != b {
		r.Fatalf("the copy answers otherwise\n%s", firstDifference([]byte(a), []byte(b)))
	}
	for _, h := range []home{source, target} {
		head := h.head()
		if done := h.mustRestore(whole); done.Rows.Added+done.Records.Added+len(done.Mail.Added) != 0 || done.New != 0 || h.head() != head || !bytes.Equal(h.export(""), whole) {
			r.Fatalf("importing again changed something: %+v, %d changes", done, h.head()-head)
		}
	}
}

func compareProject(r *rapid.T, source, target home) {
	one := source.export("shop")
	target.mustRestore(one)
	if again := target.export("shop"); !bytes.Equal(again, one) {
		r.Fatalf("the copy's project differs\n%s", firstDifference(one, again))
	}
}

func firstDifference(a, b []byte) string {
	as, bs := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	var out []string
	for i := range max(len(as), len(bs)) {
		var l, r string
		if i < len(as) {
			l = as[i]
		}
		if i < len(bs) {
			r = bs[i]
		}
		if l != r {
			if out = append(out, "- "+l, "+ "+r); len(out) > 10 {
				break
			}
		}
	}
	return strings.Join(out, "\n")
}
