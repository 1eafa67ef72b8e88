package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// anyHost connects to several hosts concurrently and uses the first that accepts. If it tried
// them one after another, a host that does not respond would use up the time of every push.
type anyHost []driver.Connector

// newConnector returns a connector for an address. With several hosts it uses only writable
// ones, unless the address specifies otherwise.
func newConnector(config *pgx.ConnConfig, writes bool) driver.Connector {
	fatal := config.OnPgError
	config.OnPgError = func(c *pgconn.PgConn, e *pgconn.PgError) bool {
		return e.Code != readOnly && fatal(c, e) // false closes the connection
	}
	hosts := splitHosts(config)
	if len(hosts) == 1 {
		return noCancelHost{config}
	}
	var all anyHost
	for _, h := range hosts {
		if h.ValidateConnect == nil && writes {
			h.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
		}
		all = append(all, noCancelHost{h})
	}
	return all
}

// splitHosts returns a configuration for each host, with its own fallbacks: the same host
// without TLS, if the address permits that.
func splitHosts(config *pgx.ConnConfig) (hosts []*pgx.ConnConfig) {
	first := &pgconn.FallbackConfig{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}
	for _, f := range slices.Concat([]*pgconn.FallbackConfig{first}, config.Fallbacks) {
		i := slices.IndexFunc(hosts, func(h *pgx.ConnConfig) bool { return h.Host == f.Host && h.Port == f.Port })
		if i >= 0 {
			hosts[i].Fallbacks = append(hosts[i].Fallbacks, f)
			continue
		}
		h := config.Copy()
		h.Host, h.Port, h.TLSConfig, h.Fallbacks = f.Host, f.Port, f.TLSConfig, nil
		hosts = append(hosts, h)
	}
	return hosts
}

func (a anyHost) Driver() driver.Driver { return a[0].Driver() }

// Connect returns the first connection that succeeds and cancels the other attempts.
func (a anyHost) Connect(ctx context.Context) (driver.Conn, error) {
	type outcome struct {
		conn driver.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	made := make(chan outcome, len(a))
	for _, host := range a {
		go func() {
			conn, err := host.Connect(ctx)
			made <- outcome{conn, err}
		}()
	}
	var failures []error
	for left := len(a) - 1; left >= 0; left-- {
		o := <-made
		if o.err == nil {
			go func() {
				for range left {
					if o := <-made; o.conn != nil {
						_ = o.conn.Close() // no caller has used it
					}
				}
			}()
			return o.conn, nil
		}
		failures = append(failures, o.err)
	}
	return nil, errors.Join(failures...)
}
