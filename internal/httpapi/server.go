package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/web"
)

// Toolset is a group of tools that the mirror serves under one name.
type Toolset struct {
	Name string

	// Project lists arguments for the project, the most common first. {key} in the path sets
	// the first of them that a tool has.
	Project []string

	Tools []mcp.Tool
}

// Config contains the parts and options of a server.
type Config struct {
	MCP      *mcp.Server // served at /mcp and /api
	Toolsets []Toolset   // mirrored under /v1
	Pages    *web.Site   // web pages, at / and below; may be nil

	// Token returns the current bearer token. While it fails or returns "", all requests are
	// rejected.
	Token func() (string, error)

	// Bearer returns the bearer of another token; nil if there are no other tokens.
	Bearer func(token string) (who mcp.Bearer, ok bool, err error)

	LogoutDir string // stores logouts, so that they apply after a restart; "" keeps them in memory

	Cairn   *cairn.Cairn // its memories are served; may be nil
	Project string       // the project of the memory `default` without ?project=

	AllowHosts    []string // additional hosts, each with or without a port
	AllowOrigins  []string // origins of pages that may send requests, such as https://desk.example
	RatePerMinute int      // calls of one client address; 0 for no limit
	Limits        Limits

	Health  func(ctx context.Context) Health                  // for /health; must be fast and contain nothing private
	Numbers func(ctx context.Context, n *MetricsWriter) error // additional metrics; may be nil
	Meter   *ToolMetrics                                      // also counts calls over MCP
	Log     *slog.Logger
}

// Limits are the time limits of a server (memories §14). Zero means the default given here.
type Limits struct {
	Header time.Duration // to send a request's header: 10 s
	Read   time.Duration // to send all of a request: 15 s
	Write  time.Duration // to read each part of a response: 15 s
	Idle   time.Duration // between the requests of a connection: 60 s
	Stop   time.Duration // for running calls when the server stops: 10 s
}

func (l Limits) withDefaults() Limits {
	or := func(d *time.Duration, standard time.Duration) {
		if *d == 0 {
			*d = standard
		}
	}
	or(&l.Header, 10*time.Second)
	or(&l.Read, 15*time.Second)
	or(&l.Write, 15*time.Second)
	or(&l.Idle, 60*time.Second)
	or(&l.Stop, 10*time.Second)
	return l
}

// Server serves HTTP requests. It is safe for concurrent use.
type Server struct {
	config       Config
	log          *slog.Logger
	guard        guard
	rate         *rate // nil for no limit
	gate         *gate
	meter        *ToolMetrics
	mirror       *mirror
	mcp          http.Handler
	memoryRoutes []route
	sessions     *sessions // login sessions of pages
	began        time.Time
	stopping     chan struct{} // closed when the server stops
	stop         func()        // closes stopping, once
}

// New returns a server. An invalid host or origin is Invalid, code usage.
func New(c Config) (*Server, error) {
	g, err := newGuard(c)
	if err != nil {
		return nil, err
	}
	m, err := newMirror(c)
	if err != nil {
		return nil, err
	}
	c.Limits = c.Limits.withDefaults()
	s := &Server{
		config: c, log: c.Log, guard: g, gate: newGate(), meter: c.Meter, mirror: m,
		mcp: c.MCP.Handler(mcp.HTTPOptions{HostChecked: true, Bearer: bearerOf}), memoryRoutes: memoryRoutes(), began: time.Now(),
		sessions: newSessions(c.LogoutDir), stopping: make(chan struct{}),
	}
	s.stop = sync.OnceFunc(func() { close(s.stopping) })
	if c.RatePerMinute > 0 {
		s.rate = newRate(c.RatePerMinute)
	}
	return s, nil
}

