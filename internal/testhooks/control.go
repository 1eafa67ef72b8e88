//go:build testhooks

package testhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"

	"cairn/internal/crashpoint"
	"cairn/internal/fault"
	"cairn/internal/httpapi"
	"cairn/internal/memory"
	"cairn/internal/strictjson"
)

// serve serves a control listener on addr, a loopback address, until ctx ends. It prints the
// URL on w.
func serve(ctx context.Context, addr string, w io.Writer, verbs http.Handler) error {
	l, err := httpapi.Listen(ctx, addr, false)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: loopbackOnly(verbs), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	context.AfterFunc(ctx, func() { _ = web.Close() }) // no test waits for a verb of a server that ends
	fmt.Fprintf(w, "test-hooks: http://%s\n", l.Addr())
	go func() { _ = web.Serve(l) }() // until it is closed
	return nil
}

// post registers a verb with a JSON body; an empty body means {}.
func post[A any](mux *http.ServeMux, path string, do func(ctx context.Context, a A) (any, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var a A
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err == nil && len(bytes.TrimSpace(body)) > 0 {
			err = strictjson.Decode(body, &a)
		}
		if err != nil {
			answer(w, nil, invalid("body", err.Error()))
			return
		}
		result, err := do(r.Context(), a)
		answer(w, result, err)
	})
}

// get registers a verb with a query.
func get(mux *http.ServeMux, path string, do func(ctx context.Context, q url.Values) (any, error)) {
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		result, err := do(r.Context(), r.URL.Query())
		answer(w, result, err)
	})
}

// answer writes the result of a verb, {} for nil, or its error (memories §9).
func answer(w http.ResponseWriter, result any, err error) {
	status := http.StatusOK
	switch {
	case err != nil:
		status, result = memory.Status(err), fault.EnvelopeOf(err)
	case result == nil:
		result = struct{}{}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(result) // a disconnected driver is not an error
}

func invalid(field, why string) error {
	f := fault.New(fault.Invalid, memory.CodeInvalid, why).WithHint("memories §15 lists the arguments of each verb")
	f.Details = map[string]any{"field": field}
	return f
}

// state is the result of /test/state for a device or a hub.
type state struct {
	PID    int                `json:"pid"`
	Clock  ClockState         `json:"clock"`
	Config map[string]string  `json:"config"` // settings of the test by key
	Points []crashpoint.Point `json:"points"`
	Holds  []string           `json:"holds"` // memories whose worker is blocked
}

// newMux returns the verbs that devices and hubs share.
func newMux(k *savedState, points []string, holds func() []string) *http.ServeMux {
	mux := http.NewServeMux()
	post(mux, "/test/clock", func(_ context.Context, a clockArgs) (any, error) { return k.setClock(a) })
	post(mux, "/test/crash-point", func(_ context.Context, a crashpoint.Point) (any, error) {
		if !crashpoint.Known(points, a.At) || a.Skip < 0 {
			return nil, invalid("at", fmt.Sprintf("at is one of %q, skip not negative", points))
		}
		crashpoint.Arm(a)
		return armed(), nil
	})
	get(mux, "/test/crash-point", func(context.Context, url.Values) (any, error) { return armed(), nil })
	post(mux, "/test/crash", func(context.Context, struct{}) (any, error) {
		crashpoint.Die()
		return nil, nil
	})
	get(mux, "/test/state", func(context.Context, url.Values) (any, error) {
		return state{os.Getpid(), k.clock(), k.settings(), crashpoint.Armed(), holds()}, nil
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, nil, fault.New(fault.NotFound, memory.CodeNotFound, "unknown verb"))
	})
	return mux
}

func armed() any { return map[string]any{"points": crashpoint.Armed()} }

// notServing returns the error of verbs that need a running server.
func notServing() error {
	return fault.New(fault.Unavailable, memory.CodeStopping, "the server is not running").WithHint("try again")
}

// loopbackOnly rejects requests of web pages in a browser.
func loopbackOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if ip := net.ParseIP(host); r.Header.Get("Origin") != "" || err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			answer(w, nil, fault.New(fault.Denied, memory.CodeForbidden, "web pages must not control a test"))
			return
		}
		h.ServeHTTP(w, r)
	})
}
