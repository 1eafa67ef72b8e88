package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// With synchronous replication a COMMIT waits for another server. If that wait is cancelled,
// the transaction becomes visible while only this server has it. Pulls would then return items
// that are lost with the server. So a connection that is closed during a COMMIT just ends, and
// the server continues to wait. Items that are sent again wait for the stream's lock, so each
// stream leaves at most one such session on the server. Other statements are cancelled, so
// that statements that wait for a lock do not accumulate.

// errCommits prevents the request that would cancel a COMMIT.
var errCommits = errors.New("a COMMIT is not cancelled")

// noCancelHost opens connections to one host that never cancel a COMMIT.
type noCancelHost struct{ config *pgx.ConnConfig }

func (h noCancelHost) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

// Connect opens a connection. To cancel a statement the driver opens a second connection with
// the same dial function.
func (h noCancelHost) Connect(ctx context.Context) (driver.Conn, error) {
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
	return &noCancelConn{conn.(*stdlib.Conn), commits}, nil
}

// noCancelConn is a connection that never cancels a COMMIT.
type noCancelConn struct {
	*stdlib.Conn
	commits *atomic.Bool // a COMMIT is running, or was running when the connection ended
}

// committing runs commit and marks the connection as committing meanwhile.
func (c *noCancelConn) committing(commit func() error) error {
	c.commits.Store(true)
	err := commit()
	if !c.Conn.Conn().IsClosed() {
		c.commits.Store(false)
	}
	return err
}

// ExecContext runs a statement. A statement outside a transaction commits automatically.
func (c *noCancelConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	if c.Conn.Conn().PgConn().TxStatus() != 'I' {
		return c.Conn.ExecContext(ctx, query, args)
	}
	err = c.committing(func() error {
		result, err = c.Conn.ExecContext(ctx, query, args)
		return err
	})
	return result, err
}

func (c *noCancelConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return noCancelTx{tx, c}, nil
}

type noCancelTx struct {
	driver.Tx
	conn *noCancelConn
}

// Commit commits the transaction. After a timeout the server decides the outcome.
func (t noCancelTx) Commit() error { return t.conn.committing(t.Tx.Commit) }
