//go:build cgo && sqlite_fts5 && sqlite_math_functions

package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/mattn/go-sqlite3"

	"cairn/internal/fault"
	"cairn/internal/store/disk"
)

// Driver is the name of the SQLite driver for plain stores.
const Driver = "mattn/go-sqlite3"

// OpenWithDriver is Open with only [Driver], for small programs: a program that does not
// call Open links no other SQLite. If Driver cannot open encrypted stores, it returns
// CodeDriver (Unavailable) for an encrypted store whose key fits.
func OpenWithDriver(ctx context.Context, c Config) (*Store, error) {
	if c.Key == nil {
		return open(ctx, c, nil)
	}
	if err := CheckKey(c.Key); err != nil {
		return nil, err
	}
	if err := (&Store{path: c.Path, key: c.Key, reading: c.ReadOnly}).admit(); err != nil {
		return nil, classify(err)
	}
	return nil, fault.New(fault.Unavailable, CodeDriver, "the store is encrypted, and this program opens plain stores only").
		WithHint("put cairn of the same version next to this program, or run `cairn init` again")
}

// plain opens an unencrypted file in a mode and sets its pragmas in order. With
// immediate, transactions of database/sql take the write lock when they begin. SQLite
// does not lock connections itself, because database/sql lets only one goroutine use a
// connection.
func plain(path, mode string, immediate bool, pragmas ...string) driver.Connector {
	query := mode + "&_mutex=no"
	if immediate {
		query += "&_txlock=immediate"
	}
	return connector{uri: disk.URI(path, query), pragmas: pragmas}
}

// inMemory opens an empty database that ends with its connection.
func inMemory() driver.Connector { return connector{uri: ":memory:"} }

// plainCode returns SQLite's extended result code of err, 0 if err is not from this
// driver.
func plainCode(err error) (code int, message string) {
	if e, ok := errors.AsType[sqlite3.Error](err); ok {
		return int(e.ExtendedCode), e.Error()
	}
	return 0, ""
}

// connector opens SQLite connections and sets their pragmas in a fixed order, the busy
// timeout before any statement that could meet a lock (observations §3).
type connector struct {
	uri     string
	pragmas []string
}

func (c connector) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Driver().Open(c.uri)
	if err != nil {
		return nil, err
	}
	// With a context that can end, the driver would start a goroutine for each pragma.
	_, err = conn.(*sqlite3.SQLiteConn).ExecContext(context.WithoutCancel(ctx), strings.Join(c.pragmas, ";"), nil)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
