package memorytest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/items"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/vaults"
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
	"cairn/internal/store/follow"
	"cairn/internal/store/storetest"
)

// Desk is a service with a store of the test, which contains a vault and a memory.
type Desk struct {
	testing.TB
	*memories.Service
	Clock    *storetest.Clock
	VaultID  string
	MemoryID string
	leases   *follow.Leases // of lanes
}

// NewDesk returns a desk whose clock does not move.
func NewDesk(t testing.TB, change ...func(*memory.Config)) *Desk {
	t.Helper()
	d := &Desk{TB: t, Clock: &storetest.Clock{}}
	d.Clock.Move(1_700_000_000 * time.Second)
	filter := Must(redact.New(redact.Options{}))(t)
	c := memory.Config{Settings: memory.Defaults(), Filter: filter}
	for _, f := range change {
		f(&c)
	}
	d.Service = memories.New(storetest.Open(t, store.Config{Clock: d.Clock.Now}), c)
	service := d.Service
	t.Cleanup(func() {
		if err := service.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
		if d.Service != service {
			return
		}
		if found := Findings(t, d.Store); !t.Failed() && found != "" {
			t.Errorf("the check of memories found: %s", found)
		}
	})
	d.VaultID = d.NewVault(memory.Caller{}, "v")
	d.MemoryID = d.NewMemory(memory.Caller{}, d.VaultID, "m")
	return d
}

// Findings returns what Check finds in a store, "" for nothing.
func Findings(t testing.TB, s *store.Store) string {
	t.Helper()
	var found []string
	err := s.Read(context.Background(), func(ctx context.Context, tx *store.Tx) (err error) {
		found, err = items.Check(ctx, tx)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return strings.Join(found, "; ")
}

// Fail is the method of the test, not of the service.
func (d *Desk) Fail() { d.TB.Fail() }

func (d *Desk) NewVault(c memory.Caller, title string) string {
	d.Helper()
	v, _, err := d.CreateVault(d.Context(), c, vaults.NewVault{Title: title})
	if err != nil {
		d.Fatal(err)
	}
	return v.VaultID
}

func (d *Desk) NewMemory(c memory.Caller, vault, title string) string {
	d.Helper()
	m, _, err := d.CreateMemory(d.Context(), c, vaults.NewMemory{VaultID: vault, Title: title})
	if err != nil {
		d.Fatal(err)
	}
	return m.MemoryID
}

// Joined connects the device's own user to a hub that is never contacted.
func (d *Desk) Joined() *Desk {
	d.Helper()
	me := Must(d.Whoami(d.Context(), memory.Caller{}))(d)
	if err := d.Join(d.Context(), me.UserID, "http://hub.invalid", rules.NewID(), true); err != nil {
		d.Fatal(err)
	}
	return d
}

func (d *Desk) Add(text string) entries.Added {
	d.Helper()
	out, _, err := d.AddEntry(d.Context(), memory.Caller{}, contents.NewEntry{MemoryID: d.MemoryID, RawEntry: text})
	if err != nil {
		d.Fatal(err)
	}
	return out
}

// Texts returns the committed entries of the memory, newest first.
func (d *Desk) Texts() string {
	d.Helper()
	var out []string
	for _, e := range Must(d.ListEntries(d.Context(), memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID, Limit: 50}))(d).Entries {
		out = append(out, e.RawEntry)
	}
	return strings.Join(out, " ")
}

// Pending returns the inflight entries of the memory, oldest first.
func (d *Desk) Pending() string {
	d.Helper()
	var out []string
	for _, e := range Must(d.ListInflight(d.Context(), memory.Caller{}, d.MemoryID, 50))(d).Entries {
		out = append(out, e.RawEntry)
	}
	return strings.Join(out, " ")
}

// Exec runs a statement that damages or prepares the store.
func (d *Desk) Exec(query string, args ...any) {
	d.Helper()
	err := d.Store.Write(d.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
	if err != nil {
		d.Fatalf("%s: %v", query, err)
	}
}

// Query reads one value into dest.
func (d *Desk) Query(dest any, query string, args ...any) {
	d.Helper()
	err := d.Store.Read(d.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{dest}, query, args...)
	})
	if err != nil {
		d.Fatalf("%s: %v", query, err)
	}
}

func Must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%v (%s)", err, fault.As(err).Hint)
		}
		return v
	}
}

// WantError checks code, status and completeness of an error, and the content of its message
// and details.
func WantError(t testing.TB, what string, err error, status int, code string, parts ...string) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		t.Errorf("%s: %v, want %s", what, err, code)
		return
	}
	details, _ := json.Marshal(f.Details)
	if f.Code != code || memory.Status(err) != status || f.Hint == "" || f.Message == "" || f.Details == nil {
		t.Errorf("%s: %d %s %q (hint %q) %s, want %d %s", what, memory.Status(err), f.Code, f.Message, f.Hint, details, status, code)
	}
	for _, p := range parts {
		if !strings.Contains(f.Message+"\n"+string(details), p) {
			t.Errorf("%s: %q %s, want %s in it", what, f.Message, details, p)
		}
	}
}

func Want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func AsJSON(t testing.TB, v any) string {
	t.Helper()
	return string(Must(json.Marshal(v))(t))
}

// PlaceIn returns the location of a folder of the test.
func PlaceIn(t testing.TB, name string) project.Location {
	t.Helper()
	home := t.TempDir()
	dir := home + "/" + name
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return Must(project.Locate(dir, home))(t)
}

func WantNot(t testing.TB, what, text, part string) {
	t.Helper()
	if strings.Contains(text, part) {
		t.Errorf("%s: %q holds %q", what, text, part)
	}
}

func Second[T any](_ T, err error) error { return err }

// With returns the desk with another memory.
func (d *Desk) With(memory string) *Desk {
	other := *d
	other.MemoryID = memory
	return &other
}

// DeleteWith deletes an entry while a replicator runs.
func DeleteWith(t testing.TB, d *Desk, h *FakeHub, name string) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := d.DeleteEntry(context.Background(), memory.Caller{}, d.MemoryID, name)
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("delete: %v", err)
			}
			return
		default:
			d.Drain(h)
		}
	}
}
