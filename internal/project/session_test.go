package project_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/store"
)

func TestFirstEventDecidesTheSessionsOwnProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.repo(w.path("a")), w.repo(w.path("b"))
	for _, step := range []struct{ cwd, own, event string }{
		{a, "a", "a"},
		{b, "a", "b"},                                   // another repository: for this event only
		{w.mkdir(w.path("plain")), "a", "a"},            // outside any: inherited
		{w.home, "a", "a"},                              // also at home
		{"/", "a", "a"},                                 // and at the top
		{filepath.Join(b, "gone"), "a", "b"},            // gone inside a repository
		{w.path("lost"), "a", "a"},                      // gone elsewhere
		{w.path("lost", ".worktrees", "x"), "a", "a"},   // likewise
		{filepath.Join(a, ".worktrees", "x"), "a", "a"}, // lost worktree
	} {
		own, event := w.see("s", step.cwd)
		w.want(step.cwd, own+" "+event, step.own+" "+step.event)
	}
	own, event := w.see("other", w.path("plain"))
	w.want("another session", own+" "+event, "plain plain")
	own, event = w.see("other", a)
	w.want("which enters a repository", own+" "+event, "plain a")
}

func TestSessionMadeByAnotherPartIsDecidedByItsFirstEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.resolve(w.repo(w.path("a"))), w.repo(w.path("b"))
	for _, id := range []string{"s", "t"} {
		w.tx(func(ctx context.Context, tx *store.Tx) error {
			s, err := project.NewSession(ctx, tx, id, a)
			again, err2 := project.NewSession(ctx, tx, id, project.Project{ID: "nobody"})
			if err != nil || err2 != nil || s != again || s.ProjectID != "a" || s.ProjectKey != a.Key || s.StartedAt != w.now.Unix() {
				t.Errorf("%+v, %v; %+v, %v", s, err, again, err2)
			}
			return nil
		})
	}
	own, event := w.see("s", b)
	w.want("first event in b", own+" "+event, "b b")
	own, event = w.see("s", w.path("a"))
	w.want("then in a", own+" "+event, "b a")
	own, event = w.see("t", w.mkdir(w.path("plain")))
	w.want("first event outside", own+" "+event, "a a")
	s, _ := w.saw(project.SessionEvent{ID: "u", Project: &a, Place: w.locate(b)})
	w.want("decided by the caller", s.ProjectID, "a")
}

func TestTimesOfASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.locate(w.repo(w.path("a")))
	for i, step := range []struct {
		seen                   project.SessionEvent
		started, ended, latest int64
		logged                 int64
	}{
		{project.SessionEvent{At: 100}, 100, 0, 100, 2}, // project and session
		{project.SessionEvent{At: 100}, 100, 0, 100, 0},
		{project.SessionEvent{At: 200}, 100, 0, 200, 0},
		{project.SessionEvent{At: 150}, 100, 0, 200, 0},
		{project.SessionEvent{At: 300, Ends: true}, 100, 300, 300, 1},
		{project.SessionEvent{At: 250, Ends: true, Imported: true}, 100, 300, 300, 0},
		{project.SessionEvent{At: 400}, 100, 300, 400, 0},
		{project.SessionEvent{At: 50, Imported: true}, 50, 300, 400, 1},
		{project.SessionEvent{At: 400, Harness: "claude", Model: "m1"}, 50, 300, 400, 1},
		{project.SessionEvent{At: 401, Harness: "codex"}, 50, 300, 401, 0},
		{project.SessionEvent{At: 401, Model: "m0", Imported: true}, 50, 300, 401, 0},
		{project.SessionEvent{At: 401, Model: "m2"}, 50, 300, 401, 1},
		{project.SessionEvent{At: 401, PID: 7, PIDStart: 9}, 50, 300, 401, 0},
		{project.SessionEvent{At: 401, PID: 8, PIDStart: 9, Imported: true}, 50, 300, 401, 0},
	} {
		step.seen.ID, step.seen.Place = "s", p
		before := w.changes()
		s, _ := w.saw(step.seen)
		if s.StartedAt != step.started || s.EndedAt != step.ended || s.LastSeen != step.latest {
			t.Errorf("step %d: %+v", i, s)
		}
		if n := w.changes() - before; n != step.logged {
			t.Errorf("step %d logged %d changes, want %d", i, n, step.logged)
		}
		w.tx(func(ctx context.Context, tx *store.Tx) error {
			stored, ok, err := project.FindSession(ctx, tx, "s")
			if err != nil || !ok || stored != s {
				t.Errorf("step %d: stored %+v, returned %+v, %v", i, stored, s, err)
			}
			return nil
		})
	}
	s, _ := w.saw(project.SessionEvent{ID: "s", Place: p})
	if s.LastSeen != w.now.Unix() || s.Harness != "claude" || s.Model != "m2" || s.Process != (project.Process{PID: 7, Start: 9}) {
		t.Errorf("in the end %+v", s)
	}
	if err := w.try(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := project.RecordSession(ctx, tx, project.SessionEvent{Place: p})
		return err
	}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("blank id: %v", err)
	}
}

func TestChangeLogContainsTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.saw(project.SessionEvent{ID: "s", Place: w.locate(w.repo(w.path("a"))), Harness: "claude", Model: "m", At: 5, PID: 1, PIDStart: 2})
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		list, err := tx.Changes(ctx, 1, 10)
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		c, doc := list[0], map[string]any{}
		if err := json.Unmarshal(c.Doc, &doc); err != nil {
			return err
		}
		if c.Kind != "session" || c.ID != "s" || c.Project != "a" || c.Stream != "session/s" || len(doc) != 5 ||
			doc["id"] != "s" || doc["project_id"] != "a" || doc["harness"] != "claude" || doc["model"] != "m" || doc["started_at"] != 5.0 {
			t.Errorf("%+v %v", c, doc)
		}
		return nil
	})
}

