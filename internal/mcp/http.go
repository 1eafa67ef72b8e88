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

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// statelessRevision is the first protocol revision without sessions.
	statelessRevision = "2026-07-28"

	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"

	// scopeHeader carries ?project= from the URL to the call inside this
	// process; what a client sends under that name is dropped.
	scopeHeader = "Cairn-Scope"

	// connectionHeader carries the name of the request's session to the call inside this
	// process; what a client sends under that name is dropped.
	connectionHeader = "Cairn-Connection"

	// traceHeader is passed on as the listener has answered it already: a request
	// without one that can be used has one from there (memories §9).
	traceHeader = "Traceparent"
)

// HTTPOptions tunes [Server.Handler]. The zero value is ready for use.
type HTTPOptions struct {
	// SessionIdle ends a session that sent nothing for so long; 24 hours when
	// zero.
	SessionIdle time.Duration

	// MaxSessions is how many sessions may be open; 4,096 when zero, which is some
	// 60 MB. One more ends the session that was used the longest ago.
	MaxSessions int

	// Heartbeat is the pause after which an open stream gets an SSE comment, so
	// that proxies keep it; 30 seconds when zero (contract memories §3).
	Heartbeat time.Duration

	// HostChecked says that the listener has checked Host itself. Otherwise a
	// request to a loopback address must name a loopback host, which stops DNS
	// rebinding. Tokens and Origin are always the listener's business.
	HostChecked bool

	// Bearer says who a request is from; nil if all are from the owner.
	Bearer func(r *http.Request) Bearer
}

// Handler serves MCP's streamable HTTP at whatever URL it is mounted on: with
// sessions for revisions up to 2025-11-25, without for 2026-07-28. A request of an older
// revision that begins no session and names none, or one that the server does not know
// (it has restarted, say; not one that its client has ended), is answered by itself, in
// JSON, whatever it says that it accepts, also if it calls the body a form as curl -d
// does: scripts send a single plain POST (amendments §B.4). ?project= in the URL is the
// project of calls that name none, else all projects are (contract observations §8). A
// body may have 16 MiB; a longer one is answered with 413. [Server.Close] ends its streams.
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
		Logger: s.log, DisableLocalhostProtection: o.HostChecked, MaxRequestBodyBytes: maxMessage,
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

// endpoint is the one URL with the three handlers behind it.
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
		if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" { // as curl -d says of everything
			r.Header.Set("Content-Type", "application/json")
		}
	default:
		if id := r.Header.Get(sessionHeader); r.Method == http.MethodDelete && e.sessions.knows(id) {
			e.sessions.end(id)
		}
		e.sessions.coming(r)
		defer func() { e.sessions.use(w.Header().Get(sessionHeader)) }() // one that has just begun
	}
	out := newHeartbeatWriter(w, e.heartbeat)
	defer out.stop()
	handler.ServeHTTP(out, r)
}

// connectionName is the id under which the store knows a transport session, the same
// after a restart of the server (amendments §B.4). It is a hash, so that a client cannot
// name the session of another one that it has read of.
func connectionName(session string) string {
	sum := sha256.Sum256([]byte("cairn connection\x00" + session))
	return "S-" + base32.StdEncoding.EncodeToString(sum[:])[:26]
}

// isSingle reports whether a request is served by itself: it is a call outside any session
// that the server knows.
func (e *endpoint) isSingle(m message, r *http.Request) bool {
	id := r.Header.Get(sessionHeader)
	return m.method != "" && m.method != "initialize" && !e.sessions.knows(id) && !e.sessions.hasEnded(id)
}

// message is what the endpoint has to know of a request's body.
type message struct {
	method   string // "" for anything but a single message
	revision string // "" if neither the request nor the message names one
}

// readMessage reads the revision of a request, from its version header or for a message
// outside any session from the message itself. Then a client that sends one without the
// other gets the error that its revision prescribes. It leaves the body readable.
func readMessage(w http.ResponseWriter, r *http.Request) (m message, err error) {
	if m.revision = r.Header.Get(versionHeader); m.revision >= statelessRevision || r.Method != http.MethodPost {
		return m, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
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
		return m, nil // the handler says what is wrong with it
	}
	m.method = read.Method
	var revision string
	if r.Header.Get(sessionHeader) == "" && json.Unmarshal(read.Params.Meta[sdk.MetaKeyProtocolVersion], &revision) == nil {
		m.revision = revision
	}
	return m, nil
}

// scopeOf is what an omitted project means for a request: over HTTP the URL's
// project or all of them, elsewhere the current one.
func scopeOf(extra *sdk.RequestExtra) Scope {
	if extra == nil || extra.Header == nil {
		return Scope{}
	}
	switch project := extra.Header.Get(scopeHeader); project {
	case "", "*":
		return Scope{All: true}
	default:
		return Scope{Name: project}
	}
}
