package commands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/forget"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/histories"
	"cairn/internal/store"
)

func TestActivateLoadsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s", "", "root")
	d.create("s", "R001", "target")
	d.create("s", "R002", "open child")
	d.create("s", "R002", "later child")
	d.create("s", "R003", "grandchild")
	d.create("s", "R004", "grandchild of the other")
	d.create("s", "R005", "too far down")
	d.move("s", "R004", record.Later, "x")
	out := d.activate("s2", "r2")
	b := out.Context
	if out.SessionID != "s2" || out.AlreadyLoaded || b.Target.Body != "body of target\n" || b.Parent == nil || b.Parent.Body != "body of root\n" {
		t.Errorf("activated %+v", out)
	}
	wantList(t, "open children", []string{b.Children.Open[0].ID, b.Children.Open[0].Body}, "R003", "body of open child\n")
	wantList(t, "other children", idsOf(b.Children.Other), "R004")
	wantList(t, "grandchildren", idsOf(b.Grandchildren), "R005", "R006")
	want(t, "children of the child's reference", b.Children.Other[0].ChildrenCount, 1)
	root := d.activate("s2", "R001")
	if root.Context.Parent != nil || len(root.Context.Grandchildren) != 2 || root.Context.Children.Other == nil {
		t.Errorf("a root: %+v", root.Context)
	}
	made := must(d.Activate(t.Context(), record.ActivateArgs{Caller: as(""), ID: "R001"}))(t)
	if !strings.HasPrefix(made.SessionID, "S-") || len(made.SessionID) != 28 || made.SessionID != strings.ToUpper(made.SessionID) {
		t.Errorf("a session of its own: %q", made.SessionID)
	}
	own := must(d.Activate(t.Context(), record.ActivateArgs{Caller: record.Caller{Project: "p", Transport: "wire"}, ID: "R001"}))(t)
	want(t, "the transport's session", own.SessionID, "wire")
}

func TestActivateReportsOtherHolders(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.create("s1", "", "a")
	d.create("s1", "", "b")
	d.activate("s2", "R002")
	out := d.activate("s2", "R001")
	if c := out.Conflict; c == nil || c.SessionID != "s1" || c.LastActivity == 0 || c.Message == "" {
		t.Fatalf("conflict %+v", out.Conflict)
	}
	if w := out.Context.Warnings; len(w) != 1 || w[0].Type != "conflict" || w[0].Message == "" {
		t.Errorf("warnings %+v", w)
	}
	count := func(word string) int { return strings.Count(strings.Join(d.types(), " "), word) }
	detected, activations := count("conflict_detected"), count("activation")
	if again := d.activate("s2", "R001"); again.Conflict == nil || !again.AlreadyLoaded || again.Changed != nil {
		t.Errorf("activated again: %+v", again)
	}
	want(t, "repeating logs nothing: conflicts", count("conflict_detected"), detected)
	want(t, "and activations", count("activation"), activations)

	third := d.activate("s3", "R001")
	if third.Conflict.SessionID != "s2" || !strings.Contains(third.Conflict.Message, "2 other sessions") {
		t.Errorf("of several the last active is named: %+v", third.Conflict)
	}
	d.activate("s2", "R001")
	want(t, "the holders have changed: conflicts", count("conflict_detected"), detected+2)
	for range 2 {
		calm := must(d.Activate(ctx, record.ActivateArgs{Caller: as("s2"), ID: "R001", Override: true}))(t)
		if calm.Conflict != nil || len(calm.Context.Warnings) != 0 {
			t.Errorf("overridden: %+v", calm)
		}
	}
	want(t, "resolved once", count("conflict_resolved"), 1)
	d.close("s1")
	d.close("s3")
	if out := d.activate("s2", "R001"); out.Conflict != nil {
		t.Error("closed sessions hold nothing")
	}
	var holders []string
	for _, h := range must(d.ActiveSessions(ctx, record.ActiveSessionsArgs{Caller: as("s2"), RecordID: "r1"}))(t) {
		holders = append(holders, fmt.Sprint(h.SessionID, h.IsCurrent))
	}
	wantList(t, "active sessions", holders, "s2true")
	_, err := d.ActiveSessions(ctx, record.ActiveSessionsArgs{Caller: as("s2"), RecordID: "R404"})
	wantError(t, "of an unknown record", err, fault.NotFound, record.CodeNotFound)
}

