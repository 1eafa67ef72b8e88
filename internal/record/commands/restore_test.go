package commands_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/histories"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// exported returns the changes of all projects' records as in an export.
func exported(t testing.TB, s *store.Store) (list []histories.Exported) {
	t.Helper()
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return histories.Export(ctx, tx, project.Scope{}, func(kind string, v any) error {
			e := v.(histories.Exported)
			e.Kind = kind
			list = append(list, e)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// filterOf returns a filter with the default rules.
func filterOf(t testing.TB) *redact.Filter {
	t.Helper()
	filter, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

// restored applies the changes of an export, each in a separate transaction.
func restored(t testing.TB, s *store.Store, list []histories.Exported) histories.Counts {
	t.Helper()
	r := histories.NewDocuments(filterOf(t))
	for i, e := range list {
		err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, why, err := r.Check(ctx, tx, histories.Document{Exported: e})
			if why != nil {
				t.Fatalf("change %d (%s): %v", i, e.Doc, why)
			}
			return err
		})
		if err != nil {
			t.Fatalf("change %d (%s): %v", i, e.Doc, err)
		}
	}
	for i, e := range list {
		err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
			return r.Apply(ctx, tx, histories.Document{Exported: e})
		})
		if err != nil {
			t.Fatalf("change %d (%s): %v", i, e.Doc, err)
		}
	}
	return r.Counts()
}

// deskOver returns the same desk over another, empty store.
func deskOver(t testing.TB, d *desk) *desk {
	t.Helper()
	other := newDesk(t)
	other.clock.Move(d.clock.Now().Sub(other.clock.Now()))
	return other
}

// The same commands run twice within one tick of the clock, so their documents and times
// are equal.
func TestEqualEventsOfOneInstantAreTwoEvents(t *testing.T) {
	t.Parallel()
	d := deskWhere(t, 0) // as coarse clocks are
	d.create("s1", "", "root")
	d.create("s2", "", "other")
	for range 3 {
		d.activate("s1", "R001")
		d.activate("s3", "R001")
		d.sync("s2")
		d.close("s3")
	}
	d.activate("s3", "R001")
	list := exported(t, d.store)
	texts := map[string]int{}
	for _, e := range list {
		texts[e.ID+string(e.Doc)]++
	}
	if len(texts) == len(list) {
		t.Fatal("no two changes are equal")
	}
	other := deskOver(t, d)
	if n := restored(t, other.store, list); n.Added != len(list) {
		t.Errorf("%d of %d changes", n.Added, len(list))
	}
	wantCopy(t, other, d)
	if n := restored(t, other.store, list); n.Known != len(list) || n.Added != 0 {
		t.Errorf("again: %+v of %d", n, len(list))
	}
	wantCopy(t, other, d)
}

// wantCopy fails the test unless two desks have the same rows, log and output.
func wantCopy(t testing.TB, got, want *desk) {
	t.Helper()
	wantRows(t, got, want)
	if g, w := pastOf(t, got.Commands, ""), pastOf(t, want.Commands, ""); g != w {
		t.Fatalf("it has\n%s\nwant\n%s", g, w)
	}
}

// wantRows fails the test unless two desks have the same rows and log.
func wantRows(t testing.TB, got, want *desk) {
	t.Helper()
	if g, w := rowsOf(t, got.store), rowsOf(t, want.store); g != w {
		t.Fatalf("the rows are\n%s\nwant\n%s", g, w)
	}
	g, w := exported(t, got.store), exported(t, want.store)
	if !slices.EqualFunc(g, w, func(a, b histories.Exported) bool {
		return a.Kind == b.Kind && a.ID == b.ID && a.Session == b.Session && a.At == b.At && string(a.Doc) == string(b.Doc)
	}) {
		t.Fatalf("the log has %d changes, want %d; or they differ", len(g), len(w))
	}
	for _, d := range []*desk{got, want} {
		if found, err := checked(t.Context(), d.store); err != nil || len(found) > 0 {
			t.Fatalf("check: %v %q", err, found)
		}
	}
}

func TestASessionWithoutAStartBeginsWithItsFirstChange(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "root")
	d.create("s1", "R001", "child")
	d.activate("s2", "R002")
	d.body("s2", "R002", "more\n")
	d.save("s2")
	d.body("s2", "R002", "still more\n")
	d.close("s1")
	d.activate("s1", "R001")
	list := slices.DeleteFunc(exported(t, d.store), func(e histories.Exported) bool {
		return strings.Contains(string(e.Doc), record.SessionStarted)
	})
	other := deskOver(t, d)
	restored(t, other.store, list)
	if g, w := sessionsOf(t, other.store), sessionsOf(t, d.store); g != w {
		t.Errorf("the sessions are\n%s\nwant\n%s", g, w)
	}
	at := record.OverviewArgs{Caller: as(""), At: "tick:2"}
	if g, w := must(other.Overview(t.Context(), at))(t), must(d.Overview(t.Context(), at))(t); len(g.OpenSessions) != 1 ||
		g.OpenSessions[0].ID != w.OpenSessions[0].ID || !slices.Equal(g.OpenSessions[0].ActiveRecords, w.OpenSessions[0].ActiveRecords) {
		t.Errorf("in the past %+v, want %+v", g.OpenSessions, w.OpenSessions)
	}
	if out := other.close("s2"); !strings.Contains(out.UnsavedWarning, "R002") || len(out.DeactivatedRecords) != 1 {
		t.Errorf("closed %+v", out)
	}
	if n := restored(t, other.store, list); n.Known != len(list) {
		t.Errorf("again %+v", n)
	}
}

// sessionsOf returns the sessions of the records, without the times of their opening.
func sessionsOf(t testing.TB, s *store.Store) string {
	t.Helper()
	var out []string
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var line string
			err := r.Scan(&line)
			out = append(out, line)
			return err
		}, `SELECT json_array(s.id, r.closed, r.last_sync_tick, r.save_tick, r.last_save, r.last_activity, ifnull(b.id, ''),
			(SELECT json_group_array(number) FROM (SELECT a.number FROM activations a WHERE a.session_key = r.session_key ORDER BY a.number)))
			FROM record_sessions r JOIN sessions s ON s.key = r.session_key LEFT JOIN sessions b ON b.key = r.parent ORDER BY s.id`)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

// The documents have fields in another order and case.
func TestDocumentsInAnotherSpellingAreNormalised(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "root <&>")
	d.save("s1")
	list := exported(t, d.store)
	foreign := slices.Clone(list)
	for i := range foreign {
		fields := map[string]any{}
		if err := json.Unmarshal(foreign[i].Doc, &fields); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"tick", "type", "event", "record_id"} {
			if v, ok := fields[name]; ok {
				delete(fields, name)
				fields[strings.ToUpper(name)] = v
			}
		}
		for _, name := range []string{"created_ns", "modified_ns"} {
			delete(fields, name) // a number that does not survive
		}
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		foreign[i].Doc = text
		if foreign[i].Kind == record.KindRecord {
			foreign[i].Doc = json.RawMessage(strings.Replace(string(text), "{", `{ "created_ns":1700000000001000000,"modified_ns":1700000000001000000,`, 1))
		}
	}
	other := deskOver(t, d)
	restored(t, other.store, foreign)
	wantCopy(t, other, d)
	if n := restored(t, d.store, foreign); n.Known != len(list) {
		t.Errorf("where it comes from: %+v", n)
	}
}
