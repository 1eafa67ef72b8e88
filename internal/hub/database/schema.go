package database

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"cairn/internal/backoff"
	"cairn/internal/fault"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// schemaVersion is the schema that this program creates and supports. Each version has a
// migration in migrations. The previous release still works after the migration.
const schemaVersion = 2

const createMeta = `CREATE TABLE IF NOT EXISTS hub_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)`

// migrations[n] migrates from version n to n+1. Statements may run again. Statements with %s
// create tables that are partitioned by memory_id. Times are nanoseconds since 1970, 0 for
// never.
var migrations = [...][]string{{
	`CREATE TABLE IF NOT EXISTS hub_heads (
  memory_id   TEXT NOT NULL, -- the stream: a memory, or a vault
  tenant      TEXT NOT NULL,
  kind        TEXT NOT NULL,
  head_seq    BIGINT NOT NULL,
  last_ns     BIGINT NOT NULL, -- canonical time of the newest entry
  deleted_seq BIGINT NOT NULL, -- what is up to here is gone
  deleted_ns  BIGINT NOT NULL,
  gone        BIGINT NOT NULL, -- 1: deleted and not made anew
  PRIMARY KEY (memory_id, tenant)
)%s`,
	`CREATE TABLE IF NOT EXISTS hub_items (
  memory_id    TEXT NOT NULL,
  tenant       TEXT NOT NULL,
  hub_seq      BIGINT NOT NULL,
  key          TEXT NOT NULL,
  kind         TEXT NOT NULL,
  op           TEXT NOT NULL,
  id           TEXT NOT NULL,
  canonical_ns BIGINT NOT NULL,
  prev_seq     BIGINT NOT NULL, -- of the item of the same entry before
  device_id    TEXT NOT NULL,
  body_hash    TEXT NOT NULL,   -- '' once blanked
  doc          TEXT NOT NULL,   -- '' once blanked
  PRIMARY KEY (memory_id, tenant, hub_seq),
  UNIQUE (memory_id, tenant, key)
)%s`,
	`CREATE TABLE IF NOT EXISTS hub_entries (
  memory_id    TEXT NOT NULL,
  tenant       TEXT NOT NULL,
  entry_id     TEXT NOT NULL,
  canonical_ns BIGINT NOT NULL,
  put_seq      BIGINT NOT NULL,
  last_seq     BIGINT NOT NULL,
  deleted_ns   BIGINT NOT NULL,
  doc          TEXT NOT NULL, -- '' once deleted
  PRIMARY KEY (memory_id, tenant, entry_id)
)%s`,
	`CREATE INDEX IF NOT EXISTS hub_entries_by_time ON hub_entries (memory_id, tenant, canonical_ns)`,
	`CREATE TABLE IF NOT EXISTS hub_vaults (
  tenant      TEXT NOT NULL,
  vault_id    TEXT NOT NULL,
  title       TEXT NOT NULL,
  description TEXT NOT NULL,
  created_ns  BIGINT NOT NULL,
  PRIMARY KEY (tenant, vault_id),
  UNIQUE (tenant, title)
)`,
	`CREATE TABLE IF NOT EXISTS hub_memories (
  tenant      TEXT NOT NULL,
  memory_id   TEXT NOT NULL,
  vault_id    TEXT NOT NULL,
  memory_type TEXT NOT NULL,
  title       TEXT NOT NULL,
  description TEXT NOT NULL,
  created_ns  BIGINT NOT NULL,
  put_seq     BIGINT NOT NULL,
  PRIMARY KEY (tenant, memory_id),
  UNIQUE (tenant, vault_id, title)
)`,
	`CREATE TABLE IF NOT EXISTS hub_tokens (
  hash       TEXT PRIMARY KEY, -- lower-case hex of the SHA-256
  tenant     TEXT NOT NULL,
  device     TEXT NOT NULL,
  level      TEXT NOT NULL,
  created_ns BIGINT NOT NULL,
  expires_ns BIGINT NOT NULL,
  last_day   TEXT NOT NULL, -- on which it was last used, '' for none
  revoked_ns BIGINT NOT NULL
)`,
}, {
	// The project of a default memory. A memory belongs to at most one project, and a project
	// has at most one default memory.
	`CREATE TABLE IF NOT EXISTS hub_projects (
  tenant      TEXT NOT NULL,
  project_uid TEXT NOT NULL,
  memory_id   TEXT NOT NULL,
  PRIMARY KEY (tenant, project_uid)
)`,
	`CREATE INDEX IF NOT EXISTS hub_projects_by_memory ON hub_projects (tenant, memory_id)`,
}}