// Listen opens addr, HOST:PORT. An empty host means 127.0.0.1, port 0 a free port. Errors:
// Invalid, code not_loopback, for an address that other machines can reach, unless remote is
// set; Invalid, code usage, for an invalid address; Unavailable, code address_in_use or
// cannot_listen.
func Listen(ctx context.Context, addr string, remote bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "usage", "%.80q is not an address to listen on", addr).
			WithHint("give HOST:PORT, such as 127.0.0.1:8765, or :0 for any free port")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if !remote && !isLoopback(host) {
		return nil, fault.Newf(fault.Invalid, "not_loopback", "%.80s can be reached from other machines", host).
			WithHint("add --allow-remote to allow this; the token is then sent unencrypted")
	}
	network := "tcp"
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		network = "tcp4" // else the IPv4 wildcard would include IPv6
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, net.JoinHostPort(host, port))
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fault.Wrap(err, fault.Unavailable, "address_in_use", addr+" is in use").
			WithHint("another program listens there; choose another port, or :0 for a free one")
	}
	why := err.Error()
	if op, ok := errors.AsType[*net.OpError](err); ok {
		why = op.Err.Error()
	}
	return nil, fault.Wrap(err, fault.Unavailable, "cannot_listen", "cannot listen on "+addr+": "+why)
}

// isLoopback reports whether a host is a loopback address or localhost.
func isLoopback(host string) bool {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// maxHeader is the maximum size of a request's header, in bytes.
const maxHeader = 64 << 10

// Serve serves requests on l until ctx ends. Then it accepts no more requests, ends the
// streams, waits for running calls within the limit, cancels the others and returns nil. It
// closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	calls, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	limits := s.config.Limits
	server := &http.Server{
		Handler:           passAfterAck(s),
		BaseContext:       func(net.Listener) context.Context { return calls },
		ReadHeaderTimeout: limits.Header,
		ReadTimeout:       limits.Read,
		WriteTimeout:      limits.Write,
		IdleTimeout:       limits.Idle,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // errors of clients are not important
	}
	server.RegisterOnShutdown(func() {
		s.stop()
		if err := s.config.MCP.Close(); err != nil {
			s.log.Debug("ending the streams", "error", err)
		}
	})
	stopped := make(chan error, 1)
	watching := context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(calls, limits.Stop)
		defer cancel()
		err := server.Shutdown(limited)
		if errors.Is(err, context.DeadlineExceeded) {
			s.log.Warn("running calls are cancelled", "after", limits.Stop)
			cut()
			err = server.Close()
		}
		stopped <- err
	})
	err := server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return <-stopped
	}
	watching()
	return err
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &response{ResponseWriter: w, patience: s.config.Limits.Write}
	defer func() {
		s.recoverPanic(out, r, recover())
		s.meter.answered(out.status)
	}()
	out.Header().Set("X-Content-Type-Options", "nosniff")
	out.Header().Set("Cache-Control", "no-store")
	correlate(out, r)
	if s.config.Pages != nil && web.Covers(r.URL.EscapedPath()) {
		s.visit(out, r)
		return
	}
	if !s.guard.admits(out, r) {
		return
	}
	if r.URL.Path == "/health" || r.URL.Path == "/v1/health" {
		s.health(out, r)
		return
	}
	who, ok := s.authorized(out, r)
	if !ok {
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), bearerKey{}, who))
	if s.rate.exceeded(out, r) {
		return
	}
	s.route(out, r)
}

// route serves a request that has passed all checks.
func (s *Server) route(w *response, r *http.Request) {
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case path == "/mcp" || path == "/api":
		s.gate.pass(w, r, isStream(r), s.mcp.ServeHTTP)
	case isMemoryPath(r.URL.EscapedPath()):
		s.serveMemories(w, r, bearerOf(r))
	case r.URL.Path == "/metrics":
		s.metrics(w, r)
	case r.URL.Path == "/v1/tools":
		s.mirror.list(w, r)
	default:
		call, ok := s.mirror.find(r.URL.EscapedPath())
		if !ok {
			refuse(w, refusal{status: http.StatusNotFound, code: "not_found", message: "this route does not exist", hint: "GET /v1/tools lists the routes"})
			return
		}
		s.gate.pass(w, r, false, func(http.ResponseWriter, *http.Request) { s.answer(w, r, call) })
	}
}
