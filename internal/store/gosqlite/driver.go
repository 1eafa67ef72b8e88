package gosqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"
)

// Driver opens files by URI: encrypted ones if the URI has a URIQuery, plain ones
// otherwise. The driver that comes with this SQLite cannot be linked with mattn's,
// because both register the same name. This one implements what cairn needs and registers
// no name. Arguments are those of database/sql; named arguments are not supported.
type Driver struct {
	// First contains statements for every new connection. They run before full-text
	// search is registered, which reads the schema and may meet a lock.
	First []string
	// Immediate makes transactions take the write lock when they begin.
	Immediate bool
}

// Code returns SQLite's extended result code of err, 0 if err is not from here. For
// joined errors it is that of the first one.
func Code(err error) (code int, message string) {
	first, ok := errors.AsType[sqlite3.ExtendedErrorCode](err)
	if !ok {
		return 0, ""
	}
	if e, ok := errors.AsType[*sqlite3.Error](err); ok && e.ExtendedCode() == first {
		return int(first), e.Error()
	}
	return int(first), first.Error()
}

func (d Driver) Open(uri string) (driver.Conn, error) {
	c, err := sqlite3.OpenFlags(uri, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}
	err = c.Exec("PRAGMA temp_store=MEMORY")
	for _, first := range d.First {
		if err == nil {
			err = c.Exec(first)
		}
	}
	if err == nil {
		err = fts5.Register(c)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &conn{c, d.Immediate}, nil
}

// Connector returns what sql.OpenDB needs to open a URI.
func (d Driver) Connector(uri string) driver.Connector { return connector{d, uri} }

type connector struct {
	driver Driver
	uri    string
}

func (c connector) Driver() driver.Driver                        { return c.driver }
func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.uri) }

type conn struct {
	lib       *sqlite3.Conn
	immediate bool
}

func (c *conn) Close() error { return c.lib.Close() }

// Begin starts a transaction of database/sql. The store does not use it: its transactions
// are statements.
func (c *conn) Begin() (driver.Tx, error) {
	if c.immediate {
		return transaction{c.lib}, c.lib.Exec("BEGIN IMMEDIATE")
	}
	return transaction{c.lib}, c.lib.Exec("BEGIN")
}

type transaction struct{ lib *sqlite3.Conn }

func (t transaction) Commit() error { return t.lib.Exec("COMMIT") }

// Rollback does nothing if SQLite has rolled back itself, as after a full disk.
func (t transaction) Rollback() error {
	if t.lib.GetAutocommit() {
		return nil
	}
	return t.lib.Exec("ROLLBACK")
}

func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// during makes the end of ctx interrupt the connection until end is called.
func (c *conn) during(ctx context.Context) (end func()) {
	old := c.lib.SetInterrupt(ctx)
	return func() { c.lib.SetInterrupt(old) }
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	defer c.during(ctx)()
	st, tail, err := c.lib.Prepare(query)
	switch {
	case err != nil:
		return nil, orEnded(ctx, err)
	case st == nil:
		return nil, errors.New("an empty statement")
	case tail != "":
		return nil, errors.Join(fmt.Errorf("%.40q after a statement", tail), st.Close())
	}
	return &stmt{conn: c, lib: st}, nil
}

// ExecContext runs any number of statements without arguments. A statement with arguments
// is prepared.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) > 0 {
		return nil, driver.ErrSkip
	}
	defer c.during(ctx)()
	if err := c.lib.Exec(query); err != nil {
		return nil, orEnded(ctx, err)
	}
	return c.result(), nil
}

func (c *conn) result() driver.Result {
	return result{c.lib.LastInsertRowID(), c.lib.Changes()}
}

