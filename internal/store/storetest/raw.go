package storetest

import (
	"database/sql"
	"path/filepath"

	"cairn/internal/store/gosqlite"
)

// OpenFile opens an unencrypted file without the store, with SQLite's defaults. Files
// that it creates are readable only by their owner, like the store's. query is that of an
// SQLite URI, such as "mode=ro"; "" creates a missing file. No store of this process may
// have the file open, because closing this database would release the locks of the C
// library.
func OpenFile(path, query string) *sql.DB {
	return sql.OpenDB(gosqlite.Driver{}.Connector("file:" + filepath.ToSlash(path) + "?" + gosqlite.PlainURIQuery() + "&" + query))
}

// Memory returns an empty database of one connection.
func Memory() *sql.DB {
	db := sql.OpenDB(gosqlite.Driver{}.Connector(":memory:"))
	db.SetMaxOpenConns(1)
	return db
}
