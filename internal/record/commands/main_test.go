package commands_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/record"
	"cairn/internal/record/commands"
	"cairn/internal/record/consistency"
	"cairn/internal/redact"
	"cairn/internal/store"
	"cairn/internal/store/storetest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if name := os.Getenv(childVar); name != "" {
		os.Exit(childMain(name))
	}
	if os.Getenv("CAIRN_SOAK") == "" {
		// With -short, a second time with the other driver, rapid does a fifth of them.
		if err := flag.Set("rapid.checks", "15"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// desk is a service over a store of the test, in project p, and sessions that work with
// it.
type desk struct {
	testing.TB
	*commands.Commands
	store *store.Store
	clock *storetest.Clock
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	return deskWhere(t, time.Millisecond)
}

// deskWhere returns a desk whose clock advances by a step each time it is read.
func deskWhere(t testing.TB, step time.Duration) *desk {
	t.Helper()
	clock := &storetest.Clock{}
	clock.Move(1_700_000_000 * time.Second)
	d := &desk{TB: t, clock: clock, store: storetest.Open(t, store.Config{Clock: func() time.Time {
		clock.Move(step)
		return clock.Now()
	}})}
	filter, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.Commands = commands.New(d.store, record.Config{Filter: filter})
	t.Cleanup(func() {
		found, err := checked(context.Background(), d.store)
		if err != nil || len(found) > 0 {
			t.Errorf("check: %v %q", err, found)
		}
	})
	return d
}

// checked returns what the check of a store's records finds.
func checked(ctx context.Context, s *store.Store) (found []string, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		found, err = consistency.Check(ctx, tx)
		return err
	})
	return found, err
}

// as returns the caller of a session in project p.
func as(session string) record.Caller { return record.Caller{Project: "p", SessionID: session} }

func ptr(s string) *string { return &s }

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%v (%s)", err, hintOf(err))
		}
		return v
	}
}

func hintOf(err error) string { return fault.As(err).Hint }

// create creates a record below a parent, "" for a root.
func (d *desk) create(session, parent, title string) record.Record {
	d.Helper()
	a := record.CreateArgs{Caller: as(session), Type: "question", Title: title, Summary: "about " + title, Body: "body of " + title + "\n"}
	if parent != "" {
		a.ParentID = &parent
	}
	return must(d.Create(d.Context(), a))(d).Record
}

func (d *desk) activate(session, id string) record.Activated {
	d.Helper()
	return must(d.Activate(d.Context(), record.ActivateArgs{Caller: as(session), ID: id}))(d)
}

func (d *desk) body(session, id, body string) record.Updated {
	d.Helper()
	return must(d.Update(d.Context(), record.UpdateArgs{Caller: as(session), ID: id, Body: &body}))(d)
}

func (d *desk) move(session, id string, to record.State, why string) record.Transitioned {
	d.Helper()
	a := record.TransitionArgs{Caller: as(session), ID: id, ToState: to, Reason: why}
	if to == record.Resolved {
		a.Reason, a.ResolvedBy = "", why
	}
	return must(d.Transition(d.Context(), a))(d)
}

func (d *desk) sync(session string) record.SyncResult {
	d.Helper()
	return must(d.Sync(d.Context(), record.SyncArgs{Caller: as(session)}))(d)
}

func (d *desk) save(session string) record.Saved {
	d.Helper()
	return must(d.Save(d.Context(), record.SaveArgs{Caller: as(session)}))(d)
}

func (d *desk) close(session string) record.Closed {
	d.Helper()
	return must(d.Close(d.Context(), record.SaveArgs{Caller: as(session)}))(d)
}

func (d *desk) tick() int64 {
	d.Helper()
	return must(d.GetProject(d.Context(), record.GetProjectArgs{Caller: as("")}))(d).Tick
}

func (d *desk) get(id string) record.Record {
	d.Helper()
	return must(d.Get(d.Context(), record.GetRefArgs{Caller: as(""), ID: id}))(d)
}

// types returns the types of the activity, oldest first.
func (d *desk) types() []string {
	d.Helper()
	var all []string
	for _, a := range must(d.RecentActivity(d.Context(), record.ActivityArgs{Caller: as(""), Limit: 500}))(d) {
		all = append(all, a.Type)
	}
	slices.Reverse(all)
	return all
}

// wantError checks code, kind and hint of an error, and some details as JSON.
func wantError(t testing.TB, what string, err error, kind fault.Kind, code string, details ...string) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		t.Errorf("%s: %v, want %s", what, err, code)
		return
	}
	text, jsonErr := json.Marshal(f.Details)
	if jsonErr != nil {
		t.Fatal(jsonErr)
	}
	if f.Code != code || f.Kind != kind || f.Hint == "" || f.Message == "" {
		t.Errorf("%s: %s %s %q (hint %q), want %s %s", what, f.Kind, f.Code, f.Message, f.Hint, kind, code)
	}
	for _, d := range details {
		if !strings.Contains(string(text), d) {
			t.Errorf("%s: details %s, want %s in them", what, text, d)
		}
	}
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// wantList compares lists by their printed form.
func wantList(t testing.TB, what string, got any, want ...any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprintf("%v", want); g != w {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}

func idsOf(refs []record.Ref) (ids []string) {
	for _, r := range refs {
		ids = append(ids, r.ID)
	}
	return ids
}
