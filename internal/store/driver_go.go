//go:build !(cgo && sqlite_fts5 && sqlite_math_functions)

package store

import (
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// Driver names the SQLite build that is linked in.
const Driver = "modernc.org/sqlite"

func sqliteDriver() driver.Driver { return &sqlite.Driver{} }

// driverOptions are added to the URI of a plain store.
const driverOptions = ""

// plainCode is SQLite's extended result code of err, 0 if err is not from here.
func plainCode(err error) (code int, message string) {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code(), e.Error()
	}
	return 0, ""
}
