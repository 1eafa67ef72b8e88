package commands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"pgregory.net/rapid"

	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/histories"
	"cairn/internal/store"
)

// mergeInto merges project p into another, and makes p a project without records again.
func (d *desk) mergeInto(into string) {
	err := d.store.Write(d.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		if _, err := project.Ensure(ctx, tx, into); err != nil {
			return err
		}
		if err := project.Merge(ctx, tx, "p", into, histories.MoveRows); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM project_aliases WHERE alias = 'p'`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE projects SET records_stream = 'records/p-' || (SELECT count(*) FROM changes) WHERE id = 'p'`)
		return err
	})
	if err != nil {
		d.Fatal(err)
	}
}

// TestMergedHistoriesLoseNothingAndKeepPastStates merges random histories of two
// projects.
func TestMergedHistoriesLoseNothingAndKeepPastStates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		history := func() {
			d.create("s0", "", "red")
			for range rapid.IntRange(1, 25).Draw(rt, "commands") {
				d.random(rt, tally{})
			}
		}
		history()
		d.mergeInto("all")
		history()
		all := record.Caller{ProjectID: "all", SessionID: "s0"}
		before := pastOfOther(t, d.Commands, all, "")
		ours := len(must(d.List(t.Context(), record.ListArgs{Caller: all}))(t))
		d.clock.Move(time.Second)
		moment := record.Time(d.clock.Now().UnixNano()).String()
		d.clock.Move(time.Second)
		theirs := map[string]record.Record{}
		versions := map[string]int{}
		for _, r := range must(d.List(t.Context(), record.ListArgs{Caller: as("s0")}))(t) {
			theirs[r.ID] = d.get(r.ID)
			versions[r.ID] = len(must(d.History(t.Context(), record.HistoryArgs{Caller: as("s0"), ID: r.ID}))(t))
		}
		d.mergeInto("all")
		for id, old := range theirs {
			wantMoved(t, d, all, id, ours, old, versions[id])
		}
		if got := pastOfOther(t, d.Commands, all, moment); got != before {
			t.Fatalf("before the merge it says\n%s", udiff.Unified("want", "got", before, got))
		}
		imported := deskOver(t, d)
		restored(t, imported.store, exported(t, d.store))
		wantRows(t, imported, d)
	})
}

// wantMoved fails the test unless a record is in a project, after the project's own
// records.
func wantMoved(t testing.TB, d *desk, in record.Caller, id string, ours int, old record.Record, versions int) {
	t.Helper()
	var number int
	if _, err := fmt.Sscanf(id, "R%d", &number); err != nil {
		t.Fatal(err)
	}
	moved := func(id string) string {
		var n int
		if _, err := fmt.Sscanf(id, "R%d", &n); err != nil {
			return id
		}
		return fmt.Sprintf("R%03d", n+ours)
	}
	now := must(d.Get(t.Context(), record.GetRefArgs{Caller: in, ID: moved(id)}))(t)
	if now.Title != old.Title || now.Body != old.Body || now.Summary != old.Summary || now.State != old.State || now.Version != old.Version ||
		now.Created != old.Created || now.Modified != old.Modified {
		t.Errorf("%s became %+v, want %+v", id, now, old)
	}
	if (old.ParentID == nil) != (now.ParentID == nil) || old.ParentID != nil && *now.ParentID != moved(*old.ParentID) {
		t.Errorf("%s has another parent", id)
	}
	for i, r := range old.Related {
		if now.Related[i] != moved(r) {
			t.Errorf("%s relates to %v, want %v moved by %d", id, now.Related, old.Related, ours)
		}
	}
	var metadata map[string]any
	if err := json.Unmarshal(now.Metadata, &metadata); err != nil || metadata["merged_from"] != "p "+id {
		t.Errorf("%s: metadata %s", id, now.Metadata)
	}
	want(t, "versions of "+id, len(must(d.History(t.Context(), record.HistoryArgs{Caller: in, ID: moved(id)}))(t)), versions)
}

func TestIdsInTheTextsOfMergedRecordsFollowTheRecords(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s0", "", "first")
	d.mergeInto("all")
	d.create("s0", "", "second")
	text := "R001 and (R001), R001R001 xR001 R001x R0010 R002 R404 `R001`: R001."
	d.activate("s0", "R001")
	d.body("s0", "R001", text)
	d.mergeInto("all")
	got := must(d.Get(t.Context(), record.GetRefArgs{Caller: record.Caller{ProjectID: "all", SessionID: "s0"}, ID: "R002"}))(t).Body
	want(t, "body", strings.TrimSpace(got), "R002 and (R002), R001R001 xR001 R001x R0010 R002 R404 `R002`: R002.")
}