// current returns the id of the session of the given processes.
func (w *world) current(list ...project.Process) (id string) {
	w.Helper()
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		s, ok, err := project.CurrentSession(ctx, tx, list)
		if ok != (s.ID != "") {
			w.Errorf("ok is %v for %q", ok, s.ID)
		}
		id = s.ID
		return err
	})
	return id
}

func TestCurrentSessionIsThatOfTheNearestHarness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.locate(w.repo(w.path("a")))
	for i, e := range []project.SessionEvent{
		{ID: "outer", PID: 10, PIDStart: 1}, {ID: "inner", PID: 20, PIDStart: 2},
		{ID: "inner", PID: 20, PIDStart: 2, Closes: true}, {ID: "cleared", PID: 20, PIDStart: 2}, {ID: "earlier boot", PID: 20, PIDStart: 1},
		{ID: "imported", PID: 30, PIDStart: 3, Imported: true}, {ID: "outer", PID: 10, PIDStart: 1},
	} {
		e.Place, e.At = p, int64(100+i)
		w.saw(e)
	}
	outer, inner, none := project.Process{PID: 10, Start: 1}, project.Process{PID: 20, Start: 2}, project.Process{PID: 99, Start: 9}
	w.want("inner", w.current(none, inner, outer), "cleared")
	w.want("outer", w.current(none, outer), "outer")
	w.want("reused number", w.current(project.Process{PID: 10, Start: 5}), "")
	w.want("imported", w.current(project.Process{PID: 30, Start: 3}), "")
	w.want("unknown", w.current(project.Process{}, none), "")
	w.want("no ancestors", w.current(), "")
	w.now = time.Unix(200, 0)
	w.saw(project.SessionEvent{ID: "inner", Place: p, PID: 20, PIDStart: 2})
	w.want("a late event of a closed session", w.current(inner), "cleared")
	w.saw(project.SessionEvent{ID: "inner", Place: p, PID: 20, PIDStart: 2, Begins: true})
	w.want("two open sessions, and another one above", w.current(inner, outer), "")
	w.saw(project.SessionEvent{ID: "cleared", Place: p, PID: 20, PIDStart: 2, Closes: true})
	w.want("resumed", w.current(inner), "inner")
	w.now = time.Unix(201, 0)
	w.saw(project.SessionEvent{ID: "inner", Place: p, PID: 20, PIDStart: 2, Closes: true})
	w.want("none open", w.current(inner, outer), "inner")
}

func TestANewSessionReplacesTheOnlyOneOfItsProcessAndLineage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.locate(w.repo(w.path("a"))), w.locate(w.repo(w.path("b")))
	open := func(id string) bool {
		t.Helper()
		var s project.Session
		w.tx(func(ctx context.Context, tx *store.Tx) (err error) {
			s, _, err = project.FindSession(ctx, tx, id)
			return err
		})
		return s.ClosedAt == 0
	}
	seen := func(id string, p project.Location, harness string, pid int, replaces bool) {
		w.saw(project.SessionEvent{ID: id, Place: p, Harness: harness, PID: pid, PIDStart: 1, Begins: true, Replaces: replaces})
	}
	seen("first", a, "claude", 10, false)
	seen("elsewhere", b, "claude", 10, false)
	seen("other harness", a, "codex", 10, false)
	seen("other process", a, "claude", 11, false)
	seen("second", a, "claude", 10, true)
	seen("second", a, "claude", 10, true) // a compaction of a known session replaces no session
	for id, want := range map[string]bool{"first": false, "elsewhere": true, "other harness": true, "other process": true, "second": true} {
		if open(id) != want {
			t.Errorf("%s: open is %v", id, !want)
		}
	}
	seen("third", a, "claude", 10, false)
	seen("fourth", a, "claude", 10, true)
	if !open("second") || !open("third") {
		t.Error("one of two open sessions was closed")
	}
	var s project.Session
	s, _ = w.saw(project.SessionEvent{ID: "first", Place: b, Harness: "claude"})
	w.want("where a session began", s.Checkout, a.Root)
}

func TestALineageIsAHarnessInACheckout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, plain := w.locate(w.repo(w.path("a"))), w.locate(w.mkdir(w.path("plain")))
	self := startHarness(t, "").Harness
	for i, e := range []project.SessionEvent{
		{ID: "closed", Place: a, PID: self.PID, PIDStart: self.Start, Closes: true}, {ID: "killed", Place: a, PID: self.PID, PIDStart: self.Start - 1},
		{ID: "live", Place: a, PID: self.PID, PIDStart: self.Start}, {ID: "unknown process", Place: a},
		{ID: "elsewhere", Place: plain, Closes: true}, {ID: "codex", Place: a, Harness: "codex", Closes: true},
		{ID: "imported", Place: a, Imported: true},
	} {
		if e.At = int64(100 + i); e.Harness == "" {
			e.Harness = "claude"
		}
		w.saw(e)
	}
	for _, step := range []struct {
		place project.Location
		want  string
	}{{a, "imported unknown process live killed ended closed ended"}, {plain, "elsewhere ended"}} {
		s, _ := w.saw(project.SessionEvent{ID: "new in " + step.place.Slug, Place: step.place, Harness: "claude"})
		got := []string{}
		w.tx(func(ctx context.Context, tx *store.Tx) error {
			all, err := project.LineageSessions(ctx, tx, s)
			for _, f := range all {
				if f.HasEnded() {
					f.ID += " ended"
				}
				got = append(got, f.ID)
			}
			return err
		})
		w.want(step.place.Slug, strings.Join(got, " "), step.want)
	}
}