func TestActivatingAgainReadsAfreshAndMovesTheBaseVersion(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "a")
	d.activate("s2", "R001")
	d.body("s1", "R001", "new\n")
	d.move("s1", "R001", record.Later, "x")
	out := d.activate("s2", "R001")
	c := out.Changed
	if c == nil || c.FromVersion != 1 || c.ToVersion != 3 || !strings.Contains(c.Diff.Body, "+new") || c.Diff.State.New != "LATER" || c.Diff.Title != nil {
		t.Fatalf("changed since loaded: %+v", c)
	}
	want(t, "the bundle is fresh", out.Context.Target.Body, "new\n")
	if out := d.body("s2", "R001", "mine"); out.Conflict != nil {
		t.Error("activating has not moved the base version")
	}
	if out := d.activate("s2", "R001"); out.Changed != nil || !out.AlreadyLoaded {
		t.Errorf("nothing changed: %+v", out)
	}
}

func TestSessionsThatBeginWithAnothersRecordBranchFromIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "a")
	d.create("closed", "", "b")
	d.close("closed")
	d.activate("s2", "R001")
	d.activate("s3", "R002")
	d.activate("s3", "R001") // not its first
	d.create("s4", "", "own")
	branched := must(d.RecentActivity(t.Context(), record.ActivityArgs{Caller: as(""), Types: []string{"session_branched"}}))(t)
	if len(branched) != 1 || branched[0].SessionID != "s2" || branched[0].Details["parent_session"] != "s1" {
		t.Errorf("branched %+v", branched)
	}
}

func TestSyncReportsChangesOfOthers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "a")
	d.activate("s2", "R001")
	if out := d.sync("s2"); out.TickGap != 0 || out.Warning != "" || out.Changes == nil || len(out.Changes) != 0 || out.SessionStatus != "active" {
		t.Errorf("nothing to report: %+v", out)
	}
	d.body("s1", "R001", "new")
	d.create("s2", "", "own")
	d.move("s1", "R001", record.Later, "x")
	d.create("s1", "R001", "child")
	d.save("s1")
	out := d.sync("s2")
	if out.ProjectTick != 6 || out.SessionTickBefore != 1 || out.TickGap != 5 || out.Warning != "5 writes occurred since your last sync" || out.Truncated {
		t.Errorf("sync %+v", out)
	}
	var got []string
	for _, c := range out.Changes {
		got = append(got, fmt.Sprint(c.RecordID, " ", c.ChangeType, " ", c.BySession, " ", c.AtTick))
	}
	wantList(t, "changes", got, "R001 modified s1 2", "R001 state_changed s1 4", "R003 created s1 5")
	want(t, "of a body", fmt.Sprint(out.Changes[0].NewValue), "map[body:new]")
	if old := fmt.Sprint(out.Changes[1].OldValue); !strings.Contains(old, "state:OPEN") || strings.Contains(old, "body") {
		t.Errorf("of a state: %s", old)
	}
	if ref, ok := out.Changes[2].NewValue.(record.Ref); !ok || ref.Title != "child" || out.Changes[2].OldValue != nil {
		t.Errorf("of a new record: %+v", out.Changes[2])
	}
	if out := d.sync("s2"); out.TickGap != 0 || len(out.Changes) != 0 {
		t.Errorf("synced again: %+v", out)
	}
	_, err := d.Sync(t.Context(), record.SyncArgs{Caller: as("nobody")})
	wantError(t, "a session that never opened", err, fault.NotFound, record.CodeSessionNotFound)
}

func TestOwnWritesMoveTheSessionOnlyIfNothingIsUnseen(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "a") // tick 1, s1 at 1
	d.create("s1", "", "b") // 2, 2
	d.create("s2", "", "c") // 3: s2 began at 2, moves along
	d.create("s1", "", "d") // 4: s1 stays at 2
	if out := d.sync("s1"); out.SessionTickBefore != 2 || out.TickGap != 2 || len(out.Changes) != 1 || out.Changes[0].RecordID != "R003" {
		t.Errorf("s1 %+v", out)
	}
	if out := d.sync("s2"); out.SessionTickBefore != 3 {
		t.Errorf("s2 %+v", out)
	}
}

func TestSyncReturnsAtMost500ChangesAndGoesOnThere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "a")
	d.activate("s2", "R001")
	for n := range 620 {
		d.body("s1", "R001", fmt.Sprint(n))
	}
	one := d.sync("s2")
	if !one.Truncated || len(one.Changes) != 500 || one.SessionStatus != "stale" || one.TickGap != 620 {
		t.Errorf("first: %d changes, %+v", len(one.Changes), one.TickGap)
	}
	two := d.sync("s2")
	if two.Truncated || len(two.Changes) != 120 || two.SessionTickBefore != 501 || two.Changes[0].AtTick != 502 {
		t.Errorf("second: %d changes from %d", len(two.Changes), two.SessionTickBefore)
	}
}

