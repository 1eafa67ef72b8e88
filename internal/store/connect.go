package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

func pragmaBusy(d time.Duration) string {
	return fmt.Sprintf("PRAGMA busy_timeout=%d", d.Milliseconds())
}

// session is one SQLite connection with its prepared statements. It must be used by one
// goroutine at a time.
type session struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

func newSession(ctx context.Context, db *sql.DB) (*session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &session{conn: conn, stmts: map[string]*sql.Stmt{}}, nil
}

// prepared returns the statement for a query. It prepares the statement at first use.
func (s *session) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := s.stmts[query]; ok {
		return st, nil
	}
	if controlsTransaction(query) {
		return nil, fmt.Errorf("%.20q in a closure: transactions begin and end with closures", query)
	}
	st, err := s.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s.stmts[query] = st
	return st, nil
}

// exec runs a statement without keeping it prepared, such as BEGIN.
func (s *session) exec(ctx context.Context, query string) error {
	_, err := s.conn.ExecContext(ctx, query)
	return err
}

// known returns an error if a newer cairn has migrated the store since it was opened.
func (s *session) known(ctx context.Context) error {
	st, err := s.prepared(ctx, "PRAGMA user_version")
	if err != nil {
		return err
	}
	var version int
	if err := st.QueryRowContext(ctx).Scan(&version); err != nil {
		return err
	}
	if version > newest() {
		return checkVersion(ctx, s.conn, version)
	}
	return nil
}

// close returns the connection for reuse.
func (s *session) close() error {
	return errors.Join(s.forget(), s.conn.Close())
}

// discard closes the connection permanently, with any open transaction.
func (s *session) discard() error {
	err := s.forget() // first: a statement must not outlive its connection
	bad := s.conn.Raw(func(any) error { return driver.ErrBadConn })
	if !errors.Is(bad, driver.ErrBadConn) {
		err = errors.Join(err, bad, s.conn.Close())
	}
	return err
}

// forget closes the prepared statements.
func (s *session) forget() (err error) {
	for _, st := range s.stmts {
		err = errors.Join(err, st.Close())
	}
	clear(s.stmts)
	return err
}
