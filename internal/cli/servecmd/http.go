package servecmd

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

	"cairn/internal/cli/command"
	"cairn/internal/doctor"
	"cairn/internal/fault"
	"cairn/internal/followers"
	"cairn/internal/httpapi"
	"cairn/internal/mcp"
	"cairn/internal/web"
)

// listener is the address of serve over HTTP, and the clients that it accepts.
type listener struct {
	addr    string // "" for standard input and output
	remote  bool
	hosts   []string
	origins []string
	ready   func(addr string) // if set, it is called once with the actual address
	doctor  func(ctx context.Context) (doctor.Diagnosis, error)
}

func (l *listener) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.addr, "http", "", "listen on `ADDR`, such as 127.0.0.1:8765; port 0 means a free port")
	cmd.Flags().BoolVar(&l.remote, "allow-remote", false, "allow an ADDR that other machines can reach; the token is sent unencrypted. Host names in their requests need --allow-host")
	cmd.Flags().StringSliceVar(&l.hosts, "allow-host", nil, "also accept requests to `HOST`[:PORT], as behind a proxy (may be repeated)")
	cmd.Flags().StringSliceVar(&l.origins, "allow-origin", nil, "allow requests of web pages from `ORIGIN` (may be repeated)")
}

// check rejects flags that require --http.
func (l *listener) check(cmd *cobra.Command) error {
	if err := command.RefuseBlank(cmd, "http"); err != nil {
		return err
	}
	for _, name := range []string{"allow-remote", "allow-host", "allow-origin"} {
		if l.addr == "" && cmd.Flags().Changed(name) {
			return fault.Newf(fault.Invalid, "usage", "--%s requires --http", name).WithHint(command.SeeHelp(cmd))
		}
	}
	return nil
}

// own returns the host of the address, if requests can name it.
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

// jsonTools returns the tools for the JSON mirror. It includes tools that MCP does not
// list, because here definitions cost no tokens.
func jsonTools(sets []toolset) []httpapi.Toolset {
	var out []httpapi.Toolset
	for _, s := range sets {
		out = append(out, httpapi.Toolset{Name: s.name, Project: s.project, Tools: s.all})
	}
	return out
}

// listen opens the listener, prints its address and returns the function that serves it.
func listen(p *command.Process, ctx context.Context, q toolHandlers, at listener, config httpapi.Config) (func(context.Context) error, error) {
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
		return errors.Join(q.writeMetrics(ctx, n), q.writeGauges(ctx, n))
	}
	config.Pages = web.New(web.Config{Cairn: c, Version: p.Version, Doctor: at.doctor, Toolsets: q.toolsetCosts, Calls: config.Meter.Calls})
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
	context.AfterFunc(p.Hooks.ProcessContext(ctx), func() { signal.Reset(os.Interrupt, syscall.SIGTERM) }) // a second signal ends the process immediately
	fmt.Fprintf(p.Err, "cairn: serving http://%s (token in %s)\n", l.Addr(), httpapi.TokenFile(c.Dir()))
	if at.ready != nil {
		at.ready(l.Addr().String())
	}
	return func(ctx context.Context) error { return server.Serve(ctx, l) }, p.Hooks.Attach(c, l.Addr())
}

// toolsetCosts is what the definitions of each toolset cost, complete and in the lean profile.
func (q toolHandlers) toolsetCosts() ([]web.ToolsetCost, error) {
	var costs [2]surfaceCost
	for i, profile := range [...]string{"full", "lean"} {
		sets, err := surface{profile: profile}.sets(q)
		if err != nil {
			return nil, err
		}
		if costs[i], err = costOf(sets); err != nil {
			return nil, err
		}
	}
	list := make([]web.ToolsetCost, len(costs[0].Toolsets))
	for i, set := range costs[0].Toolsets {
		list[i] = web.ToolsetCost{Name: set.Name, Tools: len(set.Tools), Tokens: set.Tokens}
		for _, t := range set.Tools {
			list[i].Names = append(list[i].Names, t.Name)
		}
	}
	for _, set := range costs[1].Toolsets {
		i := slices.IndexFunc(list, func(c web.ToolsetCost) bool { return c.Name == set.Name })
		if i < 0 {
			i = len(list)
			list = append(list, web.ToolsetCost{Name: set.Name})
		}
		list[i].LeanTools, list[i].LeanTokens = len(set.Tools), set.Tokens
	}
	return list, nil
}

// writeMetrics writes the metrics of the store.
func (q toolHandlers) writeMetrics(ctx context.Context, n *httpapi.MetricsWriter) error {
	n.Counter("cairn_store_integrity_errors_total", float64(q.cairn.IntegrityErrors()))
	m, err := q.cairn.StoreMetrics(ctx)
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
	writeFollowerMetrics(n, m.Followers)
	return nil
}

// writeFollowerMetrics writes the state of the change log's followers: one number for
// all lanes of each.
func writeFollowerMetrics(n *httpapi.MetricsWriter, all followers.Account) {
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

// writeGauges writes the metrics of the archive and of the store's connections
// (mail §10.5).
func (q toolHandlers) writeGauges(ctx context.Context, n *httpapi.MetricsWriter) error {
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

func httpTokenCommand(p *command.Process) *cobra.Command {
	var rotate, asJSON bool
	cmd := &cobra.Command{
		Use:   "http-token",
		Short: "Print the token of serve --http, or create a new one",
		Long: `http-token prints the token that requests to cairn serve --http must carry, as
"Authorization: Bearer TOKEN". The token is created when it is first needed. It is in
the file http-token of the data directory, which only its owner can read.

--rotate creates a new token. Running servers then reject the old one, so configure the
new one in every client.`,
		Example: "  curl -H \"Authorization: Bearer $(cairn http-token)\" http://127.0.0.1:8765/v1/tools\n  cairn http-token --rotate",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := p.Config(cmd)
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
				return command.PrintJSON(p.Out, map[string]string{"token": token, "file": httpapi.TokenFile(config.Dir)})
			}
			_, err = fmt.Fprintln(p.Out, token)
			return err
		},
	}
	cmd.Flags().BoolVar(&rotate, "rotate", false, "replace the token by a new one")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the file")
	return cmd
}
