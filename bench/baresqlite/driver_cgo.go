//go:build cgo && sqlite_fts5 && sqlite_math_functions

package baresqlite

import _ "github.com/mattn/go-sqlite3" // cairn's driver with these tags
