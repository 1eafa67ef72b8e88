package store

import (
	"database/sql"
	"fmt"
	"time"
)

// RawDB is another SQLite file than the store's, opened with the same driver: one
// connection that writes and a few that read. Nothing of the store is in it: no
// schema, no log, no followers.
type RawDB struct {
	Write *sql.DB // one connection; its transactions take the write lock when they begin and are on the disk when committed
	Read  *sql.DB // refuses to write; a transaction sees one state throughout
}

// OpenRawDB opens the file at path, or makes it, for readers connections besides
// the writing one. Whoever meets another process's lock waits up to wait. Errors of
// both handles are the driver's own: [Explain] turns them into faults. Nothing is
// opened before the first use.
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

// Explain turns an error of SQLite or of the file system into a fault with one of
// this room's codes. Other errors, and nil, come back unchanged.
func Explain(err error) error { return classify(err) }