// Names in hub_meta.
const (
	MetaSchema     = "schema"
	metaMigrating  = "migrating" // the process that migrates, and until when others wait for it
	metaPartitions = "partitions"
	MetaHub        = "hub_id"
	MetaEpoch      = "hub_epoch"
	MetaSweep      = "sweep:"     // followed by a deleted stream whose documents still exist
	MetaDevice     = "device:"    // followed by a user, a colon and a device: its highest number, 20 digits, and hash
	MetaCatalogue  = "catalogue:" // followed by a user: counts the changes of the user's catalogue
)

const (
	SelectMeta = `SELECT value FROM hub_meta WHERE name = $1`
	insertMeta = `INSERT INTO hub_meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	SwapMeta   = `UPDATE hub_meta SET value = $3 WHERE name = $1 AND value = $2`
	SetMeta    = `INSERT INTO hub_meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	DeleteMeta = `DELETE FROM hub_meta WHERE name = $1 AND value = $2`
)

// The time after which another process takes over a migration, and for which others wait
// (memories §13.2).
const migrationLimit = 60 * time.Second

// maxPartitions is the largest number of partitions of a table.
const maxPartitions = 1024

// Migrate migrates the schema, or waits while another process does. A new schema gets the
// given number of partitions. It returns the number of partitions. Errors: hub_too_new for a
// newer schema, hub_unavailable if the other process does not finish.
func (d *Database) Migrate(ctx context.Context, partitions int) (int, error) {
	if err := d.createMeta(ctx); err != nil {
		return 0, err
	}
	s, me := d.Writing(), rand.Text()
	began := time.Now()
	for {
		version, err := s.Number(ctx, MetaSchema)
		switch {
		case err != nil:
			return 0, err
		case version > schemaVersion:
			return 0, fault.Newf(fault.Unavailable, CodeTooNew, "the hub's database has schema %d, this cairn knows %d", version, schemaVersion).
				WithHint("install the newer cairn that created it")
		case version == schemaVersion:
			n, err := s.Number(ctx, metaPartitions)
			return int(n), err
		}
		claim, won, err := s.claim(ctx, me)
		if err != nil {
			return 0, err
		}
		if won {
			return partitions, d.runMigrations(ctx, int(version), partitions, claim)
		}
		if time.Since(began) > migrationLimit {
			return 0, fault.New(fault.Unavailable, CodeUnavailable, "another process has been migrating the hub's database for a minute").
				WithHint("look at that process's log, then start again")
		}
		if !backoff.Pause(ctx, 50*time.Millisecond, nil) {
			return 0, ctx.Err()
		}
	}
}

// isDuplicateObject reports whether PostgreSQL refused to create an object because another
// process had just created it. The SQLSTATE depends on whether the catalogue row, the table or
// its row type was the duplicate.
func isDuplicateObject(sqlstate string) bool {
	return sqlstate == "23505" || sqlstate == "42P07" || sqlstate == "42710"
}

// createMeta creates the table that records which process migrates. If two processes create it
// concurrently, PostgreSQL fails one of them.
func (d *Database) createMeta(ctx context.Context) error {
	for try := 1; ; try++ {
		_, err := d.Writing().Exec(ctx, createMeta)
		state, again := retryable(err)
		if err == nil || try == maxTries || !again && !isDuplicateObject(state) {
			return err
		}
		if !backoff.Pause(ctx, txBackoff.Delay(try), nil) {
			return ctx.Err()
		}
	}
}

