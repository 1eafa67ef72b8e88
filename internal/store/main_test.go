package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/gosqlite"
	"cairn/internal/store/storetest"

	"go.uber.org/goleak"
)

const (
	childVar = "CAIRN_TEST_CHILD"
	orderVar = "CAIRN_TEST_ORDER"
)

// order contains the instructions for a child process.
type order struct {
	Path   string
	Sync   store.Sync
	Role   store.Role
	For    time.Duration
	Mask   int
	Prefix string
}

func TestMain(m *testing.M) {
	flag.Parse()
	if name := os.Getenv(childVar); name != "" {
		os.Exit(childMain(name))
	}
	if os.Getenv("CAIRN_SOAK") == "" {
		// With -short, a second run with the other driver, rapid does a fifth of its checks.
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

func childMain(name string) int {
	var o order
	err := json.Unmarshal([]byte(os.Getenv(orderVar)), &o)
	if err == nil {
		err = runChild(name, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, name, err)
		return 1
	}
	return 0
}

func runChild(name string, o order) error {
	in := bufio.NewReader(os.Stdin)
	switch name {
	case "first writer":
		return firstWriter(o, in)
	case "create":
		return create(o)
	case "write until killed":
		return writeUntilKilled(o)
	case "open and close until killed":
		return openAndCloseUntilKilled(o)
	case "compete":
		return compete(o, in)
	case "record until killed":
		return recordUntilKilled(o)
	case "encrypt until killed":
		return encryptUntilKilled(o)
	case "hold the lock":
		return holdLock(o, in)
	case "keep open":
		return keepOpen(o, in)
	case "salvage":
		return salvageChild(o, in)
	}
	return runLinuxChild(name, o)
}

// child starts a child process of this package.
func child(t testing.TB, name string, o order) *storetest.Process {
	t.Helper()
	return storetest.StartProcess(t, storetest.Command("", childEnv(t, name, o)...))
}

// childEnv returns the variables that make the test binary a child.
func childEnv(t testing.TB, name string, o order) []string {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return []string{childVar + "=" + name, orderVar + "=" + string(text)}
}

// open calls store.Open, with an encrypted store if the test binary encrypts all stores.
func open(ctx context.Context, c store.Config) (*store.Store, error) {
	return store.Open(ctx, storetest.Config(c))
}

// write stores one note for each id in one transaction.
func write(ctx context.Context, s *store.Store, sync store.Sync, ids ...string) error {
	return s.Write(ctx, sync, func(ctx context.Context, tx *store.Tx) error {
		for _, id := range ids {
			if err := storetest.Note(ctx, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func mustWrite(t testing.TB, s *store.Store, ids ...string) {
	t.Helper()
	if err := write(t.Context(), s, store.Full, ids...); err != nil {
		t.Fatalf("write %q: %v", ids, err)
	}
}

// ids returns the ids in the change log, in its order.
func ids(t testing.TB, s *store.Store) []string {
	t.Helper()
	out := []string{}
	for _, c := range storetest.Changes(t, s) {
		out = append(out, c.ID)
	}
	return out
}

func expectIDs(t testing.TB, s *store.Store, want ...string) {
	t.Helper()
	if got := ids(t, s); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the log holds %q, want %q", got, want)
	}
}

// expectCode fails the test unless err is a fault of this code.
func expectCode(t testing.TB, err error, code string) {
	t.Helper()
	if !fault.HasCode(err, code) {
		t.Errorf("got error %v (code %q), want code %q", err, codeOf(err), code)
	}
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return fault.As(err).Code
}

// raw opens the file with the same driver, without the store.
func raw(t testing.TB, path string) *sql.DB {
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
	if key := storetest.Key(); key != nil {
		u.RawQuery = gosqlite.URIQuery(key)
		return sql.OpenDB(encrypted(u.String())), nil
	}
	if strings.HasPrefix(store.Driver, "mattn") {
		return sql.Open("sqlite3", u.String())
	}
	return storetest.OpenFile(u.Path, ""), nil
}

// encrypted is the URI of an encrypted file.
type encrypted string

func (e encrypted) Driver() driver.Driver { return gosqlite.Driver{} }
func (e encrypted) Connect(context.Context) (driver.Conn, error) {
	return gosqlite.Driver{}.Open(string(e))
}

func rawExec(t testing.TB, db *sql.DB, queries ...string) {
	t.Helper()
	for _, q := range queries {
		if _, err := db.ExecContext(context.Background(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func closed(t testing.TB, s *store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}