func TestStaleSessionsAreWarned(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "a")
	d.activate("s2", "R001")
	for range 20 {
		d.save("s1")
	}
	if out := must(d.Activate(t.Context(), record.ActivateArgs{Caller: as("s2"), ID: "R001", Override: true}))(t); len(out.Context.Warnings) != 0 {
		t.Errorf("20 behind: %+v", out.Context.Warnings)
	}
	d.save("s1")
	out := must(d.Activate(t.Context(), record.ActivateArgs{Caller: as("s2"), ID: "R001", Override: true}))(t)
	if w := out.Context.Warnings; len(w) != 1 || w[0].Type != "stale" {
		t.Errorf("21 behind: %+v", w)
	}
	want(t, "activating does not sync", d.sync("s2").SessionStatus, "stale")
}

func TestSaveAndClose(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.create("s", "", "a")
	d.create("s", "", "b")
	d.body("s", "R001", "x")
	saved := d.save("s")
	if !saved.Success || fmt.Sprint(saved.SavedRecords) != "[R001 R002]" || saved.LastSave == 0 {
		t.Errorf("saved %+v", saved)
	}
	want(t, "a save costs a tick", d.tick(), 4)
	if saved := d.save("s"); saved.SavedRecords == nil || len(saved.SavedRecords) != 0 {
		t.Errorf("nothing to save: %+v", saved)
	}
	want(t, "each time", d.tick(), 5)
	d.body("s", "R002", "y")
	closed := must(d.Close(ctx, record.SaveArgs{Caller: as("s"), Summary: "done"}))(t)
	if !closed.Success || fmt.Sprint(closed.DeactivatedRecords) != "[R001 R002]" || !strings.Contains(closed.UnsavedWarning, "R002") {
		t.Errorf("closed %+v", closed)
	}
	want(t, "closing costs none", d.tick(), 6)
	again := d.close("s")
	if !again.Success || again.DeactivatedRecords == nil || len(again.DeactivatedRecords) != 0 || again.UnsavedWarning != "" {
		t.Errorf("closed again %+v", again)
	}
	for name, call := range map[string]func() error{
		"save":  func() error { _, err := d.Save(ctx, record.SaveArgs{Caller: as("s")}); return err },
		"sync":  func() error { _, err := d.Sync(ctx, record.SyncArgs{Caller: as("s")}); return err },
		"close": func() error { _, err := d.Close(ctx, record.SaveArgs{Caller: as("nobody")}); return err },
		"none":  func() error { _, err := d.Close(ctx, record.SaveArgs{Caller: as("")}); return err },
	} {
		wantError(t, name, call(), fault.NotFound, record.CodeSessionNotFound)
	}
	_, err := d.Save(ctx, record.SaveArgs{Caller: as("s"), Summary: strings.Repeat("x", 1001)})
	wantError(t, "a long summary", err, fault.Invalid, record.CodeInvalid, `"summary"`)

	d.create("other", "", "c")
	again2 := d.activate("s", "R003")
	if again2.SessionID != "s" || again2.AlreadyLoaded {
		t.Errorf("opened again: %+v", again2)
	}
	want(t, "at the project's tick", d.sync("s").SessionTickBefore, d.tick())
	last := must(d.LastActive(ctx, as(""), 5))(t)
	wantList(t, "the last session's records", idsOf(last), "R003")
	d.close("s")
	wantList(t, "also once it is closed", idsOf(must(d.LastActive(ctx, as(""), 5))(t)), "R003")
	newest := must(d.RecentActivity(ctx, record.ActivityArgs{Caller: as(""), Types: []string{"session_closed"}}))(t)
	want(t, "the summary is in the activity", newest[1].Summary, "done")
}

func TestASessionIsTheHarnesss(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	above := project.Process{PID: 4242, Start: 99}
	err := d.store.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		q, err := project.Ensure(ctx, tx, "p")
		if err != nil {
			return err
		}
		_, _, err = project.RecordSession(ctx, tx, project.SessionEvent{ID: "harness-1", Project: &q, Harness: "claude", PID: above.PID, PIDStart: above.Start})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c := record.Caller{Project: "p", Ancestors: []project.Process{{PID: 7, Start: 7}, above}, Transport: "wire"}
	must(d.Create(t.Context(), record.CreateArgs{Caller: c, Type: "t", Title: "t"}))(t)
	want(t, "by process", must(d.ActiveSessions(t.Context(), record.ActiveSessionsArgs{Caller: c, RecordID: "R001"}))(t)[0].SessionID, "harness-1")
	c.Ancestors[1].Start++
	out := must(d.Activate(t.Context(), record.ActivateArgs{Caller: c, ID: "R001"}))(t)
	want(t, "a reused number is another process", out.SessionID, "wire")
	c.SessionID = "explicit"
	out = must(d.Activate(t.Context(), record.ActivateArgs{Caller: c, ID: "R001"}))(t)
	want(t, "the explicit one wins", out.SessionID, "explicit")
}