// orEnded returns the error of ctx if its end interrupted SQLite.
func orEnded(ctx context.Context, err error) error {
	if code, _ := Code(err); code == int(sqlite3.INTERRUPT) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

type result struct{ id, rows int64 }

func (r result) LastInsertId() (int64, error) { return r.id, nil }
func (r result) RowsAffected() (int64, error) { return r.rows, nil }

type stmt struct {
	conn *conn
	lib  *sqlite3.Stmt
}

func (s *stmt) Close() error  { return s.lib.Close() }
func (s *stmt) NumInput() int { return s.lib.BindCount() }

// Exec and Query without a context are never called by database/sql.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (s *stmt) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.bind(args); err != nil {
		return nil, err
	}
	defer s.conn.during(ctx)()
	if err := errors.Join(s.lib.Exec(), s.lib.ClearBindings()); err != nil {
		return nil, orEnded(ctx, err)
	}
	return s.conn.result(), nil
}

// QueryContext takes the first step immediately, so that an error of the query is
// returned here and not with the first row.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.bind(args); err != nil {
		return nil, err
	}
	r := &rows{ctx: ctx, stmt: s, columns: make([]string, s.lib.ColumnCount())}
	for i := range r.columns {
		r.columns[i] = s.lib.ColumnName(i)
	}
	r.row, r.err = r.step()
	if r.err != nil {
		return nil, errors.Join(r.err, r.Close())
	}
	r.first = true
	return r, nil
}

func (s *stmt) bind(args []driver.NamedValue) (err error) {
	for _, a := range args {
		if a.Name != "" {
			return errors.New("named arguments are not supported")
		}
		switch v := a.Value.(type) {
		case nil:
			err = s.lib.BindNull(a.Ordinal)
		case int64:
			err = s.lib.BindInt64(a.Ordinal, v)
		case float64:
			err = s.lib.BindFloat(a.Ordinal, v)
		case bool:
			err = s.lib.BindBool(a.Ordinal, v)
		case string:
			err = s.lib.BindText(a.Ordinal, v)
		case []byte:
			if v == nil {
				err = s.lib.BindNull(a.Ordinal)
			} else {
				err = s.lib.BindBlob(a.Ordinal, v)
			}
		default:
			err = fmt.Errorf("an argument of type %T is not supported", v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type rows struct {
	ctx context.Context
	*stmt
	columns []string
	first   bool  // the row of the first step was not read yet
	row     bool  // the last step returned a row
	err     error // of the last step
}

func (r *rows) Columns() []string { return r.columns }

func (r *rows) Close() error {
	// Next has returned the error of a failed step; Reset would return it again.
	err := r.lib.Reset()
	if r.err != nil {
		err = nil
	}
	return errors.Join(err, r.lib.ClearBindings())
}

func (r *rows) step() (row bool, err error) {
	defer r.conn.during(r.ctx)()
	row = r.lib.Step()
	return row, orEnded(r.ctx, r.lib.Err())
}

func (r *rows) Next(dest []driver.Value) error {
	if !r.first {
		r.row, r.err = r.step()
	}
	r.first = false
	switch {
	case r.err != nil:
		return r.err
	case !r.row:
		return io.EOF
	}
	for i := range dest {
		switch r.lib.ColumnType(i) {
		case sqlite3.INTEGER:
			dest[i] = r.lib.ColumnInt64(i)
		case sqlite3.FLOAT:
			dest[i] = r.lib.ColumnFloat(i)
		case sqlite3.TEXT:
			dest[i] = r.lib.ColumnText(i)
		case sqlite3.BLOB:
			dest[i] = r.lib.ColumnBlob(i, []byte{})
		default:
			dest[i] = nil
		}
	}
	return nil
}

// KeepFiles makes a connection of this driver keep its write-ahead log when it closes: it
// neither checkpoints nor removes the log. Use it with database/sql's Conn.Raw.
func KeepFiles(driverConn any) error { return keepFiles(driverConn, true) }

// ReleaseFiles undoes KeepFiles: closing the last connection checkpoints the write-ahead
// log and removes it.
func ReleaseFiles(driverConn any) error { return keepFiles(driverConn, false) }

func keepFiles(driverConn any, keep bool) error {
	c, ok := driverConn.(*conn)
	if !ok {
		return fmt.Errorf("%T is not a connection of this driver", driverConn)
	}
	_, err := c.lib.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, keep)
	return err
}
