package record_test

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
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// rowsOf is everything that the tables of records hold, in words.
func rowsOf(t testing.TB, s *store.Store) string {
	t.Helper()
	var out strings.Builder
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for _, query := range []string{
			`SELECT json_array(id, tick, last_record) FROM projects ORDER BY id`,
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

// told is what the commands that read the past tell of project p.
func told(t testing.TB, b *record.Book, at string) string {
	t.Helper()
	ctx, c := t.Context(), as("s0")
	all := []any{
		must(b.Overview(ctx, record.OverviewArgs{Caller: c, At: at}))(t),
		must(b.RecentActivity(ctx, record.ActivityArgs{Caller: c, Limit: 500, At: at}))(t),
		must(b.Search(ctx, record.SearchArgs{Caller: c, Query: "red blue green", Limit: 500, At: at}))(t),
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

// random does one command of a random session; refusals are part of it.
func (d *desk) random(t *rapid.T) {
	ctx := d.Context()
	c := as(rapid.SampledFrom([]string{"s0", "s1", "s2"}).Draw(t, "session"))
	id := fmt.Sprintf("R%03d", rapid.IntRange(1, 8).Draw(t, "record"))
	text := func(name string) *string {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"red", "blue", "green", "getUserById", "色", "\n"}), 0, 6).Draw(t, name)
		return ptr(strings.Join(words, " "))
	}
	switch rapid.IntRange(0, 9).Draw(t, "command") {
	case 0, 1:
		a := record.CreateArgs{
			Caller: c, Type: "note", Title: "T" + strings.ReplaceAll(*text("title"), "\n", ""), Body: *text("body"),
			State: rapid.SampledFrom([]record.State{"", record.Later, record.Resolved}).Draw(t, "state"),
		}
		if rapid.Bool().Draw(t, "child") {
			a.ParentID = &id
		}
		if rapid.Bool().Draw(t, "more") {
			a.Metadata, a.Cited = json.RawMessage(`{"a": 1.50, "b": ["x"]}`), []record.Cited{{Path: "a.go", Lines: "L1", Hash: "h"}}
		}
		_, _ = d.Create(ctx, a)
	case 2, 3, 4:
		_, _ = d.Activate(ctx, record.ActivateArgs{Caller: c, ID: id, Override: rapid.Bool().Draw(t, "override")})
	case 5, 6:
		_, _ = d.Update(ctx, record.UpdateArgs{
			Caller: c, ID: id, Body: text("body"), Summary: text("summary"), Force: rapid.Bool().Draw(t, "force"), Related: []string{"r1"},
		})
	case 7:
		_, _ = d.Transition(ctx, record.TransitionArgs{
			Caller: c, ID: id, ToState: rapid.SampledFrom(allStates()).Draw(t, "to"), Reason: "reason", ResolvedBy: "R001",
		})
	case 8:
		_, _ = d.Sync(ctx, record.SyncArgs{Caller: c})
	case 9:
		if rapid.Bool().Draw(t, "close") {
			_, _ = d.Close(ctx, record.SaveArgs{Caller: c})
		} else {
			_, _ = d.Save(ctx, record.SaveArgs{Caller: c, Summary: "saved"})
		}
	}
	if rapid.Bool().Draw(t, "wait") {
		d.clock.Move(time.Second)
	}
}

func allStates() []record.State {
	return []record.State{record.Open, record.Later, record.Resolved, record.Discarded}
}

// applyAll applies a log to a store, one change in each transaction.
func applyAll(t testing.TB, s *store.Store, log []store.Change) {
	t.Helper()
	for _, c := range log {
		if c.Kind != record.KindRecord && c.Kind != record.KindEvent {
			continue
		}
		err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error { return record.Apply(ctx, tx, c) })
		if err != nil {
			t.Fatalf("apply change %d (%s): %v", c.Seq, c.Doc, err)
		}
	}
}

func TestTheLogAppliedToAnEmptyStoreGivesEqualRecordsTicksSessionsAndHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		d.create("s0", "", "red")
		for range rapid.IntRange(1, 60).Draw(rt, "commands") {
			d.random(rt)
		}
		other := storetest.Open(t, store.Config{Clock: d.clock.Now})
		log := storetest.Changes(t, d.store)
		applyAll(t, other, log)
		again := record.New(other, record.Config{})
		for _, step := range []string{"applied", "applied twice"} {
			if got, want := rowsOf(t, other), rowsOf(t, d.store); got != want {
				t.Fatalf("%s: the rows are\n%s\nwant\n%s", step, got, want)
			}
			if got, want := told(t, again, ""), told(t, d.Book, ""); got != want {
				t.Fatalf("%s: it tells\n%s\nwant\n%s", step, got, want)
			}
			found, err := again.Check(t.Context())
			if err != nil || len(found) > 0 {
				t.Fatalf("%s: %v %q", step, err, found)
			}
			applyAll(t, other, log)
		}
	})
}

// someOf are four of the moments, as each is a replay of the log for each
// question; a soak asks at all of them.
func someOf(t *rapid.T, moments []string) []string {
	if os.Getenv("CAIRN_SOAK") != "" {
		return moments
	}
	return rapid.Permutation(moments).Draw(t, "moments")[:min(4, len(moments))]
}

func TestAsOfShowsTheProjectAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		d.create("s0", "", "red")
		seen := map[string]string{}
		for range rapid.IntRange(1, 25).Draw(rt, "commands") {
			d.random(rt)
			d.clock.Move(time.Second) // lest two commands share a millisecond
			at := record.Time(d.clock.Now().UnixNano()).String()
			seen[at] = told(t, d.Book, "")
			d.clock.Move(time.Second)
		}
		for _, at := range someOf(rt, slices.Sorted(maps.Keys(seen))) {
			if got, want := told(t, d.Book, at), seen[at]; got != want {
				t.Fatalf("at %s it tells\n%s\nwant\n%s", at, got, want)
			}
		}
	})
}
