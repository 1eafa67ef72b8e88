package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/gosqlite"
)

// Write stores one note for each id in one transaction.
func Write(ctx context.Context, s *store.Store, sync store.Sync, ids ...string) error {
	return s.Write(ctx, sync, func(ctx context.Context, tx *store.Tx) error {
		for _, id := range ids {
			if err := Note(ctx, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// MustWrite is Write with store.Full. It fails the test if the write fails.
func MustWrite(t testing.TB, s *store.Store, ids ...string) {
	t.Helper()
	if err := Write(t.Context(), s, store.Full, ids...); err != nil {
		t.Fatalf("write %q: %v", ids, err)
	}
}

// IDs returns the ids in the change log, in its order.
func IDs(t testing.TB, s *store.Store) []string {
	t.Helper()
	out := []string{}
	for _, c := range Changes(t, s) {
		out = append(out, c.ID)
	}
	return out
}

// ExpectIDs fails the test unless the change log has these ids, in this order.
func ExpectIDs(t testing.TB, s *store.Store, want ...string) {
	t.Helper()
	if got := IDs(t, s); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the log holds %q, want %q", got, want)
	}
}

// ExpectCode fails the test unless err is a fault of this code.
func ExpectCode(t testing.TB, err error, code string) {
	t.Helper()
	if !fault.HasCode(err, code) {
		t.Errorf("got error %v (code %q), want code %q", err, CodeOf(err), code)
	}
}

// CodeOf returns the code of an error, "" for nil.
func CodeOf(err error) string {
	if err == nil {
		return ""
	}
	return fault.As(err).Code
}

// Raw opens the file with the same driver, without the store.
func Raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := openRaw(url.URL{Scheme: "file", Path: path})
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func openRaw(u url.URL) (*sql.DB, error) {
	if key := Key(); key != nil {
		u.RawQuery = gosqlite.URIQuery(key)
		return sql.OpenDB(gosqlite.Driver{}.Connector(u.String())), nil
	}
	if strings.HasPrefix(store.Driver, "mattn") {
		return sql.Open("sqlite3", u.String())
	}
	return OpenFile(u.Path, ""), nil
}

// RawExec runs statements over a file that Raw has opened.
func RawExec(t testing.TB, db *sql.DB, queries ...string) {
	t.Helper()
	for _, q := range queries {
		if _, err := db.ExecContext(context.Background(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// Closed closes a store.
func Closed(t testing.TB, s *store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

// Exec runs statements in one write.
func Exec(t testing.TB, s *store.Store, queries ...string) {
	t.Helper()
	err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for _, q := range queries {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Append appends one change in a write.
func Append(t *testing.T, s *store.Store, c store.Change) (seq int64) {
	t.Helper()
	err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) (err error) {
		seq, err = tx.Append(ctx, c)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seq
}
