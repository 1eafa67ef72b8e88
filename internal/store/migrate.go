package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cairn/internal/crashpoint"
	"cairn/internal/fault"
	"cairn/internal/store/disk"

	"github.com/oklog/ulid/v2"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationFiles returns the steps from an empty file to the newest schema. The n-th step
// migrates to schema number n. Existing steps never change.
func migrationFiles() []string {
	return []string{
		"migrations/0001_kernel.sql",
		"migrations/0002_observations.sql",
		"migrations/0003_forgetting.sql",
		"migrations/0004_branches.sql",
		"migrations/0005_records.sql",
		"migrations/0006_mail.sql",
		"migrations/0007_memories.sql",
		"migrations/0008_memory_search.sql",
		"migrations/0009_project_keys.sql",
		"migrations/0010_lineages.sql",
		"migrations/0011_memory_projects.sql",
		"migrations/0012_hub_truth.sql",
		"migrations/0013_checksums.sql",
		"migrations/0014_turns.sql",
		"migrations/0015_outputs.sql",
		"migrations/0016_turn_vocabulary.sql",
		"migrations/0017_edit_lines.sql",
		"migrations/0018_followers.sql",
		"migrations/0019_moments.sql",
		"migrations/0020_replication_account.sql",
	}
}

func newest() int { return len(migrationFiles()) }

// prepare creates the store or migrates it to the newest schema. A lock file lets one
// process at a time do this, because SQLite does not queue for the switch to write-ahead
// logging.
func (s *Store) prepare(ctx context.Context) error { return s.prepareTo(ctx, newest()) }

// CreateOlder creates a store of an older schema, which Open then migrates, and calls fill
// with its writing connection. c.Path must not exist. After an error files may stay.
func CreateOlder(ctx context.Context, c Config, version int, fill func(ctx context.Context, conn *sql.Conn) error) error {
	s := newStore(c, encrypted)
	err := s.prepareTo(ctx, version)
	if err == nil {
		err = s.fill(ctx, fill)
	}
	return errors.Join(err, s.closeDBs())
}

func (s *Store) fill(ctx context.Context, fill func(ctx context.Context, conn *sql.Conn) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	return errors.Join(fill(ctx, conn), conn.Close())
}

// prepareTo is prepare up to an older schema.
func (s *Store) prepareTo(ctx context.Context, to int) error {
	if s.path == "" {
		return fault.New(fault.Invalid, "invalid", "the store has no path")
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	line := &s.writer.line
	if err := line.Enter(ctx, time.Now().Add(s.wait)); err != nil {
		return err
	}
	defer line.Leave()
	return s.migrate(ctx, to)
}

func (s *Store) migrate(ctx context.Context, to int) error {
	if err := disk.Create(s.path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := s.refuseRemains(); err != nil {
		return err
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	s.file = info
	if s.key != nil && !disk.Exists(s.path+disk.CipherSuffix) { // before there is a file that could look like a damaged store
		if err := disk.WriteKeyCheck(s.path, s.key); err != nil {
			return err
		}
	}
	w, err := newSession(ctx, s.db)
	if err != nil {
		return err
	}
	return errors.Join(migrateOn(ctx, w, to), w.close())
}

// refuseRemains protects a write-ahead log whose database file was lost or emptied:
// SQLite would delete the log, and with it the data that can be salvaged.
func (s *Store) refuseRemains() error {
	file, err := os.Stat(s.path)
	if err != nil || file.Size() > 0 {
		return err
	}
	if log, err := os.Stat(s.path + "-wal"); err != nil || log.Size() == 0 {
		return nil
	}
	return remains()
}

func remains() error {
	return fault.New(fault.Internal, CodeCorrupt, "the store is damaged: it is empty, but its write-ahead log is not").
		WithHint("run `cairn doctor --salvage`")
}

// migrateOn migrates a store to a schema number.
func migrateOn(ctx context.Context, w *session, to int) error {
	var version int
	if err := w.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version != newest() {
		if err := checkVersion(ctx, w.conn, version); err != nil {
			return err
		}
	}
	// The first works only before there is a table. Both are idempotent.
	for _, p := range []string{"PRAGMA auto_vacuum=INCREMENTAL", "PRAGMA journal_mode=WAL"} {
		if err := w.exec(ctx, p); err != nil {
			return err
		}
	}
	if version >= to {
		return nil // another process was faster
	}
	if err := w.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := applyMigrations(ctx, w, version, to); err != nil {
		return errors.Join(err, w.exec(ctx, "ROLLBACK"))
	}
	crashpoint.Pass("mid_migration")
	return w.exec(ctx, "COMMIT")
}

func foreign() error {
	return fault.New(fault.Unavailable, CodeForeign, "the file is another program's database").
		WithHint("name another file with --db or CAIRN_DB")
}

func applyMigrations(ctx context.Context, w *session, from, to int) error {
	for _, name := range migrationFiles()[from:to] {
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
	if _, err := w.conn.ExecContext(ctx, noteSchema, to); err != nil {
		return err
	}
	return w.exec(ctx, fmt.Sprintf("PRAGMA user_version=%d", to))
}

// NewID returns a new ULID in lower case: 26 characters, unique without coordination,
// sorted by creation time.
func NewID() string {
	return strings.ToLower(ulid.Make().String())
}
