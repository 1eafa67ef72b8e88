package store_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/follow"
	"cairn/internal/store/storetest"

	"github.com/gofrs/flock"
)

var update = flag.Bool("update", false, "rewrite testdata/schema.golden")

func TestSchemaIsTheGoldenOne(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	db := storetest.Raw(t, s.Path())
	var b strings.Builder
	for _, p := range []string{"user_version", "auto_vacuum", "journal_mode", "encoding", "page_size"} {
		var v string
		if err := db.QueryRowContext(t.Context(), "PRAGMA "+p).Scan(&v); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "-- %s = %s\n", p, v)
	}
	rows, err := db.QueryContext(t.Context(), `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n%s;\n", text)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "schema.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the schema has changed; if that is meant, run go test -update. It is now:\n%s", &b)
	}
}

func TestNewerSchemaIsRefusedForWritingAndReading(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	s, err := open(t.Context(), store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	storetest.MustWrite(t, s, "a")
	db := storetest.Raw(t, path)
	var known int
	if err := db.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&known); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		f := fault.As(err)
		if f == nil || f.Code != store.CodeNewer || f.Kind != fault.Unavailable || f.Hint != "upgrade cairn" ||
			!strings.Contains(f.Message, "99") || !strings.Contains(f.Message, fmt.Sprint(known)) {
			t.Errorf("%s: %v, want a refusal naming schemas 99 and %d", what, err, known)
		}
	}
	storetest.RawExec(t, db, "UPDATE store_meta SET value = '99' WHERE name = 'schema'", "PRAGMA user_version=99") // a newer cairn migrates while this one runs
	refused("writing", storetest.Write(t.Context(), s, store.Normal, "b"))
	refused("reading", s.Read(t.Context(), func(context.Context, *store.Tx) error { return nil }))
	storetest.Closed(t, s)
	for _, reading := range []bool{false, true} {
		s, err := open(t.Context(), store.Config{Path: path, ReadOnly: reading})
		if refused("opening", err); err == nil {
			storetest.Closed(t, s)
		}
	}
	storetest.RawExec(t, db, fmt.Sprintf("UPDATE store_meta SET value = '%d' WHERE name = 'schema'", known), fmt.Sprintf("PRAGMA user_version=%d", known))
	storetest.ExpectIDs(t, storetest.Open(t, store.Config{Path: path}), "a")
}

// Migrations only add tables, so an older store needs no backup before them (observations
// §13). A migration that rewrites rows must create a backup first; this test must then check
// that. The tables of followers may be recreated: a follower without a position reads the log
// again. Columns that move into them may be dropped.
func TestNoMigrationRewritesRows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("migrations", "*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	account := []string{"FOLLOWERS", "OLD_FOLLOWERS", "SET_ASIDE", "OLD_SET_ASIDE", "ARCHIVE_CURSOR", "ARCHIVE_ASIDE", "MEMORY_FAILURES", "MEMORY_LANES"}
	for _, file := range files {
		var code strings.Builder
		for line := range strings.Lines(string(content(t, file))) {
			line, _, _ = strings.Cut(line, "--")
			code.WriteString(strings.ToUpper(line) + "\n")
		}
		triggers := regexp.MustCompile(`(?s)CREATE TRIGGER.*?\bEND;`) // their bodies run later
		made := map[string]bool{"STORE_META": true}                   // tables to which the file may add rows
		for statement := range strings.SplitSeq(triggers.ReplaceAllString(code.String(), ""), ";") {
			words := strings.Fields(statement)
			if len(words) > 2 && words[0] == "CREATE" && words[1] == "TABLE" {
				made[words[2]] = true
			}
			if into := slices.Index(words, "INTO"); into > 0 && words[0] == "INSERT" && into+1 < len(words) && (made[words[into+1]] || slices.Contains(account, words[into+1])) {
				continue
			}
			if len(words) > 2 && slices.Contains([]string{"DROP TABLE", "ALTER TABLE"}, words[0]+" "+words[1]) && slices.Contains(account, words[2]) {
				continue
			}
			if len(words) > 5 && slices.Equal(words[:5], []string{"ALTER", "TABLE", "MEMORY_STREAMS", "DROP", "COLUMN"}) && slices.Contains([]string{"ATTEMPTS", "NEXT_ATTEMPT_NS", "LAST_ERROR"}, words[5]) {
				continue
			}
			if len(words) > 1 && words[0] == "DROP" && words[1] == "INDEX" {
				continue // an index contains no data that is not in its table
			}
			if len(words) > 0 && words[0] != "CREATE" && (words[0] != "ALTER" || !slices.Contains(words, "ADD")) {
				t.Errorf("%s: %s", filepath.Base(file), strings.Join(words, " "))
			}
		}
	}
}

func TestReadingDoesNotCreateAMissingStore(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	_, err := open(t.Context(), store.Config{Path: path, ReadOnly: true})
	storetest.ExpectCode(t, err, store.CodeMissing)
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("reading has made the folder: %v", err)
	}
	_, err = open(t.Context(), store.Config{})
	storetest.ExpectCode(t, err, "invalid")
}

// A process that is killed while it creates a store leaves these states.
func TestUnfinishedCreationIsCompleted(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, path string){
		"empty file": func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"header alone": func(t *testing.T, path string) {
			storetest.RawExec(t, storetest.Raw(t, path), "PRAGMA auto_vacuum=INCREMENTAL", "PRAGMA journal_mode=WAL")
		},
		"not yet write-ahead": func(t *testing.T, path string) {
			storetest.RawExec(t, storetest.Raw(t, path), "PRAGMA auto_vacuum=INCREMENTAL", "PRAGMA user_version=0", "VACUUM")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := storetest.Path(t)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			leave(t, path)
			_, err := open(t.Context(), store.Config{Path: path, ReadOnly: true})
			storetest.ExpectCode(t, err, store.CodeMissing)
			s := storetest.Open(t, store.Config{Path: path})
			storetest.MustWrite(t, s, "a")
			expectPragmas(t, path)
		})
	}
}

// expectPragmas fails the test unless the file has cairn's settings.
func expectPragmas(t testing.TB, path string) {
	t.Helper()
	db := storetest.Raw(t, path)
	for pragma, want := range map[string]string{"journal_mode": "wal", "auto_vacuum": "2"} {
		var got string
		if err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", pragma, got, err, want)
		}
	}
}

func create(o order) error {
	ctx := context.Background()
	storetest.Tell("begin")
	s, err := open(ctx, store.Config{Path: o.Path})
	if err != nil {
		return err
	}
	storetest.Tell("made")
	if err := storetest.Write(ctx, s, store.Full, o.Prefix); err != nil {
		return err
	}
	storetest.Tell("written")
	return s.Close()
}

func TestCreationKilledAtAnyInstantIsCompletedByTheNext(t *testing.T) {
	t.Parallel()
	for range rounds(8) {
		path := storetest.Path(t)
		want := 0
		for n := range 3 {
			p := child(t, "create", order{Path: path, Prefix: fmt.Sprint("n", n)})
			p.Expect(t, "begin")
			instant := time.NewTimer(rand.N(8 * time.Millisecond))
			<-instant.C
			if err := p.Signal(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			if lines, _ := p.Wait(t); slices.Contains(lines, "written") {
				want++
			}
		}
		s := storetest.Open(t, store.Config{Path: path})
		if got := len(storetest.IDs(t, s)); got < want {
			t.Errorf("%d of %d acknowledged writes are there", got, want)
		}
		storetest.MustWrite(t, s, "last")
		expectPragmas(t, path)
	}
}

func firstWriter(o order, in *bufio.Reader) error {
	ctx := context.Background()
	storetest.Tell("ready")
	storetest.Hear(in)
	s, err := open(ctx, store.Config{Path: o.Path, Role: store.Hook})
	if err != nil {
		return err
	}
	return errors.Join(storetest.Write(ctx, s, store.Normal, o.Prefix), s.Close())
}

func TestThirtyTwoFirstProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	var all []*storetest.Process
	var want []string
	for n := range 32 {
		want = append(want, fmt.Sprintf("n%02d", n))
		all = append(all, child(t, "first writer", order{Path: path, Prefix: want[n]}))
	}
	for _, p := range all {
		p.Expect(t, "ready")
	}
	for _, p := range all {
		p.Send("go")
	}
	for n, p := range all {
		if _, err := p.Wait(t); err != nil {
			t.Errorf("writer %d: %v", n, err)
		}
	}
	got := storetest.IDs(t, storetest.Open(t, store.Config{Path: path}))
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the log holds %q", got)
	}
}

func TestThirtyTwoFirstStoresOfOneProcessLoseNothing(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	var wg sync.WaitGroup
	for n := range 32 {
		wg.Go(func() {
			// Each commit waits for the disk, which may be slow; hence the long wait.
			s, err := open(t.Context(), store.Config{Path: path, Role: store.Server})
			if err == nil {
				err = errors.Join(storetest.Write(t.Context(), s, store.Full, fmt.Sprint("n", n)), s.Close())
			}
			if err != nil {
				t.Errorf("writer %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	if got := storetest.IDs(t, storetest.Open(t, store.Config{Path: path})); len(got) != 32 {
		t.Errorf("the log holds %q", got)
	}
}

func TestCreationWaitsForAnotherNoLongerThanItIsTold(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	other := flock.New(path + "-lock")
	if err := other.Lock(); err != nil {
		t.Fatal(err)
	}
	_, err := open(t.Context(), store.Config{Path: path, Wait: 30 * time.Millisecond})
	storetest.ExpectCode(t, err, store.CodeBusy)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = open(ctx, store.Config{Path: path}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := other.Unlock(); err != nil {
		t.Fatal(err)
	}
	storetest.MustWrite(t, storetest.Open(t, store.Config{Path: path}), "a")
}

func TestAnotherProgramsDatabaseIsRefusedAndUnchanged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "places.sqlite")
	storetest.RawExec(t, storetest.Raw(t, path), "CREATE TABLE moz_places (id INTEGER PRIMARY KEY)")
	before := content(t, path)
	_, err := open(t.Context(), store.Config{Path: path})
	storetest.ExpectCode(t, err, store.CodeForeign)
	expectUnchanged(t, path, before)
}

// The store's file was emptied or lost, and only the write-ahead log is left. SQLite
// would delete it.
func TestWriteAheadLogWithoutItsFileIsNotDestroyed(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		path := storetest.Path(t)
		s, err := open(t.Context(), store.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		storetest.MustWrite(t, s, "a")
		log := content(t, path+"-wal")
		storetest.Closed(t, s)
		if err := errors.Join(os.WriteFile(path+"-wal", log, 0o600), os.Truncate(path, 0)); err != nil {
			t.Fatal(err)
		}
		if lost {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		_, err = open(t.Context(), store.Config{Path: path})
		storetest.ExpectCode(t, err, store.CodeCorrupt)
		expectUnchanged(t, path+"-wal", log)
	}
}

func TestCopyIsAStoreOfTheSameContent(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.MustWrite(t, s, "a", "b")
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := s.CopyTo(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := s.CopyTo(t.Context(), path); err == nil {
		t.Error("an existing file was overwritten")
	}
	reading := storetest.Open(t, store.Config{Path: path, ReadOnly: true})
	storetest.ExpectIDs(t, reading, "a", "b")
	c := storetest.Open(t, store.Config{Path: path, Temporary: true})
	storetest.MustWrite(t, c, "c")
	storetest.ExpectIDs(t, c, "a", "b", "c")
	expectPragmas(t, path) // SQLite writes copies without a write-ahead log
}

// The data that earlier versions kept in four tables, two of them of the archive, exists
// after the upgrade.
func TestTablesOfFollowersAreMerged(t *testing.T) {
	t.Parallel()
	if storetest.Key() != nil {
		t.Skip("the driver of plain stores makes it")
	}
	path := storeOfSchema(t, 17)
	db := storetest.Raw(t, path)
	storetest.RawExec(t, db,
		"INSERT INTO store_meta (name, value) VALUES ('schema', '17')",
		"INSERT INTO projects (key, id, name, created_at) VALUES (7, 'p7', 'seven', 0)",
		"INSERT INTO followers VALUES ('copier', 5, 50)",
		"INSERT INTO set_aside VALUES ('copier', 4, 'odd', 2, 60)",
		"INSERT INTO archive_cursor VALUES (7, 6, 3, 'abc')",
		"INSERT INTO archive_aside VALUES (2, 7, 'too long', 1, 70)",
	)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := storetest.Open(t, store.Config{Path: path})
	storetest.MustWrite(t, s, "a", "b", "c", "d", "e", "f")
	all, err := follow.Followers(t.Context(), s)
	if got := fmt.Sprintln(len(all), all[0].Follower, all[0].Lane, all[0].Position, all[1].Follower, all[1].Lane, all[1].Position); got != "2 archive p7 3 copier  5\n" || err != nil {
		t.Errorf("%s: %+v, %v", got, all, err)
	}
	aside, err := follow.FailedChanges(t.Context(), s)
	if got := fmt.Sprintln(len(aside), aside[0].Follower, aside[0].Lane, aside[0].Seq, aside[0].Error, aside[1].Follower, aside[1].Seq, aside[1].Attempts); got != "2 archive p7 2 too long copier 4 2\n" || err != nil {
		t.Errorf("%s: %+v, %v", got, aside, err)
	}
	err = s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		c, ok, err := follow.CursorOf(ctx, tx, "archive", "p7")
		if !ok || c.Mark != "abc" {
			t.Errorf("the cursor is %+v, %v", c, ok)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTheReplicationsAccountIsTakenOver checks the upgrade of the failures and refusals that
// memories stored. They must be in the account of all followers, and the streams must keep
// their positions.
func TestTheReplicationsAccountIsTakenOver(t *testing.T) {
	t.Parallel()
	if storetest.Key() != nil {
		t.Skip("the driver of plain stores makes it")
	}
	path := storeOfSchema(t, 19)
	db := storetest.Raw(t, path)
	const stream = `INSERT INTO memory_streams (stream, user_id, lane, head_seq, acked_seq, attempts, next_attempt_ns, state, last_error, pull_cursor) VALUES `
	storetest.RawExec(t, db,
		"INSERT INTO store_meta (name, value) VALUES ('schema', '19')",
		stream+`('fails', 'me', 1, 9, 4, 3, 77, 'ready', 'the hub is away', 5)`,
		stream+`('halted', 'me', 2, 9, 4, 0, 0, 'halted', 'bad_title', 0)`,
		stream+`('goes on', 'me', 3, 9, 9, 0, 0, 'ready', NULL, 0)`,
		`INSERT INTO memory_failures (seq, stream, local_id, status, code, message, at_ns) VALUES (4, 'halted', 'pending-2', 400, 'bad_title', 'it is "odd"', 66)`,
		`INSERT INTO memory_lanes VALUES (1, 'x', 1, 1)`,
		"INSERT INTO set_aside (follower, seq, lane, error, attempts, since, next_try) VALUES ('archive', 2, 'p', 'odd', 2, 50, 60)",
	)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := storetest.Open(t, store.Config{Path: path})
	storetest.MustWrite(t, s, "a", "b", "c", "d", "e", "f", "g", "h", "i")
	all, err := follow.Followers(t.Context(), s)
	if got := fmt.Sprintf("%+v", all); err != nil || len(all) != 2 ||
		all[0] != (follow.Progress{Follower: "replication", Lane: "fails", Error: "the hub is away", Attempts: 3, NextTry: 77}) ||
		all[1] != (follow.Progress{Follower: "replication", Lane: "halted", Error: "bad_title"}) {
		t.Errorf("the account is %s, %v", got, err)
	}
	aside, err := follow.FailedChanges(t.Context(), s)
	if err != nil || len(aside) != 2 || aside[0].Follower != "archive" || aside[0].NextTry.UnixNano() != 60 ||
		aside[1].Follower != "replication" || aside[1].Lane != "halted" || aside[1].Seq != 4 || !aside[1].NextTry.IsZero() ||
		aside[1].Since.UnixNano() != 66 || aside[1].Error != `pending-2: 400 bad_title: it is "odd"` {
		t.Errorf("set aside are %+v, %v", aside, err)
	}
	var detail, streams string
	err = s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(
			tx.Get(ctx, []any{&detail}, `SELECT detail ->> '$.local_id' || ' ' || (detail ->> '$.status') || ' ' || (detail ->> '$.message') FROM set_aside WHERE seq = 4`),
			tx.Get(ctx, []any{&streams}, `SELECT group_concat(stream || ' ' || acked_seq || ' ' || state, ', ') FROM (SELECT * FROM memory_streams ORDER BY stream)`))
	})
	if err != nil || detail != `pending-2 400 it is "odd"` || streams != "fails 4 ready, goes on 9 ready, halted 4 halted" {
		t.Errorf("%q, %q, %v", detail, streams, err)
	}
}
