package store

import (
	"database/sql"
	"fmt"
	"time"
)

// RawDB is an SQLite file other than the store's, opened with the same driver. It has one
// writing connection and a few reading ones. It has no schema, change log or followers of the
// store.
type RawDB struct {
	Write *sql.DB // one connection; its transactions take the write lock when they begin and are on disk when committed
	Read  *sql.DB // read-only; a transaction sees one snapshot
}

// OpenRawDB opens or creates the file at path, with the given number of reading
// connections besides the writing one. Statements wait up to wait for locks of other
// processes. Both handles return the driver's own errors; [Explain] converts them to
// faults. Nothing is opened before the first use.
func OpenRawDB(path string, readers int, wait time.Duration) RawDB {
	open := func(mode string, immediate bool, n int, pragmas ...string) *sql.DB {
		db := sql.OpenDB(plain(path, mode, immediate, append([]string{pragmaBusy(wait)}, pragmas...)...))
		db.SetMaxOpenConns(n)
		db.SetMaxIdleConns(n)
		return db
	}
	return RawDB{
		Write: open("mode=rwc", true, 1,
			"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA foreign_keys=ON",
			fmt.Sprintf("PRAGMA journal_size_limit=%d", 64<<20)),
		Read: open("mode=rw", false, readers, "PRAGMA query_only=ON"),
	}
}

// Explain converts an error of SQLite or of the file system to a fault with a code of
// this package. Other errors and nil are returned unchanged.
func Explain(err error) error { return classify(err) }

// OpenMemory opens an empty database in memory, with one connection.
func OpenMemory() *sql.DB {
	db := sql.OpenDB(inMemory())
	db.SetMaxOpenConns(1)
	return db
}
