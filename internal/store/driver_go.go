//go:build !(cgo && sqlite_fts5 && sqlite_math_functions)

package store

import (
	"context"

	"cairn/internal/store/gosqlite"
)

// Driver names the SQLite build that is linked in for plain stores.
const Driver = "ncruces/go-sqlite3"

// OpenWithDriver is Open by [Driver] alone, for programs that are to be small: one that
// does not call Open as well links no other SQLite. This Driver opens encrypted stores, too.
func OpenWithDriver(ctx context.Context, c Config) (*Store, error) { return Open(ctx, c) }

// plain opens an unencrypted file in a mode, with its pragmas set in their order.
// Transactions of database/sql take the write lock when they begin if immediate is set.
func plain(path, mode string, immediate bool, pragmas ...string) connector {
	return connector{
		driver: gosqlite.Driver{First: pragmas, Immediate: immediate},
		uri:    fileURI(path, mode+"&"+gosqlite.PlainURIQuery()),
	}
}

// inMemory opens an empty database that ends with its connection.
func inMemory() connector { return connector{driver: gosqlite.Driver{}, uri: ":memory:"} }

// plainCode is SQLite's extended result code of err, 0 if err is not from here.
func plainCode(err error) (code int, message string) { return gosqlite.Code(err) }
