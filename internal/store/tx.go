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

// Tx is one transaction, valid inside its closure only and for one goroutine.
//
// A statement of a write runs to its end whatever becomes of its ctx. An error
// that ended the transaction (disk full, say) makes every later statement fail
// with it, and the closure too, even if it returns nil.
type Tx struct {
	ses   *session
	store *Store
	now   time.Time
	log   *logHead         // the own device's newest change, shared by a batch; nil in a read
	fresh map[string]int64 // symbols made here, not yet committed
	wrote bool             // a change was appended
	open  []*cursor        // handed out by Query
	lost  error            // what ended the transaction before its closure did
	over  bool             // the closure has returned
}

// cursor is a result that is being read. Its statement serves nobody else
// meanwhile, so that a query may run again while its rows are read.
type cursor struct {
	query string
	stmt  *sql.Stmt
	rows  *sql.Rows
}

// Now is the time of this transaction, read once from the store's clock.
func (t *Tx) Now() time.Time { return t.now }

// Exec runs a statement. Statements are kept prepared by their text. One whose LIMIT is
// a bare parameter is prepared again at every run anyway, since SQLite plans by the
// number; with a sign, as in LIMIT +?, it is not.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	ctx, st, err := t.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	res, err := st.ExecContext(ctx, args...)
	return res, t.noted(err)
}

// Query runs a query; the caller closes the rows. Rows still open when the
// closure returns are closed then.
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

// Texts are the first column of every row of a query that has one column, in order;
// nil without a row.
func (t *Tx) Texts(ctx context.Context, query string, args ...any) (out []string, err error) {
	err = t.Each(ctx, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		out = append(out, text)
		return err
	}, query, args...)
	return out, err
}

// Keys are as Texts, of a column of integers.
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

// finish closes a cursor and gives its statement back. It returns what went
// wrong while the rows were read.
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
		ctx = context.WithoutCancel(ctx) // an interrupted statement would undo the neighbours' too
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	st, err := t.ses.prepared(ctx, query)
	return ctx, st, t.noted(err)
}

// noted remembers an error on which SQLite gives up a whole transaction, lest
// later statements run outside of any.
func (t *Tx) noted(err error) error {
	if code, _ := resultCode(err); t.lost == nil && endsTransaction(code) {
		t.lost = err
	}
	return err
}

// run calls the closure and closes what it left open. A panic becomes an error,
// so that one defect does not take other callers with it.
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

// nested is the error of a Read or Write inside a closure of the same store,
// which could wait for itself for ever.
func (s *Store) nested(ctx context.Context) error {
	if ctx.Value(within{s}) == nil {
		return nil
	}
	return fault.New(fault.Internal, "internal", "a defect in cairn: one transaction was begun inside another")
}

// controlsTransaction reports whether a statement would begin or end a
// transaction, which is the store's alone to do.
func controlsTransaction(query string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	switch strings.ToUpper(strings.TrimRight(word, ";")) {
	case "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE":
		return true
	}
	return false
}
