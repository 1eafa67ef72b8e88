//go:build !(cgo && sqlite_fts5 && sqlite_math_functions)

package store

import (
	"context"
	"database/sql/driver"

	"cairn/internal/store/disk"
	"cairn/internal/store/gosqlite"
)

// Driver is the name of the SQLite driver for plain stores.
const Driver = "ncruces/go-sqlite3"

// OpenWithDriver is Open with only [Driver], for small programs: a program that does not
// call Open links no other SQLite. This Driver also opens encrypted stores.
func OpenWithDriver(ctx context.Context, c Config) (*Store, error) { return Open(ctx, c) }

// plain opens an unencrypted file in a mode and sets its pragmas in order. With
// immediate, transactions of database/sql take the write lock when they begin.
func plain(path, mode string, immediate bool, pragmas ...string) driver.Connector {
	return gosqlite.Driver{First: pragmas, Immediate: immediate}.Connector(disk.URI(path, mode+"&"+gosqlite.PlainURIQuery()))
}

// inMemory opens an empty database that ends with its connection.
func inMemory() driver.Connector { return gosqlite.Driver{}.Connector(":memory:") }

// plainCode returns SQLite's extended result code of err, 0 if err is not from this
// driver.
func plainCode(err error) (code int, message string) { return gosqlite.Code(err) }
