//go:build cgo && sqlite_fts5 && sqlite_math_functions

package store

import (
	"database/sql/driver"
	"errors"

	"github.com/mattn/go-sqlite3"
)

// Driver names the SQLite build that is linked in.
const Driver = "mattn/go-sqlite3"

func sqliteDriver() driver.Driver { return &sqlite3.SQLiteDriver{} }

// driverOptions are added to the URI of a plain store. database/sql lets one
// goroutine at a time use a connection, so SQLite need not lock it again.
const driverOptions = "&_mutex=no"

// plainCode is SQLite's extended result code of err, 0 if err is not from here.
func plainCode(err error) (code int, message string) {
	if e, ok := errors.AsType[sqlite3.Error](err); ok {
		return int(e.ExtendedCode), e.Error()
	}
	return 0, ""
}
