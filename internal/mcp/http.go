package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"cairn/internal/mcp/stdio"
	"cairn/internal/mcp/toolargs"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// statelessRevision is the first protocol revision without sessions.
	statelessRevision = "2026-07-28"

	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"

	// scopeHeader carries ?project= from the URL to the call inside this process. A
	// client's header of that name is removed.
	scopeHeader = "Cairn-Scope"

	// connectionHeader carries the name of the request's session to the call inside this
	// process. A client's header of that name is removed.
	connectionHeader = "Cairn-Connection"

	// traceHeader is passed on as the listener set it: the listener adds one to a request
	// that has no valid one (memories §9).
	traceHeader = "Traceparent"
)

// HTTPOptions are the options of [Server.Handler]. The zero value is ready for use.
type HTTPOptions struct {
	// SessionIdle is the time after which an idle session is ended; 24 hours if zero.
	SessionIdle time.Duration

	// MaxSessions is the maximum number of open sessions; 4,096 if zero, which needs about
	// 60 MB. One more ends the least recently used session.
	MaxSessions int

	// Heartbeat is the interval of SSE comments in an open stream, so that proxies keep it
	// open; 30 seconds if zero (contract memories §3).
	Heartbeat time.Duration

	// HostChecked is set if the listener has already checked Host. Otherwise a request to a
	// loopback address must name a loopback host, which prevents DNS rebinding. The
	// listener always checks tokens and Origin.
	HostChecked bool

	// Bearer returns the caller of a request; nil if all requests are the owner's.
	Bearer func(r *http.Request) Bearer
}

// Handler serves MCP's streamable HTTP at any URL. Revisions up to 2025-11-25 have
// sessions, 2026-07-28 has none.
//
// A request of an older revision without a session is served on its own. So is a request
// with an unknown session, for instance after a restart of the server, but not with a
// session that its client has ended. The response is JSON, whatever the request accepts,
// and the body may be declared as a form, as curl -d does: scripts send a single plain
// POST (amendments §B.4).
//
// ?project= in the URL is the default project of calls, else all projects are (contract
// observations §8). A body may have 16 MiB; a longer one gets 413. [Server.Close] ends
// its streams.
func (s *Server) Handler(o HTTPOptions) http.Handler {
	if o.SessionIdle == 0 {
		o.SessionIdle = 24 * time.Hour
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = 4096
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 30 * time.Second
	}
	server := func(*http.Request) *sdk.Server { return s.sdk }
	common := sdk.StreamableHTTPOptions{
		Logger: s.log, DisableLocalhostProtection: o.HostChecked, MaxRequestBodyBytes: stdio.MaxMessage,
	}
	withSessions, without := common, common
	withSessions.SessionTimeout = o.SessionIdle
	without.Stateless, without.PropagateRequestCancellation = true, true
	single := without
	single.JSONResponse = true
	return &endpoint{
		single:    sdk.NewStreamableHTTPHandler(server, &single),
		stateful:  sdk.NewStreamableHTTPHandler(server, &withSessions),
		stateless: sdk.NewStreamableHTTPHandler(server, &without),
		heartbeat: o.Heartbeat,
		bearer:    o.Bearer,
		sessions:  &sessions{open: s.sdk.Sessions, most: o.MaxSessions, used: map[string]time.Time{}, ended: map[string]bool{}},
	}
}

// endpoint serves one URL with three handlers.
type endpoint struct {
	stateful, stateless, single http.Handler
	heartbeat                   time.Duration
	bearer                      func(r *http.Request) Bearer
	sessions                    *sessions
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.Clone(r.Context())
	r.Header.Del(scopeHeader)
	r.Header.Del(connectionHeader)
	r.Header.Del(bearerHeader)
	if e.bearer != nil {
		e.bearer(r).set(r.Header)
	}
	r.Header.Set(traceHeader, w.Header().Get(traceHeader))
	if project := r.URL.Query().Get("project"); project != "" {
		r.Header.Set(scopeHeader, project)
	}
	if id := r.Header.Get(sessionHeader); id != "" {
		r.Header.Set(connectionHeader, connectionName(id))
	}
	handler := e.stateful
	switch m, err := readMessage(w, r); {
	case err != nil:
		status := http.StatusBadRequest
		if _, long := errors.AsType[*http.MaxBytesError](err); long {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, http.StatusText(status), status)
		return
	case m.revision >= statelessRevision:
		handler = e.stateless
		r.Header.Del(connectionHeader)
	case e.isSingle(m, r):
		handler = e.single
		r.Header.Del(sessionHeader)
		r.Header.Set("Accept", "application/json, text/event-stream")
		if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" { // as curl -d declares every body
			r.Header.Set("Content-Type", "application/json")
		}
	default:
		if id := r.Header.Get(sessionHeader); r.Method == http.MethodDelete && e.sessions.knows(id) {
			e.sessions.end(id)
		}
		e.sessions.noteRequest(r)
		defer func() { e.sessions.use(w.Header().Get(sessionHeader)) }() // a session that has just started
	}
	out := newHeartbeatWriter(w, e.heartbeat)
	defer out.stop()
	handler.ServeHTTP(out, r)
}

// connectionName returns the id of a transport session in the store. It is the same after
// a restart of the server (amendments §B.4). It is a hash, so that a client that has read
// the id of another client's session cannot use that session.
func connectionName(session string) string {
	sum := sha256.Sum256([]byte("cairn connection\x00" + session))
	return "S-" + base32.StdEncoding.EncodeToString(sum[:])[:26]
}

// isSingle reports whether a request is served on its own: a call outside every session
// that the server knows.
func (e *endpoint) isSingle(m message, r *http.Request) bool {
	id := r.Header.Get(sessionHeader)
	return m.method != "" && m.method != "initialize" && !e.sessions.knows(id) && !e.sessions.hasEnded(id)
}

// message is the part of a request's body that the endpoint needs.
type message struct {
	method   string // "" unless the body is a single message
	revision string // "" if neither the request nor the message has one
}

// readMessage reads the revision of a request from its version header. For a message outside
// any session it reads the revision from the message itself. So a client that sends only one
// of them gets the error of its revision. The body stays readable.
func readMessage(w http.ResponseWriter, r *http.Request) (m message, err error) {
	if m.revision = r.Header.Get(versionHeader); m.revision >= statelessRevision || r.Method != http.MethodPost {
		return m, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, stdio.MaxMessage))
	if err != nil {
		return m, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var read struct {
		Method string `json:"method"`
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &read) != nil {
		return m, nil // the handler reports the error
	}
	m.method = read.Method
	var revision string
	if r.Header.Get(sessionHeader) == "" && json.Unmarshal(read.Params.Meta[sdk.MetaKeyProtocolVersion], &revision) == nil {
		m.revision = revision
	}
	return m, nil
}

// scopeOf returns the default project of a request: over HTTP the URL's project, else all
// projects; otherwise the current project.
func scopeOf(extra *sdk.RequestExtra) toolargs.Scope {
	if extra == nil || extra.Header == nil {
		return toolargs.Scope{}
	}
	switch project := extra.Header.Get(scopeHeader); project {
	case "", "*":
		return toolargs.Scope{All: true}
	default:
		return toolargs.Scope{Name: project}
	}
}
