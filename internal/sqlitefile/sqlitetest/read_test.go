// Package sqlitetest compares what sqlitefile reads with what SQLite wrote. It is a
// separate package so that SQLite does not slow down fuzzing.
package sqlitetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cairn/internal/sqlitefile"
	"cairn/internal/store/storetest"
)

func file(b []byte) sqlitefile.File {
	return sqlitefile.File{ReaderAt: bytes.NewReader(b), Size: int64(len(b))}
}

// made runs statements in a new database and returns the content of its file and of its
// log.
func made(t testing.TB, statements ...string) (db, wal []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	conn := storetest.OpenFile(path, "")
	defer conn.Close()
	conn.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	db, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wal, err = os.ReadFile(path + "-wal")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return db, wal
}

func rowsOf(t testing.TB, m *sqlitefile.Image, name string) (out []sqlitefile.Row) {
	t.Helper()
	for _, o := range m.Schema() {
		if o.Name == name {
			if bad := m.Rows(o.Root, func(r sqlitefile.Row) bool { out = append(out, r); return true }); bad > 0 {
				t.Errorf("%d rows of %s cannot be read", bad, name)
			}
		}
	}
	return out
}

const many = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) `

// The tables have every kind of value, every size of integer, overflow chains, negative
// rowids, tables without rowids and indexes.
func TestIntactFilesAreReadCompletely(t *testing.T) {
	t.Parallel()
	for _, size := range []int{512, 4096, 65536} {
		for _, vacuum := range []string{"NONE", "INCREMENTAL"} {
			for _, mode := range []string{"DELETE", "WAL"} {
				db, wal := made(t,
					fmt.Sprintf("PRAGMA page_size=%d", size), "PRAGMA auto_vacuum="+vacuum, "PRAGMA journal_mode="+mode, "PRAGMA wal_autocheckpoint=0",
					`CREATE TABLE v (x)`,
					`INSERT INTO v VALUES (NULL), (0), (1), (-1), (127), (-128), (32767), (8388607), (-8388608), (2147483647),
						(140737488355327), (9223372036854775807), (-9223372036854775808), (1.5), (-1e300), (''), ('ü☃'), (x''), (x'00ff')`,
					`CREATE TABLE long (id INTEGER PRIMARY KEY, t TEXT, b BLOB)`,
					`INSERT INTO long VALUES (-5, 'minus', NULL)`,
					many+`INSERT INTO long SELECT i, printf('%.*c', i * 7 % 9000, 'x') || i, zeroblob(i % 40) FROM n`,
					`CREATE INDEX by_t ON long (t)`,
					`CREATE TABLE pairs (a TEXT, b INTEGER, PRIMARY KEY (b, a)) WITHOUT ROWID`,
					many+`INSERT INTO pairs SELECT 'k' || i, i % 100 FROM n`,
					`CREATE TABLE empty (x)`,
				)
				if (mode == "WAL") != (len(wal) > 0) {
					t.Fatalf("%s: the log has %d bytes", mode, len(wal))
				}
				m := sqlitefile.Read(file(db), file(wal))
				what := fmt.Sprint(size, vacuum, mode)
				var values []any
				for _, r := range rowsOf(t, m, "v") {
					values = append(values, r.Values[0])
				}
				want := []any{nil, int64(0), int64(1), int64(-1), int64(127), int64(-128), int64(32767), int64(8388607), int64(-8388608),
					int64(2147483647), int64(140737488355327), int64(9223372036854775807), int64(-9223372036854775808),
					1.5, -1e300, "", "ü☃", []byte{}, []byte{0, 255}}
				if !reflect.DeepEqual(values, want) {
					t.Errorf("%s: %v", what, values)
				}
				long := rowsOf(t, m, "long")
				if len(long) != 3001 || long[0].ID != -5 {
					t.Fatalf("%s: %d long rows", what, len(long))
				}
				for _, r := range long[1:] {
					i := int(r.ID)
					text, blob := strings.Repeat("x", max(1, i*7%9000))+fmt.Sprint(i), make([]byte, i%40)
					if r.Values[0] != nil || r.Values[1] != text || !bytes.Equal(r.Values[2].([]byte), blob) {
						t.Fatalf("%s: row %d is %.60v", what, i, r.Values)
					}
				}
				if n := len(rowsOf(t, m, "by_t")); n != 3001 {
					t.Errorf("%s: the index has %d entries", what, n)
				}
				pairs := rowsOf(t, m, "pairs")
				seen := map[any]bool{}
				for _, r := range pairs {
					seen[r.Values[1]] = fmt.Sprint("k", r.Values[0]) == fmt.Sprintf("k%d", number(r.Values[1])%100)
				}
				if len(pairs) != 3000 || len(seen) != 3000 || seen["k2037"] != true || seen["k3000"] != true {
					t.Errorf("%s: %d pairs, %d different", what, len(pairs), len(seen))
				}
				if m.Damaged > 0 || len(rowsOf(t, m, "empty")) > 0 {
					t.Errorf("%s: %d damaged", what, m.Damaged)
				}
			}
		}
	}
}

// number returns the n of "kn".
func number(v any) (n int) {
	text, _ := v.(string)
	if _, err := fmt.Sscanf(text, "k%d", &n); err != nil {
		return -1
	}
	return n
}

// Rows that were deleted, rolled back or left from an earlier log are not read.
func TestDeletedRowsStayDeleted(t *testing.T) {
	t.Parallel()
	db, wal := made(t, "PRAGMA auto_vacuum=INCREMENTAL", "PRAGMA journal_mode=WAL",
		`CREATE TABLE a (id INTEGER PRIMARY KEY, t TEXT)`, `CREATE TABLE b (id INTEGER PRIMARY KEY, t TEXT)`,
		many+`INSERT INTO a SELECT i, 'gone ' || i FROM n`, many+`INSERT INTO b SELECT i, 'kept ' || i FROM n WHERE i < 50`,
		"PRAGMA wal_checkpoint(TRUNCATE)", "DELETE FROM a WHERE id > 5",
		"BEGIN", "UPDATE b SET t = 'undone'", many+`INSERT INTO b SELECT 1000 + i, 'undone' FROM n`, "ROLLBACK")
	m := sqlitefile.Read(file(db), file(wal))
	if n := len(rowsOf(t, m, "a")); n != 5 {
		t.Errorf("%d rows of a", n)
	}
	for _, r := range rowsOf(t, m, "b") {
		if !strings.HasPrefix(r.Values[1].(string), "kept ") {
			t.Fatalf("row %v", r)
		}
	}
	total := 0
	for _, root := range m.Roots() {
		m.Rows(root, func(sqlitefile.Row) bool { total++; return true })
	}
	if total != 5+49 {
		t.Errorf("%d rows in all trees", total)
	}
}

// An image written as one file is the same database.
func TestAnImageIsWrittenAsOneIntactFile(t *testing.T) {
	t.Parallel()
	db, wal := made(t, "PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", `CREATE TABLE a (id INTEGER PRIMARY KEY, t TEXT)`,
		many+`INSERT INTO a SELECT i, 'row ' || i FROM n`)
	path := filepath.Join(t.TempDir(), "y.db")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitefile.Read(file(db), file(wal)).WriteTo(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	conn := storetest.OpenFile(path, "")
	defer conn.Close()
	var n int
	var result string
	if err := conn.QueryRowContext(t.Context(), "SELECT count(*) FROM a").Scan(&n); err != nil || n != 3000 {
		t.Errorf("%d rows, %v", n, err)
	}
	if err := conn.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
		t.Errorf("%s, %v", result, err)
	}
}

// All committed rows are read, wherever a log has a flipped bit.
func TestALogWithAFlippedBitIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	db, wal := made(t, "PRAGMA page_size=512", "PRAGMA journal_mode=WAL", "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)",
		"INSERT INTO t VALUES (1, 'first')", "INSERT INTO t VALUES (2, 'second')", "INSERT INTO t VALUES (3, 'third')")
	want := whole(t, db, wal)
	const frame = 24 + 512
	at := []int{}
	for n := 0; n < 32+(len(wal)-32)/frame*frame; n++ {
		if in := (n - 32) % frame; n < 32 || in < 40 || n%101 == 0 {
			at = append(at, n)
		}
	}
	for _, n := range at {
		broken := bytes.Clone(wal)
		broken[n] ^= 1 << (n % 8)
		if got := sqlitefile.ReadHead(file(db), file(broken)).LogCorrected; got != 1 {
			t.Errorf("byte %d: %d corrected", n, got)
		}
		if wrong := differing(whole(t, db, broken), want); wrong > 1 {
			t.Errorf("byte %d: the database has %d other bytes", n, wrong)
		}
	}
	if got := sqlitefile.ReadHead(file(db), file(wal)).LogCorrected; got != 0 {
		t.Errorf("%d corrected in an intact log", got)
	}
	wal[32+frame+100] ^= 3
	if got := sqlitefile.ReadHead(file(db), file(wal)).LogCorrected; got != 0 {
		t.Errorf("%d corrected where two bits are wrong", got)
	}
}

// differing returns how many bytes differ. If the top bit of a page's word is flipped,
// the log's checksums do not show which one.
func differing(a, b []byte) (n int) {
	if len(a) != len(b) {
		return len(a) + len(b)
	}
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// whole returns the database that an image writes.
func whole(t *testing.T, db, wal []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := sqlitefile.Read(file(db), file(wal)).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
