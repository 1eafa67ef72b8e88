package storetest

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/store"
)

// Path returns a path for a store of the test; nothing exists there yet.
func Path(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "data", "cairn.db")
}

// Open opens a store, in a folder of the test if c has no path. At the end of the test the
// store is checked, and closed unless the test has closed it.
func Open(t testing.TB, c store.Config) *store.Store {
	t.Helper()
	if c.Path == "" {
		c.Path = Path(t)
	}
	s, err := store.Open(t.Context(), Config(c))
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
		check(t, c)
	})
	return s
}

// Check fails the test if the store at path is damaged.
func Check(t testing.TB, path string) {
	t.Helper()
	check(t, store.Config{Path: path})
}

func check(t testing.TB, c store.Config) {
	t.Helper()
	ctx := context.Background() // the test's context has ended during clean-up
	s, err := store.Open(ctx, Config(store.Config{Path: c.Path, Key: c.Key, ReadOnly: true}))
	if err != nil {
		t.Errorf("open the store to check it: %v", err)
		return
	}
	if found, err := s.Check(ctx); err != nil || len(found) > 0 {
		t.Errorf("the store is not intact: %v %q", err, found)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close the checked store: %v", err)
	}
}

// Note appends a change as a part does, but without a row. Notes are independent of each
// other.
func Note(ctx context.Context, tx *store.Tx, id string) error {
	_, err := tx.Append(ctx, store.Change{
		Project: "p", Stream: "notes/" + id, Kind: "note", ID: id, Op: store.OpPut, Doc: []byte(`{"id":"` + id + `"}`),
	})
	return err
}

// Changes returns the whole change log.
func Changes(t testing.TB, s *store.Store) []store.Change {
	t.Helper()
	var out []store.Change
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = tx.Changes(ctx, 0, 1<<30)
		return err
	})
	if err != nil {
		t.Fatalf("read the change log: %v", err)
	}
	return out
}

// Clock is a clock that only the test moves. Its zero value is the Unix epoch.
type Clock struct{ ns atomic.Int64 }

// Now returns the clock's time; pass it as store.Config.Clock.
func (c *Clock) Now() time.Time { return time.Unix(0, c.ns.Load()) }

// Move moves the clock, backwards if d is negative.
func (c *Clock) Move(d time.Duration) { c.ns.Add(int64(d)) }
