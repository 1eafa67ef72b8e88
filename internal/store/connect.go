package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// connector opens SQLite connections whose pragmas are set in a fixed order,
// the busy timeout before anything that could meet a lock (observations §3).
type connector struct {
	uri     string
	pragmas []string
}

func (c connector) Driver() driver.Driver { return sqliteDriver() }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Driver().Open(c.uri)
	if err != nil {
		return nil, err
	}
	execer, ok := conn.(driver.ExecerContext)
	if !ok {
		return nil, fmt.Errorf("the SQLite driver %s cannot execute statements", Driver)
	}
	for _, p := range c.pragmas {
		if _, err := execer.ExecContext(ctx, p, nil); err != nil {
			return nil, closeAfter(conn, err)
		}
	}
	return conn, nil
}

// closeAfter closes conn because of err and returns err.
func closeAfter(conn driver.Conn, err error) error {
	if cerr := conn.Close(); cerr != nil {
		return fmt.Errorf("%w (and closing: %v)", err, cerr)
	}
	return err
}

// fileURI is the SQLite URI of a file, with the characters that would end a
// path escaped.
func fileURI(path, query string) string {
	p := filepath.ToSlash(path)
	if len(p) > 1 && p[1] == ':' {
		p = "/" + p // a drive letter
	}
	esc := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(p)
	u := url.URL{Scheme: "file", Opaque: esc, RawQuery: query}
	return u.String()
}

func pragmaBusy(d time.Duration) string {
	return fmt.Sprintf("PRAGMA busy_timeout=%d", d.Milliseconds())
}

// A session is one SQLite connection with the statements prepared on it. It is
// used by one goroutine at a time.
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

// prepared returns the statement for a query, preparing it at first use.
func (s *session) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := s.stmts[query]; ok {
		return st, nil
	}
	st, err := s.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s.stmts[query] = st
	return st, nil
}

// exec runs a statement that is not worth keeping, such as BEGIN.
func (s *session) exec(ctx context.Context, query string) error {
	_, err := s.conn.ExecContext(ctx, query)
	return err
}

func (s *session) close() error {
	for _, st := range s.stmts {
		if err := st.Close(); err != nil {
			return err
		}
	}
	return s.conn.Close()
}