// claim makes this process the one that migrates. It inserts a row that only one process can
// insert, or replaces the row of a process whose time has expired.
func (s Statements) claim(ctx context.Context, me string) (claim string, won bool, err error) {
	claim = fmt.Sprintf("%d %s", time.Now().Add(migrationLimit).UnixNano(), me)
	n, err := s.Exec(ctx, insertMeta, metaMigrating, claim)
	if err != nil || n == 1 {
		return claim, n == 1, err
	}
	var held string
	if ok, err := s.One(ctx, SelectMeta, []any{metaMigrating}, &held); err != nil || !ok {
		return "", false, err
	}
	until, _, _ := strings.Cut(held, " ")
	if ns, err := strconv.ParseInt(until, 10, 64); err == nil && time.Now().UnixNano() < ns {
		return "", false, nil
	}
	n, err = s.Exec(ctx, SwapMeta, metaMigrating, held, claim)
	return claim, n == 1, err
}

// runMigrations runs the migrations above version.
func (d *Database) runMigrations(ctx context.Context, version, partitions int, claim string) error {
	s := d.Writing()
	for _, statements := range migrations[version:] {
		for _, statement := range statements {
			if err := d.define(ctx, statement, partitions); err != nil {
				return fmt.Errorf("migrating the hub's database: %w", err)
			}
		}
	}
	for _, fact := range [][2]string{{metaPartitions, strconv.Itoa(partitions)}, {MetaHub, rules.NewID()}, {MetaEpoch, "1"}} {
		if _, err := s.Exec(ctx, insertMeta, fact[0], fact[1]); err != nil {
			return err
		}
	}
	if _, err := s.Exec(ctx, SetMeta, MetaSchema, strconv.Itoa(schemaVersion)); err != nil {
		return err
	}
	_, err := s.Exec(ctx, DeleteMeta, metaMigrating, claim)
	return err
}

// define runs a statement that creates an object. A partitioned table is created with its
// partitions.
func (d *Database) define(ctx context.Context, statement string, partitions int) error {
	s := d.Writing()
	if !strings.Contains(statement, "%s") {
		_, err := s.Exec(ctx, statement)
		return err
	}
	if partitions == 1 {
		_, err := s.Exec(ctx, fmt.Sprintf(statement, ""))
		return err
	}
	if _, err := s.Exec(ctx, fmt.Sprintf(statement, " PARTITION BY HASH (memory_id)")); err != nil {
		return err
	}
	_, name, _ := strings.Cut(statement, "EXISTS ")
	name, _, _ = strings.Cut(name, " ")
	for i := range partitions {
		if _, err := s.Exec(ctx, fmt.Sprintf(
			`CREATE TABLE IF NOT EXISTS %[1]s_%[2]d PARTITION OF %[1]s FOR VALUES WITH (MODULUS %[3]d, REMAINDER %[2]d)`, name, i, partitions)); err != nil {
			return err
		}
	}
	return nil
}

// Number returns a number from hub_meta, 0 if it is missing.
func (s Statements) Number(ctx context.Context, name string) (int64, error) {
	var text string
	if ok, err := s.One(ctx, SelectMeta, []any{name}, &text); err != nil || !ok {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// Init creates the schema in an empty database. It divides the tables that grow with the
// entries into the given number of partitions (memories §13.2). It is idempotent. If the
// database has a different number, the error is a Conflict with code hub_partitions. SQLite
// has one partition.
func Init(ctx context.Context, address string, partitions int) (err error) {
	if partitions < 1 || partitions > maxPartitions {
		return fault.Newf(fault.Invalid, CodeUsage, "there can be 1 to %d partitions", maxPartitions)
	}
	d, err := Open(address, "", 2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if !d.Postgres && partitions > 1 {
		return fault.New(fault.Invalid, CodeUsage, "SQLite has no partitions").WithHint("they are for --database postgres://…")
	}
	have, err := d.Migrate(ctx, partitions)
	if err != nil {
		return OpenFault(err)
	}
	if have != partitions {
		return fault.Newf(fault.Conflict, "hub_partitions", "the database has %d partitions and keeps them", have).
			WithHint("for a different number, create a new database and let the devices send everything again")
	}
	return nil
}

// OpenFault returns the error for a database that cannot be opened, without its address.
func OpenFault(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	why := "it cannot be reached"
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		why = e.Message
	} else if code := fault.As(store.Explain(err)); code.Code != "internal" {
		why = code.Message
	}
	return fault.Wrap(err, fault.Unavailable, CodeUnavailable, "the hub's database cannot be opened: "+why).
		WithHint("check --database, and that the server runs and accepts the login")
}
