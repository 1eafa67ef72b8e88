package memory

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory/rules"
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
	"cairn/internal/store/follow"
	"cairn/internal/store/storetest"

	"go.uber.org/goleak"
)

// Environment variables of a child process.
const (
	childVar = "CAIRN_MEMORY_CHILD"
	pathVar  = "CAIRN_MEMORY_STORE"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(childVar) != "" {
		os.Exit(childMain())
	}
	goleak.VerifyTestMain(m)
}

// desk is a service with a store of the test, which contains a vault and a memory.
type desk struct {
	testing.TB
	*Service
	clock  *storetest.Clock
	vault  string
	memory string
	leases *follow.Leases // of lanes
}

// newDesk returns a desk whose clock does not move.
func newDesk(t testing.TB, change ...func(*Config)) *desk {
	t.Helper()
	d := &desk{TB: t, clock: &storetest.Clock{}}
	d.clock.Move(1_700_000_000 * time.Second)
	filter := must(redact.New(redact.Options{}))(t)
	c := Config{Settings: Defaults(), Filter: filter}
	for _, f := range change {
		f(&c)
	}
	d.Service = New(storetest.Open(t, store.Config{Clock: d.clock.Now}), c)
	service := d.Service
	t.Cleanup(func() {
		if err := service.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
		if d.Service != service {
			return
		}
		if found, err := d.Check(context.Background()); !t.Failed() && (err != nil || len(found) > 0) {
			t.Errorf("the check of memories found: %v %q", err, found)
		}
	})
	d.vault = d.newVault(Caller{}, "v")
	d.memory = d.newMemory(Caller{}, d.vault, "m")
	return d
}

// Fail is the method of the test, not of the service.
func (d *desk) Fail() { d.TB.Fail() }

func (d *desk) newVault(c Caller, title string) string {
	d.Helper()
	v, _, err := d.CreateVault(d.Context(), c, NewVault{Title: title})
	if err != nil {
		d.Fatal(err)
	}
	return v.VaultID
}

func (d *desk) newMemory(c Caller, vault, title string) string {
	d.Helper()
	m, _, err := d.CreateMemory(d.Context(), c, NewMemory{VaultID: vault, Title: title})
	if err != nil {
		d.Fatal(err)
	}
	return m.MemoryID
}

// joined connects the device's own user to a hub that is never contacted.
func (d *desk) joined() *desk {
	d.Helper()
	me := must(d.Whoami(d.Context(), Caller{}))(d)
	if err := d.Join(d.Context(), me.UserID, "http://hub.invalid", rules.NewID(), true); err != nil {
		d.Fatal(err)
	}
	return d
}

func (d *desk) add(text string) Added {
	d.Helper()
	out, _, err := d.AddEntry(d.Context(), Caller{}, NewEntry{MemoryID: d.memory, RawEntry: text})
	if err != nil {
		d.Fatal(err)
	}
	return out
}

// texts returns the committed entries of the memory, newest first.
func (d *desk) texts() string {
	d.Helper()
	var out []string
	for _, e := range must(d.ListEntries(d.Context(), Caller{}, ListArgs{MemoryID: d.memory, Limit: 50}))(d).Entries {
		out = append(out, e.RawEntry)
	}
	return strings.Join(out, " ")
}

// pending returns the inflight entries of the memory, oldest first.
func (d *desk) pending() string {
	d.Helper()
	var out []string
	for _, e := range must(d.ListInflight(d.Context(), Caller{}, d.memory, 50))(d).Entries {
		out = append(out, e.RawEntry)
	}
	return strings.Join(out, " ")
}

// sql runs a statement that damages or prepares the store.
func (d *desk) sql(query string, args ...any) {
	d.Helper()
	err := d.store.Write(d.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
	if err != nil {
		d.Fatalf("%s: %v", query, err)
	}
}

// query reads one value into dest.
func (d *desk) query(dest any, query string, args ...any) {
	d.Helper()
	err := d.store.Read(d.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{dest}, query, args...)
	})
	if err != nil {
		d.Fatalf("%s: %v", query, err)
	}
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%v (%s)", err, fault.As(err).Hint)
		}
		return v
	}
}

// wantError checks code, status and completeness of an error, and the content of its message
// and details.
func wantError(t testing.TB, what string, err error, status int, code string, parts ...string) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		t.Errorf("%s: %v, want %s", what, err, code)
		return
	}
	details, _ := json.Marshal(f.Details)
	if f.Code != code || Status(err) != status || f.Hint == "" || f.Message == "" || f.Details == nil {
		t.Errorf("%s: %d %s %q (hint %q) %s, want %d %s", what, Status(err), f.Code, f.Message, f.Hint, details, status, code)
	}
	for _, p := range parts {
		if !strings.Contains(f.Message+"\n"+string(details), p) {
			t.Errorf("%s: %q %s, want %s in it", what, f.Message, details, p)
		}
	}
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	return string(must(json.Marshal(v))(t))
}

// placeIn returns the location of a folder of the test.
func placeIn(t testing.TB, name string) project.Location {
	t.Helper()
	home := t.TempDir()
	dir := home + "/" + name
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return must(project.Locate(dir, home))(t)
}

func wantNot(t testing.TB, what, text, part string) {
	t.Helper()
	if strings.Contains(text, part) {
		t.Errorf("%s: %q holds %q", what, text, part)
	}
}
