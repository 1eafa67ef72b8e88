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

	// Project names the arguments that say which project a call is about, the
	// likeliest first: {key} in the path fills the first of them that a tool has.
	Project []string

	Tools []mcp.Tool
}

// Config is what a server is made of.
type Config struct {
	MCP      *mcp.Server // served at /mcp and /api
	Toolsets []Toolset   // mirrored under /v1
	Pages    *web.Site   // for people, at / and below it; nil for none

	// Token returns the bearer token that requests must carry now; while it
	// fails, or returns "", nobody is let in.
	Token func() (string, error)

	// Bearer tells who bears another token; nil if there are none.
	Bearer func(token string) (who mcp.Bearer, ok bool, err error)

	LogoutDir string // keeps logouts from pages, so that they hold after a restart; "" keeps them in memory

	Cairn   *cairn.Cairn // whose memories are served; nil for none
	Project string       // whose memory `default` is where ?project= names none

	AllowHosts    []string // hosts besides loopback, each with or without a port
	AllowOrigins  []string // origins of pages that may call from a browser, such as https://desk.example
	RatePerMinute int      // calls of one client address; 0 for any number
	Limits        Limits

	Health  func(ctx context.Context) Health                  // behind /health; must be cheap and tell nothing private
	Numbers func(ctx context.Context, n *MetricsWriter) error // more for /metrics; may be nil
	Meter   *ToolMetrics                                      // which also sees the calls that come by MCP
	Log     *slog.Logger
}

// Limits are the times that a server grants (memories §14). A zero counts as the
// value that is named here.
type Limits struct {
	Header time.Duration // to send a request's header: 10 s
	Read   time.Duration // to send all of a request: 15 s
	Write  time.Duration // to take each part of an answer: 15 s
	Idle   time.Duration // between the requests of a connection: 60 s
	Stop   time.Duration // for running calls when the server stops: 10 s
}

func (l Limits) orStandard() Limits {
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

// Server answers HTTP requests. It is safe for concurrent use.
type Server struct {
	config       Config
	log          *slog.Logger
	guard        guard
	rate         *rate // nil for any rate
	gate         *gate
	meter        *ToolMetrics
	mirror       *mirror
	mcp          http.Handler
	memoryRoutes []route
	sessions     *sessions // of the people who look at pages
	began        time.Time
	stopping     chan struct{} // closed when the server stops
	stop         func()        // closes stopping, once
}

// New returns a server. It fails with Invalid, code usage, when an allowed host or
// origin is none.
func New(c Config) (*Server, error) {
	g, err := newGuard(c)
	if err != nil {
		return nil, err
	}
	m, err := newMirror(c)
	if err != nil {
		return nil, err
	}
	c.Limits = c.Limits.orStandard()
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

// Listen opens addr, HOST:PORT. An empty host means 127.0.0.1, port 0 a free one.
// Unless remote, an address that other machines can reach is refused with Invalid,
// code not_loopback. What is no address is Invalid, code usage; one that is taken is
// Unavailable, code address_in_use, and any other failure cannot_listen.
func Listen(ctx context.Context, addr string, remote bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "usage", "%.80q is no address to listen on", addr).
			WithHint("give HOST:PORT, such as 127.0.0.1:8765, or :0 for any free port")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if !remote && !isLoopback(host) {
		return nil, fault.Newf(fault.Invalid, "not_loopback", "%.80s can be reached from other machines", host).
			WithHint("add --allow-remote if that is meant; the token then crosses the network in the clear")
	}
	network := "tcp"
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		network = "tcp4" // else all addresses of IPv4 would mean those of IPv6 too
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, net.JoinHostPort(host, port))
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fault.Wrap(err, fault.Unavailable, "address_in_use", addr+" is in use").
			WithHint("another cairn or program listens there; choose another port, or :0 for any free one")
	}
	why := err.Error()
	if op, ok := errors.AsType[*net.OpError](err); ok {
		why = op.Err.Error()
	}
	return nil, fault.Wrap(err, fault.Unavailable, "cannot_listen", "cannot listen on "+addr+": "+why)
}

// isLoopback reports whether a host is this machine as only itself can reach it.
func isLoopback(host string) bool {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// maxHeader is how long a request's header may be, in bytes.
const maxHeader = 64 << 10

// Serve answers on l until ctx ends; then it takes no more requests, ends the
// streams, lets running calls end within the limit, cuts those that do not, and
// returns nil. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	calls, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	limits := s.config.Limits
	server := &http.Server{
		Handler:           answering(s),
		BaseContext:       func(net.Listener) context.Context { return calls },
		ReadHeaderTimeout: limits.Header,
		ReadTimeout:       limits.Read,
		WriteTimeout:      limits.Write,
		IdleTimeout:       limits.Idle,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // what clients do wrong is no news
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
			s.log.Warn("calls that were still running are cut off", "after", limits.Stop)
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

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &response{ResponseWriter: w, patience: s.config.Limits.Write}
	defer func() {
		s.surviving(out, r, recover())
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

// route answers a request that has passed all checks.
func (s *Server) route(w *response, r *http.Request) {
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case path == "/mcp" || path == "/api":
		s.gate.pass(w, r, isStream(r), s.mcp.ServeHTTP)
	case aboutMemories(r.URL.EscapedPath()):
		s.remember(w, r, bearerOf(r))
	case r.URL.Path == "/metrics":
		s.metrics(w, r)
	case r.URL.Path == "/v1/tools":
		s.mirror.list(w, r)
	default:
		call, ok := s.mirror.find(r.URL.EscapedPath())
		if !ok {
			refuse(w, refusal{status: http.StatusNotFound, code: "not_found", message: "there is nothing here", hint: "GET /v1/tools lists what there is"})
			return
		}
		s.gate.pass(w, r, false, func(http.ResponseWriter, *http.Request) { s.answer(w, r, call) })
	}
}
