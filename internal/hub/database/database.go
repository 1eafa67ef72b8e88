package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cairn/internal/backoff"
	"cairn/internal/crashpoint"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/store"
)

// Codes of the faults that concern the database.
const (
	CodeUnavailable = memory.CodeHubUnavailable // busy, unreachable or failing; the request can be retried
	CodeTooNew      = "hub_too_new"             // a newer cairn created the schema
	CodeUsage       = "usage"
)

// Database is the hub's database. Statements are written with $1, $2 … for PostgreSQL and
// rewritten for SQLite.
type Database struct {
	writer, reader *sql.DB
	Postgres       bool
	Retried        func(sqlstate string)
}

// Open opens the database at an address: sqlite:PATH, or a URL of PostgreSQL. It does
// not connect yet.
func Open(address, replica string, pool int) (*Database, error) {
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		return openSQLite(path, replica, pool)
	}
	d := &Database{Postgres: true}
	var err error
	if d.writer, err = openPostgres(address, pool, true); err != nil {
		return nil, err
	}
	if d.reader = d.writer; replica != "" {
		if d.reader, err = openPostgres(replica, pool, false); err != nil {
			return nil, errors.Join(err, d.writer.Close())
		}
	}
	return d, nil
}

// lockWait is how long a process waits for another process's lock on an SQLite file.
const lockWait = 5 * time.Second

func openSQLite(path, replica string, pool int) (*Database, error) {
	switch {
	case path == "":
		return nil, fault.New(fault.Invalid, CodeUsage, "sqlite: requires a path").WithHint("such as sqlite:/var/lib/cairn/hub.db")
	case replica != "":
		return nil, fault.New(fault.Invalid, CodeUsage, "a database to read from requires PostgreSQL")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, store.Explain(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // otherwise SQLite would create a file that other users can read
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, CodeUnavailable, "the database cannot be opened: "+err.Error())
	}
	if err := f.Close(); err != nil {
		return nil, store.Explain(err)
	}
	bare := store.OpenRawDB(path, pool, lockWait)
	return &Database{writer: bare.Write, reader: bare.Read}, nil
}

// openPostgres opens a connection pool. It caches statement descriptions but prepares no named
// statements, so that a proxy can use another connection for each transaction.
func openPostgres(address string, pool int, writes bool) (*sql.DB, error) {
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		return nil, fault.New(fault.Invalid, CodeUsage, "the address is neither sqlite:PATH nor postgres://…").
			WithHint("such as sqlite:/var/lib/cairn/hub.db or postgres://cairn@db.example/cairn")
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, CodeUsage, "the address of the database cannot be read").
			WithHint("postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=verify-full")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "cairn hub"
	}
	db := sql.OpenDB(newConnector(config, writes))
	db.SetMaxOpenConns(pool)
	db.SetMaxIdleConns(pool)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db, nil
}

// StandardPool returns the number of connections of a process (memories §13.2).
func StandardPool() int { return min(4*runtime.NumCPU(), 32) }

// Close closes all connections.
func (d *Database) Close() error {
	err := d.writer.Close()
	if d.reader != d.writer {
		err = errors.Join(err, d.reader.Close())
	}
	return err
}

// Statements runs SQL on a connection or in a transaction.
type Statements struct {
	on interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
		QueryContext(context.Context, string, ...any) (*sql.Rows, error)
		PrepareContext(context.Context, string) (*sql.Stmt, error)
	}
	Postgres bool
	retried  func(sqlstate string) // nil in a transaction, which is retried as a whole
}

func (s Statements) text(query string) string {
	if s.Postgres {
		return query
	}
	return strings.ReplaceAll(query, "$", "?")
}

// Exec returns the number of rows that the statement changed.
func (s Statements) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	r, err := s.on.ExecContext(ctx, s.text(query), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Many prepares a statement and runs it n times.
func (s Statements) Many(ctx context.Context, query string, n int, args func(i int) []any) (err error) {
	if n == 0 {
		return nil
	}
	prepared, err := s.on.PrepareContext(ctx, s.text(query))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prepared.Close()) }()
	for i := range n {
		if _, err := prepared.ExecContext(ctx, args(i)...); err != nil {
			return err
		}
	}
	return nil
}

// One reads one row into dest and reports whether it exists.
func (s Statements) One(ctx context.Context, query string, args []any, dest ...any) (found bool, err error) {
	err = s.Each(ctx, query, args, func(scan func(...any) error) (bool, error) {
		found = true
		return false, scan(dest...)
	})
	return found, err
}

// Each calls row for every row until it returns false. Outside a transaction it retries a
// query whose connection is broken.
func (s Statements) Each(ctx context.Context, query string, args []any, row func(scan func(...any) error) (bool, error)) error {
	for try := 1; ; try++ {
		began := false
		err := s.rows(ctx, query, args, func(scan func(...any) error) (bool, error) {
			began = true
			return row(scan)
		})
		state, again := retryable(err)
		if !again || began || s.retried == nil || try == maxTries || !backoff.Pause(ctx, txBackoff.Delay(try), nil) {
			return err
		}
		s.retried(state)
	}
}

