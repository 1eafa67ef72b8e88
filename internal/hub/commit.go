package hub

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Where replication is synchronous, a commit waits for another server. Whoever asks
// PostgreSQL to break that wait off makes the transaction visible, though this server
// alone has it: a pull would show what is lost with it. So a connection that is given up
// during a commit just ends, and the commit waits on. What is sent again meanwhile waits
// for the stream's lock, so each stream leaves the server one such session. Statements in
// a transaction are broken off, lest those that wait for a lock pile up.

// errCommits is why no request to break off is sent.
var errCommits = errors.New("a commit is not broken off")

// patientHost makes connections to one host that break off no commit.
type patientHost struct{ config *pgx.ConnConfig }

func (h patientHost) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

// Connect connects. The driver asks to break off by a second connection to the server,
// which it makes as it made the first.
func (h patientHost) Connect(ctx context.Context) (driver.Conn, error) {
	commits := &atomic.Bool{}
	config := h.config.Copy()
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if commits.Load() {
			return nil, errCommits
		}
		return dial(ctx, network, address)
	}
	conn, err := stdlib.GetConnector(*config).Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &patientConn{conn.(*stdlib.Conn), commits}, nil
}

// patientConn is a connection that breaks off no commit.
type patientConn struct {
	*stdlib.Conn
	commits *atomic.Bool // a commit is under way, or was when the connection ended
}

// committing runs what commits.
func (c *patientConn) committing(commit func() error) error {
	c.commits.Store(true)
	err := commit()
	if !c.Conn.Conn().IsClosed() {
		c.commits.Store(false)
	}
	return err
}

// ExecContext runs a statement, which outside of a transaction is one by itself.
func (c *patientConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	if c.Conn.Conn().PgConn().TxStatus() != 'I' {
		return c.Conn.ExecContext(ctx, query, args)
	}
	err = c.committing(func() error {
		result, err = c.Conn.ExecContext(ctx, query, args)
		return err
	})
	return result, err
}

// BeginTx begins a transaction.
func (c *patientConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return patientTx{tx, c}, nil
}

type patientTx struct {
	driver.Tx
	conn *patientConn
}

// Commit commits, or leaves the outcome to the server when time is up.
func (t patientTx) Commit() error { return t.conn.committing(t.Tx.Commit) }
