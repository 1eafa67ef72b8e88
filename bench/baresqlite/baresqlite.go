package baresqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// Driver is the name under which cairn's driver is registered in database/sql.
const Driver = "sqlite3"

// Table is a file with one table of texts.
type Table struct {
	db   *sql.DB
	conn *sql.Conn
}

const (
	createTable = `CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, text TEXT NOT NULL)`
	insertNote  = `INSERT INTO notes (at, text) VALUES (?, ?)`
)

// Open opens the file at path, created by Make, as a cairn hook opens its store. It sets the
// busy timeout first. Without full it never starts a checkpoint, and commits survive a killed
// process. With full it checkpoints every 1000 pages, and commits also survive a power loss.
func Open(ctx context.Context, path string, full bool) (*Table, error) {
	pragmas := []string{
		"PRAGMA busy_timeout=5000", "PRAGMA foreign_keys=ON", "PRAGMA wal_autocheckpoint=0", "PRAGMA synchronous=NORMAL",
	}
	if full {
		pragmas[2], pragmas[3] = "PRAGMA wal_autocheckpoint=1000", "PRAGMA synchronous=FULL"
	}
	db, err := sql.Open(Driver, "file:"+filepath.ToSlash(path)+"?mode=rwc")
	if err != nil {
		return nil, err
	}
	t := &Table{db: db}
	if t.conn, err = db.Conn(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	for _, p := range pragmas {
		if _, err := t.conn.ExecContext(ctx, p); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	return t, nil
}

// Make creates a file with rows texts of size bytes each.
func Make(ctx context.Context, path string, rows, size int) (err error) {
	t, err := Open(ctx, path, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	text := fmt.Sprintf("%*s", size, "")
	for _, statement := range []string{"PRAGMA journal_mode=WAL", createTable, "BEGIN IMMEDIATE"} {
		if _, err := t.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	for range rows {
		if _, err := t.conn.ExecContext(ctx, insertNote, time.Now().Unix(), text); err != nil {
			return err
		}
	}
	_, err = t.conn.ExecContext(ctx, "COMMIT")
	return err
}

// Insert commits one row in its own transaction.
func (t *Table) Insert(ctx context.Context, text string) error {
	if _, err := t.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	_, err := t.conn.ExecContext(ctx, insertNote, time.Now().Unix(), text)
	if err != nil {
		_, rollbackErr := t.conn.ExecContext(ctx, "ROLLBACK")
		return errors.Join(err, rollbackErr)
	}
	_, err = t.conn.ExecContext(ctx, "COMMIT")
	return err
}

// Count returns the number of rows. The first query also makes SQLite open the file, which it
// delays until then.
func (t *Table) Count(ctx context.Context) (n int, err error) {
	err = t.conn.QueryRowContext(ctx, "SELECT count(*) FROM notes").Scan(&n)
	return n, err
}

// Close closes the file.
func (t *Table) Close() error { return errors.Join(t.conn.Close(), t.db.Close()) }
