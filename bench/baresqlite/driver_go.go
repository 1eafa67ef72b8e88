//go:build !(cgo && sqlite_fts5 && sqlite_math_functions)

package baresqlite

import _ "github.com/ncruces/go-sqlite3/driver" // the SQLite that cairn has without these tags