func (s Statements) rows(ctx context.Context, query string, args []any, row func(scan func(...any) error) (bool, error)) (err error) {
	rows, err := s.on.QueryContext(ctx, s.text(query), args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if more, err := row(rows.Scan); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// EachOf is each for a query that ends in IN with the given values.
func (s Statements) EachOf(ctx context.Context, query string, args, values []any, row func(func(...any) error) (bool, error)) error {
	query, args = inList(query, args, values)
	return s.Each(ctx, query, args, row)
}

// ExecOf is exec for a statement that ends in IN with the given values.
func (s Statements) ExecOf(ctx context.Context, query string, args, values []any) error {
	query, args = inList(query, args, values)
	_, err := s.Exec(ctx, query, args...)
	return err
}

// inList appends values and repeats the last one up to a power of two. This limits the number
// of different query texts, because PostgreSQL describes each text once.
func inList(query string, args, values []any) (string, []any) {
	n := 1
	for n < len(values) {
		n *= 2
	}
	var list strings.Builder
	all := append(make([]any, 0, len(args)+n), args...)
	for i := range n {
		fmt.Fprintf(&list, ",$%d", len(args)+i+1)
		all = append(all, values[min(i, len(values)-1)])
	}
	return query + "(" + list.String()[1:] + ")", all
}

// InUse returns the number of connections in use.
func (d *Database) InUse() int {
	n := d.writer.Stats().InUse
	if d.reader != d.writer {
		n += d.reader.Stats().InUse
	}
	return n
}

// Reading returns statements for reads, which may run at a replica.
func (d *Database) Reading() Statements { return Statements{d.reader, d.Postgres, d.Retried} }

// Writing returns statements outside a transaction, at the primary.
func (d *Database) Writing() Statements { return Statements{d.writer, d.Postgres, d.Retried} }

// ErrNothing makes write roll back a transaction without changes.
var ErrNothing = errors.New("nothing to commit")

// ErrMeanwhile reports that another transaction deleted a row between two statements of this
// one.
var ErrMeanwhile = errors.New("changed meanwhile")

// The number of attempts of a transaction, and the pause between them (memories §13.1).
const maxTries = 8

var txBackoff = backoff.Policy{First: 10 * time.Millisecond, Max: time.Second, Jitter: .5}

// Write runs change in a transaction, and runs it again if the database reports a temporary
// failure. change must be repeatable.
func (d *Database) Write(ctx context.Context, change func(Statements) error) error {
	for try := 1; ; try++ {
		err := d.attempt(ctx, change)
		state, again := retryable(err)
		if !again || try == maxTries || !backoff.Pause(ctx, txBackoff.Delay(try), nil) {
			return err
		}
		d.Retried(state)
	}
}

func (d *Database) attempt(ctx context.Context, change func(Statements) error) error {
	tx, err := d.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := change(Statements{tx, d.Postgres, nil}); err != nil {
		_ = tx.Rollback() // if this fails, closing the connection rolls back
		if errors.Is(err, ErrNothing) {
			return nil
		}
		return err
	}
	crashpoint.Pass("hub_before_commit")
	if err := tx.Commit(); err != nil {
		return err
	}
	crashpoint.Pass("hub_after_commit")
	return nil
}

// readOnly is the SQLSTATE of a standby server, also of a former primary. A connection that
// reports it is closed, so that the next attempt can reach the primary.
const readOnly = "25006"

// retryable reports whether a transaction may succeed when it is retried. It also returns the
// reason of the failure: the SQLSTATE, or 08000 for a broken or refused connection.
func retryable(err error) (state string, again bool) {
	if err == nil || errors.Is(err, ErrMeanwhile) {
		return "40001", err != nil
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case e.Code == "40001", e.Code == "40P01", e.Code == readOnly, strings.HasPrefix(e.Code, "08"),
			e.Code == "57P01", e.Code == "57P02", e.Code == "57P03", e.Code == "53300":
			return e.Code, true
		}
		return e.Code, false
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "", false
	}
	_, network := errors.AsType[net.Error](err)
	_, refused := errors.AsType[*pgconn.ConnectError](err)
	if network || refused || pgconn.SafeToRetry(err) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "08000", true
	}
	return "", false
}

// isFull reports whether a statement failed because the database's disk is full.
func isFull(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "53100"
	}
	return fault.HasCode(store.Explain(err), store.CodeFull)
}

// Unavailable returns the error that callers get after a failure of the database. Only the log
// contains the cause.
func Unavailable(err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	if isFull(err) {
		return fault.Wrap(err, fault.Unavailable, store.CodeFull, "the hub's disk is full").WithHint("free disk space at the hub")
	}
	return fault.Wrap(err, fault.Unavailable, CodeUnavailable, "the hub's database cannot serve this now").WithHint("try again")
}
