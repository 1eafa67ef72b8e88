package store_test

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// storeOfSchema8 returns a store of a cairn that did not store the schema number.
func storeOfSchema8(t *testing.T) (path string) { return storeOfSchema(t, 8) }

// storeOfSchema returns an empty store of an older schema.
func storeOfSchema(t *testing.T, version int) (path string) {
	t.Helper()
	if storetest.Key() != nil {
		t.Skip("the driver of plain stores makes it")
	}
	path = storetest.Path(t)
	place(t, path, nil)
	db := storetest.Raw(t, path)
	storetest.RawExec(t, db, "PRAGMA auto_vacuum=INCREMENTAL", "PRAGMA journal_mode=WAL")
	files, err := filepath.Glob(filepath.Join("migrations", "*.sql")) // in order
	if err != nil || len(files) <= version {
		t.Fatal(files, err)
	}
	for _, file := range files[:version] {
		storetest.RawExec(t, db, string(content(t, file)))
	}
	storetest.RawExec(t, db, "INSERT INTO store_meta (name, value) VALUES ('device', 'd1')", fmt.Sprintf("PRAGMA user_version=%d", version), "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// The store is migrated to the newest schema, which notes its number. A flipped bit in
// the number is damage.
func TestAStoreWithoutASchemaNoteIsIdentifiedByItsTables(t *testing.T) {
	t.Parallel()
	file := content(t, storeOfSchema8(t))
	path := storetest.Path(t)
	place(t, path, file)
	_, known, err := store.Schema(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 32 {
		number := uint32(8) ^ 1<<bit
		broken := append([]byte{}, file...)
		binary.BigEndian.PutUint32(broken[60:], number)
		path := storetest.Path(t)
		place(t, path, broken)
		if int(number) != known { // opening a store does not compare it
			_, err := open(t.Context(), store.Config{Path: path})
			storetest.ExpectCode(t, err, store.CodeCorrupt)
		}
		_, err := examine(t.Context(), path)
		storetest.ExpectCode(t, err, store.CodeCorrupt)
		if bit%8 == 3 {
			salvaged(t, path)
			expectNoted(t, path)
		}
	}
	s := storetest.Open(t, store.Config{Path: path})
	storetest.MustWrite(t, s, "a")
	storetest.Closed(t, s)
	expectNoted(t, path)
}

// expectNoted fails the test unless a store contains the newest schema number.
func expectNoted(t *testing.T, path string) {
	t.Helper()
	_, known, err := store.Schema(path, storetest.Key())
	if err != nil {
		t.Fatal(err)
	}
	var note string
	if err := storetest.Raw(t, path).QueryRowContext(t.Context(), "SELECT value FROM store_meta WHERE name = 'schema'").Scan(&note); err != nil || note != fmt.Sprint(known) {
		t.Errorf("the note is %q, %v; want %d", note, err, known)
	}
}
