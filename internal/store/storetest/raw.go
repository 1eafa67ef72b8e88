package storetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"

	"cairn/internal/store/gosqlite"
)

// OpenFile opens a file that is not encrypted past the store, with SQLite's defaults and its
// files readable by their owner alone, as the store makes them. query
// is that of a SQLite URI, such as "mode=ro"; "" makes a missing file. No store of this
// process may have the file open: closing this database would end the locks of the C library.
func OpenFile(path, query string) *sql.DB {
	return sql.OpenDB(uri("file:" + filepath.ToSlash(path) + "?" + gosqlite.PlainURIQuery() + "&" + query))
}

// Memory is an empty database of one connection.
func Memory() *sql.DB {
	db := sql.OpenDB(uri(":memory:"))
	db.SetMaxOpenConns(1)
	return db
}

// uri is what gosqlite opens.
type uri string

func (u uri) Connect(context.Context) (driver.Conn, error) { return gosqlite.Driver{}.Open(string(u)) }
func (u uri) Driver() driver.Driver                        { return gosqlite.Driver{} }
