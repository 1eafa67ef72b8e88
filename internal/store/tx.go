package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
)

// Tx is one transaction. It is valid only inside its closure and for one goroutine.
//
// A statement of a write runs to its end, even if its ctx ends. After an error that ended the
// transaction, such as a full disk, every later statement fails with the same error. The
// closure then also fails, even if it returns nil.
type Tx struct {
	ses   *session
	store *Store
	now   time.Time
	log   *logHead         // this device's newest change, shared by a batch; nil in a read
	fresh map[string]int64 // new symbols, not yet committed
	wrote bool             // a change was appended
	open  []*cursor        // open results of Query
	lost  error            // error that ended the transaction before its closure returned
	over  bool             // the closure has returned
}

// cursor is an open result. Its statement is not reused meanwhile, so a query may run
// again while its rows are read.
type cursor struct {
	query string
	stmt  *sql.Stmt
	rows  *sql.Rows
}

// Now returns the time of this transaction, read once from the store's clock.
func (t *Tx) Now() time.Time { return t.now }

// Exec runs a statement. Statements stay prepared, by their text. If the limit is a bare
// parameter, SQLite prepares the statement again at every run, because its plan depends on the
// number. LIMIT +? avoids that.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	ctx, st, err := t.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	res, err := st.ExecContext(ctx, args...)
	return res, t.noted(err)
}

// Query runs a query; the caller closes the rows. Open rows are closed when the closure
// returns.
func (t *Tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c, err := t.read(ctx, query, args)
	if err != nil {
		return nil, err
	}
	t.open = append(t.open, c)
	return c.rows, nil
}

// Get scans the first row of a query into dest. Without a row it returns
// sql.ErrNoRows.
func (t *Tx) Get(ctx context.Context, dest []any, query string, args ...any) error {
	ctx, st, err := t.prepared(ctx, query)
	if err != nil {
		return err
	}
	return t.noted(st.QueryRowContext(ctx, args...).Scan(dest...))
}

// Each runs a query and calls scan for every row; an error of scan ends it. Scan
// may use the transaction, and run the same query again.
func (t *Tx) Each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) (err error) {
	c, err := t.read(ctx, query, args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.finish(c)) }()
	for c.rows.Next() {
		if err := scan(c.rows); err != nil {
			return err
		}
	}
	return nil
}

// Texts returns the column of every row of a one-column query, in order, or nil without a
// row.
func (t *Tx) Texts(ctx context.Context, query string, args ...any) (out []string, err error) {
	err = t.Each(ctx, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		out = append(out, text)
		return err
	}, query, args...)
	return out, err
}

// Keys is Texts for a column of integers.
func (t *Tx) Keys(ctx context.Context, query string, args ...any) (out []int64, err error) {
	err = t.Each(ctx, func(rows *sql.Rows) error {
		var key int64
		err := rows.Scan(&key)
		out = append(out, key)
		return err
	}, query, args...)
	return out, err
}

func (t *Tx) read(ctx context.Context, query string, args []any) (*cursor, error) {
	ctx, st, err := t.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(ctx, args...)
	if err != nil {
		return nil, t.noted(err)
	}
	delete(t.ses.stmts, query)
	return &cursor{query, st, rows}, nil
}

// finish closes a cursor and releases its statement. It returns the error of reading the
// rows.
func (t *Tx) finish(c *cursor) error {
	err := t.noted(errors.Join(c.rows.Close(), c.rows.Err()))
	if _, another := t.ses.stmts[c.query]; another {
		return errors.Join(err, c.stmt.Close())
	}
	t.ses.stmts[c.query] = c.stmt
	return err
}

// prepared returns the statement of a query and the context to run it with.
func (t *Tx) prepared(ctx context.Context, query string) (context.Context, *sql.Stmt, error) {
	switch {
	case t.over:
		return nil, nil, errors.New("a transaction was used after its closure had returned")
	case t.lost != nil:
		return nil, nil, t.lost
	case t.log != nil:
		ctx = context.WithoutCancel(ctx) // an interrupted statement would also roll back other callers' writes
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	st, err := t.ses.prepared(ctx, query)
	return ctx, st, t.noted(err)
}

// WithTempTable runs fn in a Read while a temporary table exists. create and drop are its
// statements. Only this connection sees the table.
func (t *Tx) WithTempTable(ctx context.Context, create, drop string, fn func() error) (err error) {
	clean := context.WithoutCancel(ctx)
	if err := t.ses.exec(ctx, "PRAGMA query_only=OFF"); err != nil {
		return t.noted(err)
	}
	defer func() { err = errors.Join(err, t.noted(t.ses.exec(clean, "PRAGMA query_only=ON"))) }()
	if err := t.ses.exec(ctx, create); err != nil {
		return t.noted(err)
	}
	defer func() { err = errors.Join(err, t.noted(t.ses.exec(clean, drop))) }()
	return fn()
}

// noted remembers an error that makes SQLite roll back the transaction, so that later
// statements do not run outside it.
func (t *Tx) noted(err error) error {
	if code, _ := resultCode(err); t.lost == nil && endsTransaction(code) {
		t.lost = err
	}
	return err
}

// run calls the closure and closes its open rows. A panic becomes an error, so that a
// defect does not affect other callers.
func (t *Tx) run(ctx context.Context, fn func(context.Context, *Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			cause := fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			err = fault.Wrap(cause, fault.Internal, "internal", "a defect in cairn stopped this operation")
		}
		for _, c := range slices.Backward(t.open) {
			err = errors.Join(err, t.finish(c))
		}
		t.over = true
	}()
	return fn(context.WithValue(ctx, within{t.store}, true), t)
}

// within marks the context of a closure of a store.
type within struct{ store *Store }

// nested returns an error for a Read or Write inside a closure of the same store, because
// it could wait for itself forever.
func (s *Store) nested(ctx context.Context) error {
	if ctx.Value(within{s}) == nil {
		return nil
	}
	return fault.New(fault.Internal, "internal", "a defect in cairn: one transaction was begun inside another")
}

// controlsTransaction reports whether a statement begins or ends a transaction, which
// only the store may do.
func controlsTransaction(query string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	switch strings.ToUpper(strings.TrimRight(word, ";")) {
	case "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE":
		return true
	}
	return false
}
