package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/doctor"
	"cairn/internal/fault"
	"cairn/internal/followers"
	"cairn/internal/httpapi"
	"cairn/internal/mcp"
	"cairn/internal/web"
)

// listener is where and to whom serve answers over HTTP.
type listener struct {
	addr    string // "" for standard input and output
	remote  bool
	hosts   []string
	origins []string
	ready   func(addr string) // if set, is called once with the address that is listened on
	doctor  func(ctx context.Context) (doctor.Diagnosis, error)
}

func (l *listener) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.addr, "http", "", "listen on `ADDR` (127.0.0.1:8765, localhost:0; :0 takes a free port of this machine)")
	cmd.Flags().BoolVar(&l.remote, "allow-remote", false, "let ADDR be one that other machines can reach; the token is not encrypted on its way. Names by which they call need --allow-host")
	cmd.Flags().StringSliceVar(&l.hosts, "allow-host", nil, "also answer requests to `HOST`[:PORT], as behind a proxy (may be repeated)")
	cmd.Flags().StringSliceVar(&l.origins, "allow-origin", nil, "let pages of `ORIGIN` call from a browser (may be repeated)")
}

// check refuses flags that only a listener has a use for.
func (l *listener) check(cmd *cobra.Command) error {
	if err := given(cmd, "http"); err != nil {
		return err
	}
	for _, name := range []string{"allow-remote", "allow-host", "allow-origin"} {
		if l.addr == "" && cmd.Flags().Changed(name) {
			return fault.Newf(fault.Invalid, "usage", "--%s requires --http", name).WithHint(seeHelp(cmd))
		}
	}
	return nil
}

// own is the host of the address, if it names one that requests can name.
func (l *listener) own() []string {
	host, _, err := net.SplitHostPort(l.addr)
	ip, perr := netip.ParseAddr(host)
	switch {
	case err != nil, host == "", perr == nil && (ip.IsUnspecified() || ip.Zone() != ""):
		return nil
	case perr == nil && ip.Is6():
		return []string{"[" + host + "]"}
	}
	return []string{host}
}

// mirrored are the tools of sets as JSON, also those that MCP does not list: here a
// definition costs nobody anything.
func mirrored(sets []toolset) []httpapi.Toolset {
	var out []httpapi.Toolset
	for _, s := range sets {
		out = append(out, httpapi.Toolset{Name: s.name, Project: s.project, Tools: s.all})
	}
	return out
}

