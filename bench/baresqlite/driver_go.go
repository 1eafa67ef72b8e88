//go:build !(cgo && sqlite_fts5 && sqlite_math_functions)

package baresqlite

import _ "github.com/ncruces/go-sqlite3/driver" // cairn's SQLite without these tags