func TestASessionHasAClockInEachProject(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s", "", "a")
	q := record.Caller{Project: "q", SessionID: "s"}
	must(d.Create(t.Context(), record.CreateArgs{Caller: q, Type: "t", Title: "t"}))(t)
	must(d.Create(t.Context(), record.CreateArgs{Caller: q, Type: "t", Title: "t"}))(t)
	must(d.Close(t.Context(), record.SaveArgs{Caller: q}))(t)
	if out := d.sync("s"); out.ProjectTick != 1 || out.SessionTickBefore != 1 {
		t.Errorf("in p: %+v", out)
	}
}

func TestMergedProjectsKeepOneHistory(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.create("s", "", "a")
	d.body("s", "R001", "b")
	merge := func(from, into string) error {
		return d.store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
			if _, err := project.Ensure(ctx, tx, into); err != nil {
				return err
			}
			return project.Merge(ctx, tx, from, into, histories.MoveRows)
		})
	}
	if err := merge("p", "big"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"p", "big"} {
		c := record.Caller{ProjectID: name, SessionID: "s"}
		p := must(d.GetProject(ctx, record.GetProjectArgs{Caller: c}))(t)
		if p.ID != "big" || p.Tick != 2 {
			t.Errorf("%s is %+v", name, p)
		}
		want(t, "history", len(must(d.History(ctx, record.HistoryArgs{Caller: c, ID: "R001"}))(t)), 2)
	}
	d.body("s", "R001", "c")
	want(t, "the next id", d.create("s", "R001", "child").ID, "R002")
	want(t, "activity", len(d.types()), 5)
	diff := must(d.Diff(ctx, record.DiffArgs{Caller: as("s"), ID: "R001", From: "tick:1"}))(t)
	want(t, "from before the merge", diff.FromVersion.Version, 1)

	must(d.Create(ctx, record.CreateArgs{Caller: record.Caller{Project: "third"}, Type: "t", Title: "t"}))(t)
	if err := merge("third", "big"); err != nil {
		t.Fatal(err)
	}
	want(t, "the record of the third", d.get("R003").Title, "t")
	if err := merge("empty", "big"); err == nil {
		t.Error("an unknown project was merged")
	}
}

func TestPurgingObservationsKeepsSessionsOfRecords(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	dir := t.TempDir()
	err := d.store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		q, err := project.Ensure(ctx, tx, "p")
		if err != nil {
			return err
		}
		for _, id := range []string{"with records", "without"} {
			if _, _, err := project.RecordSession(ctx, tx, project.SessionEvent{ID: id, Project: &q, Harness: "claude", At: 1_600_000_000}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d.create("with records", "", "a")
	j := observation.New(d.store, observation.Config{Home: dir, Kept: []observation.Keeper{record.Kept}})
	for _, a := range []forget.PurgeArgs{{Session: "with records", Confirm: true}, {Session: "without", Confirm: true}} {
		if _, err := forget.Purge(ctx, j, a); err != nil {
			t.Fatal(err)
		}
	}
	if out := d.body("with records", "R001", "still active"); out.Conflict != nil || out.Record.Version != 2 {
		t.Errorf("after the purge: %+v", out)
	}
	var left []string
	err = d.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, id := range []string{"with records", "without"} {
			if _, ok, err := project.FindSession(ctx, tx, id); err != nil {
				return err
			} else if ok {
				left = append(left, id)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantList(t, "sessions left", left, "with records")
}

func TestSyncReturnsNoMoreThanAnAnswerCanHold(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "a")
	d.activate("s2", "R001")
	big := strings.Repeat("0123456789abcde\n", 1<<16)
	for _, end := range []string{"a", "b", "c", "d", "e", "f"} {
		d.body("s1", "R001", big[1:]+end)
	}
	var ticks []string
	for i := 0; ; i++ {
		out := d.sync("s2")
		for _, c := range out.Changes {
			ticks = append(ticks, fmt.Sprint(c.AtTick))
		}
		data, err := json.Marshal(out)
		if err != nil || len(data) > 9<<20 || len(out.Changes) == 0 || i > 6 {
			t.Fatalf("sync %d: %d changes in %d bytes, %v", i, len(out.Changes), len(data), err)
		}
		if !out.Truncated {
			want(t, "syncs", i, 1)
			break
		}
	}
	wantList(t, "each change once", ticks, "2", "3", "4", "5", "6", "7")
}
