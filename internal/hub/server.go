package hub

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/hub/database"
	"cairn/internal/memory"
	"cairn/internal/memory/rules"
	"cairn/internal/replica"
	"cairn/internal/strictjson"
)

// The time limits of a connection (memories §14).
const (
	headerTime = 10 * time.Second
	readTime   = 30 * time.Second // enough for a push of 4 MiB over a slow connection
	writeTime  = 30 * time.Second
	idleTime   = 60 * time.Second
	stopTime   = 10 * time.Second
)

// The maximum number of concurrent requests of a process. Further requests get the response
// 429.
const (
	maxPushes = 64   // bodies of up to 4 MiB each
	maxPulls  = 4096 // most of them wait
)

type gate struct{ pushes, pulls chan struct{} }

func newGate() gate { return gate{make(chan struct{}, maxPushes), make(chan struct{}, maxPulls)} }

// Serve serves requests on l until ctx ends. Then it accepts no more requests, ends waiting
// pulls, gives other requests ten seconds to finish, and returns nil. It closes l. Without a
// TLS configuration it serves plain HTTP.
func (h *Hub) Serve(ctx context.Context, l net.Listener, version string, secure *tls.Config) error {
	calls, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	web := &http.Server{
		Handler:           h.Handler(version),
		BaseContext:       func(net.Listener) context.Context { return calls },
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    64 << 10,
		TLSConfig:         secure,
		ErrorLog:          slog.NewLogLogger(h.log.Handler(), slog.LevelDebug), // errors of clients are not worth a warning
	}
	h.sweepSoon()
	stopped := make(chan error, 1)
	watching := context.AfterFunc(ctx, func() {
		h.Stop()
		limited, cancel := context.WithTimeout(calls, stopTime)
		defer cancel()
		err := web.Shutdown(limited)
		if errors.Is(err, context.DeadlineExceeded) {
			h.log.Warn("requests that were still running are cut off", "after", stopTime)
			cut()
			err = web.Close()
		}
		stopped <- err
	})
	serve := web.Serve
	if secure != nil {
		serve = func(l net.Listener) error { return web.ServeTLS(l, "", "") }
	}
	err := serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return <-stopped
	}
	watching()
	return err
}

// Handler serves the paths of memories §13. Errors have the envelope of fault.Envelope.
func (h *Hub) Handler(version string) http.Handler {
	mux := http.NewServeMux()
	answer := func(method, path string, level Level, do func(http.ResponseWriter, *http.Request, Identity) error) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, method, level, do) })
	}
	answer(http.MethodPost, replica.PathPush, LevelWrite, h.servePush)
	answer(http.MethodPost, replica.PathPull, LevelRead, h.servePull)
	answer(http.MethodGet, replica.PathHeads, LevelRead, h.serveHeads)
	answer(http.MethodGet, replica.PathEntries, LevelRead, h.serveEntries)
	answer(http.MethodGet, replica.PathWhoami, LevelRead, h.serveWhoami)
	answer(http.MethodGet, "/metrics", LevelRead, h.serveMetrics)
	mux.HandleFunc(replica.PathHealth, func(w http.ResponseWriter, r *http.Request) { h.serveHealth(w, r, version) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, fault.New(fault.NotFound, "not_found", "there is nothing here").WithHint("this is a cairn hub; devices join it with `cairn hub join`"))
	})
	return mux
}

// answer checks whether a request is admitted, and responds to it.
func (h *Hub) answer(w http.ResponseWriter, r *http.Request, method string, level Level, do func(http.ResponseWriter, *http.Request, Identity) error) {
	id := correlate(w, r)
	defer func() {
		if defect := recover(); defect != nil && defect != http.ErrAbortHandler {
			h.log.ErrorContext(r.Context(), "panic while answering", "path", r.URL.Path, "request_id", id, "stack", string(debug.Stack()))
			e := fault.New(fault.Internal, memory.CodeInternal, "internal error").WithHint("see the hub's log")
			e.Details = map[string]any{"request_id": id}
			h.fail(w, r, e)
		}
	}()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if r.Header.Get("Origin") != "" {
		h.fail(w, r, fault.New(fault.Denied, "forbidden", "requests from web pages are not accepted"))
		return
	}
	who, err := h.bearer(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		h.fail(w, r, fault.New(fault.Invalid, "method_not_allowed", "this path accepts only "+method))
		return
	}
	if !who.Level.includes(level) {
		h.fail(w, r, fault.New(fault.Denied, "forbidden", "this requires a token of level "+string(level)))
		return
	}
	if err := do(w, r, who); err != nil {
		h.fail(w, r, err)
	}
}

// correlate echoes the correlation ids of a request in the response, and returns the request's
// id. It creates an id if the request has no valid one (memories §9).
func correlate(w http.ResponseWriter, r *http.Request) (id string) {
	if id = r.Header.Get("Request-Id"); !isToken(id, maxTrace) {
		id = rules.NewID()
	}
	w.Header().Set("Request-Id", id)
	if trace := r.Header.Get("Traceparent"); isToken(trace, maxTrace) {
		w.Header().Set("Traceparent", trace)
	}
	return id
}

func (h *Hub) bearer(r *http.Request) (Identity, error) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" || len(r.Header.Values("Authorization")) != 1 {
		return Identity{}, unauthorized()
	}
	return h.authenticate(r.Context(), secret)
}