// listening opens the listener, says where it is and returns what serves it.
func (p *Process) listening(ctx context.Context, q questions, at listener, config httpapi.Config) (func(context.Context) error, error) {
	c := q.cairn
	s := c.HTTP()
	config.AllowHosts, config.AllowOrigins, config.RatePerMinute = append(at.hosts, at.own()...), at.origins, s.RatePerMinute
	config.Limits = httpapi.Limits{Header: s.Header, Read: s.Read, Write: s.Write, Idle: s.Idle, Stop: s.Stop}
	config.Token = func() (string, error) { return httpapi.ReadToken(c.Dir()) }
	config.Bearer = func(token string) (mcp.Bearer, bool, error) { return httpapi.FindToken(c.Dir(), token, c.Now()) }
	config.LogoutDir = httpapi.LogoutDir(c.Dir())
	config.Cairn, config.Project = c, q.project
	config.Health = func(ctx context.Context) httpapi.Health {
		schema, err := c.Schema(ctx)
		h := httpapi.Health{Version: p.Version, Schema: schema, Err: err}
		if h.Replication.State = "unknown"; err == nil {
			h.Hub, h.Replication, h.Err = c.Replication().Health(ctx, false)
		}
		return h
	}
	config.Numbers = func(ctx context.Context, n *httpapi.MetricsWriter) error {
		return errors.Join(q.numbers(ctx, n), q.gauges(ctx, n))
	}
	config.Pages = web.New(web.Config{Cairn: c, Version: p.Version, Doctor: at.doctor})
	server, err := httpapi.New(config)
	if err != nil {
		return nil, err
	}
	l, err := httpapi.Listen(ctx, at.addr, at.remote)
	if err != nil {
		return nil, err
	}
	if _, err := httpapi.EnsureToken(c.Dir()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if at, err := netip.ParseAddrPort(l.Addr().String()); err == nil {
		c.Listening(at.Addr().String(), int(at.Port()))
	}
	context.AfterFunc(p.hooks.life(ctx), func() { signal.Reset(os.Interrupt, syscall.SIGTERM) }) // a second one ends at once
	fmt.Fprintf(p.Err, "cairn: serving http://%s (token in %s)\n", l.Addr(), httpapi.TokenFile(c.Dir()))
	if at.ready != nil {
		at.ready(l.Addr().String())
	}
	return func(ctx context.Context) error { return server.Serve(ctx, l) }, p.hooks.serving(c, l.Addr())
}

// numbers writes what /metrics says of the store.
func (q questions) numbers(ctx context.Context, n *httpapi.MetricsWriter) error {
	n.Counter("cairn_store_integrity_errors_total", float64(q.cairn.IntegrityErrors()))
	m, err := q.cairn.Measures(ctx)
	if err != nil {
		return err
	}
	n.Gauge("cairn_store_observations", float64(m.Counts.Observations))
	n.Gauge("cairn_store_prompts", float64(m.Counts.Prompts))
	n.Gauge("cairn_store_sessions", float64(m.Counts.Sessions))
	n.Gauge("cairn_store_projects", float64(m.Counts.Projects))
	for _, role := range slices.Sorted(maps.Keys(m.Bytes)) {
		n.Gauge("cairn_store_size_bytes", float64(m.Bytes[role]), "file", string(role))
	}
	followerNumbers(n, m.Followers)
	return nil
}

// followerNumbers writes how the followers of the change log do: one number for all lanes
// of each.
func followerNumbers(n *httpapi.MetricsWriter, all followers.Account) {
	behind, failing, aside := map[string]int64{}, map[string]int{}, map[string]int{}
	for _, f := range all.Followers {
		behind[f.Follower] += f.Behind
		if failing[f.Follower] += 0; f.Error != "" {
			failing[f.Follower]++
		}
	}
	for _, a := range all.SetAside {
		aside[a.Follower]++
	}
	for _, name := range slices.Sorted(maps.Keys(behind)) {
		n.Gauge("cairn_follower_lag_changes", float64(behind[name]), "follower", name)
		n.Gauge("cairn_follower_failing", float64(failing[name]), "follower", name)
		n.Gauge("cairn_follower_set_aside", float64(aside[name]), "follower", name)
	}
}

// gauges writes what /metrics says of the archive and of the connections to the store
// (mail §10.5).
func (q questions) gauges(ctx context.Context, n *httpapi.MetricsWriter) error {
	g, err := q.cairn.Gauges(ctx)
	if err != nil {
		return err
	}
	m, waits := g.Archive, g.Pool.Acquired
	n.Gauge("wbq_depth", float64(m.Depth))
	n.Counter("wbq_errors_total", float64(m.WriteErrors))
	n.Counter("commit_errors_total", float64(m.CommitErrors))
	n.Counter("commit_sync_fallbacks_total", float64(m.SyncFallbacks))
	n.Gauge("needs_reindex_total", float64(m.NeedsReindex))
	n.Histogram("pool_acquire_latency_us", waits, time.Microsecond)
	l := g.Latency()
	n.Gauge("pool_acquire_latency_us_p50", l.P50)
	n.Gauge("pool_acquire_latency_us_p95", l.P95)
	n.Gauge("pool_acquire_latency_us_p99", l.P99)
	return nil
}

func httpTokenCommand(p *Process) *cobra.Command {
	var rotate, asJSON bool
	cmd := &cobra.Command{
		Use:   "http-token",
		Short: "Print the token of serve --http, or create a new one",
		Long: `http-token prints the token that requests to cairn serve --http must carry, as
"Authorization: Bearer TOKEN". It is made when it is first needed and kept in the
data directory, in the file http-token that only its owner can read.

--rotate makes a new one: from then on running servers refuse the old one, and
every client must be told the new.`,
		Example: "  curl -H \"Authorization: Bearer $(cairn http-token)\" http://127.0.0.1:8765/v1/tools\n  cairn http-token --rotate",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := p.config(cmd)
			if err != nil {
				return err
			}
			get := httpapi.EnsureToken
			if rotate {
				get = httpapi.RotateToken
			}
			token, err := get(config.Dir)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(p.Out, map[string]string{"token": token, "file": httpapi.TokenFile(config.Dir)})
			}
			_, err = fmt.Fprintln(p.Out, token)
			return err
		},
	}
	cmd.Flags().BoolVar(&rotate, "rotate", false, "replace the token by a new one")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the file")
	return cmd
}
