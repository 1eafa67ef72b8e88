//go:build !(cgo && sqlite_fts5 && sqlite_math_functions)

package baresqlite

import _ "github.com/ncruces/go-sqlite3/driver" // the driver that cairn has without the tags of the other one

const driverName = "sqlite3"
