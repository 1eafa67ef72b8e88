package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"github.com/oklog/ulid/v2"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationFiles are the steps from an empty file to the newest schema; the
// n-th leads to schema number n. Steps are only ever added.
func migrationFiles() []string {
	return []string{
		"migrations/0001_kernel.sql",
		"migrations/0002_observations.sql",
	}
}

func newest() int { return len(migrationFiles()) }

// prepare creates the store or brings it to the newest schema. A lock file lets
// one process at a time do this, so that the change to write-ahead logging,
// which SQLite does not queue for, meets nobody.
func (s *Store) prepare(ctx context.Context) error {
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock := flock.New(s.path+"-lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return err
	}
	return errors.Join(s.migrate(ctx), lock.Unlock())
}

func (s *Store) migrate(ctx context.Context) error {
	if err := createFile(s.path); err != nil {
		return err
	}
	w, err := newSession(ctx, s.db)
	if err != nil {
		return err
	}
	return errors.Join(migrateOn(ctx, w), w.close())
}

// createFile makes the database file before SQLite does, so that it and the
// files that SQLite derives from it are readable by their owner alone.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func migrateOn(ctx context.Context, w *session) error {
	var version int
	if err := w.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version == 0 {
		// Both must be set before the first table; repeating them is harmless.
		for _, p := range []string{"PRAGMA auto_vacuum=INCREMENTAL", "PRAGMA journal_mode=WAL"} {
			if err := w.exec(ctx, p); err != nil {
				return err
			}
		}
	}
	if err := w.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := applyMigrations(ctx, w, version); err != nil {
		return errors.Join(err, w.exec(ctx, "ROLLBACK"))
	}
	return w.exec(ctx, "COMMIT")
}

func applyMigrations(ctx context.Context, w *session, from int) error {
	for _, name := range migrationFiles()[from:] {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if err := w.exec(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
	}
	if from == 0 {
		const own = `INSERT INTO store_meta (name, value) VALUES ('device', ?)`
		if _, err := w.conn.ExecContext(ctx, own, NewID()); err != nil {
			return err
		}
	}
	return w.exec(ctx, fmt.Sprintf("PRAGMA user_version=%d", newest()))
}

// folderWritable reports whether a file can be made in dir, by making one.
func folderWritable(dir string) bool {
	f, err := os.CreateTemp(dir, ".cairn-*")
	if err != nil {
		return false
	}
	return errors.Join(f.Close(), os.Remove(f.Name())) == nil
}

// NewID returns a new ULID in lower case: 26 characters, unique without
// coordination, sorting by the time it was made.
func NewID() string {
	return strings.ToLower(ulid.Make().String())
}