// fail responds with an error. Any error that is not a fault is a failure of the database: the
// response says to retry, and the log contains the cause.
func (h *Hub) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := database.Unavailable(err)
	if f.Code == database.CodeUnavailable && r.Context().Err() == nil {
		h.log.WarnContext(r.Context(), "the database failed", "path", r.URL.Path, "error", err)
	}
	status := memory.Status(f)
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, status, fault.EnvelopeOf(f))
}

// writeJSON writes v. It ignores clients that have disconnected.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

// readJSON reads a request's body: one JSON object of at most limit bytes.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "" && !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		return fault.New(fault.Invalid, "unsupported_media_type", "the body must be application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		f := fault.New(fault.Invalid, "body_too_large", "the body is too long")
		f.Details = map[string]any{"limit": limit}
		return f
	}
	if err != nil {
		return invalid("", "the body is incomplete")
	}
	return decodeBody(body, v)
}

// decodeBody reads one JSON value into v and refuses unknown members.
func decodeBody(body []byte, v any) error {
	switch err := strictjson.Decode(body, v); {
	case errors.Is(err, strictjson.ErrMore):
		return invalid("", "the body has text after the JSON")
	case err != nil:
		return invalid("", "the body is not the expected JSON")
	}
	return nil
}

// enter acquires a slot. If all are in use, it returns an error that says to retry.
func enter(places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		return nil, fault.New(fault.Unavailable, "rate_limited", "the hub is overloaded").WithHint("try again")
	}
}

func (h *Hub) servePush(w http.ResponseWriter, r *http.Request, who Identity) error {
	leave, err := enter(h.gate.pushes)
	if err != nil {
		return err
	}
	defer leave()
	var req replica.PushRequest
	if err := readJSON(w, r, replica.MaxPushBody, &req); err != nil {
		return err
	}
	if req.Head, err = headOf(r); err != nil {
		return err
	}
	before, err := h.deviceHead(r.Context(), who.UserID, req.DeviceID)
	if err != nil {
		return err
	}
	results, err := h.hooks.push(r.Context(), h, who, req)
	if err != nil {
		return err
	}
	for i, item := range req.Items {
		if item.Op == replica.OpDelete && item.Kind == replica.KindMemory && results[i].Status == http.StatusNoContent {
			h.sweepSoon()
			break
		}
	}
	writeJSON(w, http.StatusOK, replica.PushResponse{Results: results, DeviceHead: before})
	return nil
}

func (h *Hub) servePull(w http.ResponseWriter, r *http.Request, who Identity) error {
	leave, err := enter(h.gate.pulls)
	if err != nil {
		return err
	}
	defer leave()
	var req replica.PullRequest
	if err := readJSON(w, r, 1<<20, &req); err != nil {
		return err
	}
	if text := r.URL.Query().Get("catalogue"); text != "" {
		if req.Catalogue, err = strconv.ParseInt(text, 10, 64); err != nil {
			return invalid("catalogue", "catalogue is not a whole number")
		}
	}
	patience := writeTime + time.Duration(min(max(req.WaitMillis, 0), replica.MaxWaitMillis))*time.Millisecond
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // unsupported in tests without a connection
	answer, err := h.Pull(r.Context(), who, req)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func (h *Hub) serveHeads(w http.ResponseWriter, r *http.Request, who Identity) error {
	limit, err := limitOf(r)
	if err != nil {
		return err
	}
	answer, err := h.Heads(r.Context(), who, r.URL.Query().Get("after"), limit)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, invalid("limit", "limit is not a whole number")
	}
	return n, nil
}

func (h *Hub) serveEntries(w http.ResponseWriter, r *http.Request, who Identity) error {
	q := r.URL.Query()
	a := EntriesArgs{Memory: q.Get("memory"), Entry: q.Get("entry"), Session: q.Get("session_id")}
	var err error
	if a.Limit, err = limitOf(r); err != nil {
		return err
	}
	var ok bool
	if a.Tags, ok = tagsOf(q["tag"]); !ok {
		return invalid("tag", "a tag is KEY:VALUE, each key once")
	}
	for field, id := range map[string]string{"memory": a.Memory, "entry": a.Entry, "session_id": a.Session} {
		if err := validateID(field, id); err != nil && (id != "" || field == "memory") {
			return err
		}
	}
	for field, at := range map[string]*time.Time{"before": &a.Before, "after": &a.After} {
		if text := q.Get(field); text != "" {
			if *at, err = parseTime(field, text); err != nil {
				return err
			}
		}
	}
	if !a.Before.IsZero() && !a.After.IsZero() {
		return invalid("before", "provide only one of before or after")
	}
	answer, err := h.Entries(r.Context(), who, a)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func (h *Hub) serveWhoami(w http.ResponseWriter, r *http.Request, who Identity) error {
	answer, err := h.Whoami(r.Context(), who)
	if err != nil {
		return err
	}
	if answer.DeviceHead, err = h.deviceHead(r.Context(), who.UserID, r.URL.Query().Get("device")); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func (h *Hub) serveMetrics(w http.ResponseWriter, _ *http.Request, _ Identity) error {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	h.WriteMetrics(w)
	return nil
}

// serveHealth needs no token and always responds with 200 (memories §3).
func (h *Hub) serveHealth(w http.ResponseWriter, r *http.Request, version string) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	told := struct {
		Status    string `json:"status"`
		Timestamp string `json:"timestamp"`
		Version   string `json:"version"`
	}{"healthy", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), version}
	if _, err := h.db.Reading().Number(ctx, database.MetaSchema); err != nil {
		told.Status = "unhealthy"
	}
	writeJSON(w, http.StatusOK, told)
}
