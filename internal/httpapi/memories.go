package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/rules"
)

// maxMemoryBody is the maximum number of bytes of a request about memories (memories §5.1).
const maxMemoryBody = 1 << 20

// memoryRequest is a request about memories.
type memoryRequest struct {
	*Server
	w      *response
	r      *http.Request
	vars   []string // the values of {} in the path, unescaped
	query  *arguments
	caller memory.Caller
}

// memoryResponse is the response to a request about memories. body is encoded as JSON,
// unless it is a plain or lines.
type memoryResponse struct {
	status  int
	body    any // nil for an empty body
	receipt memory.WriteInfo
	header  map[string]string
}

// plain is a text body, lines a body of JSON lines.
type (
	plain string
	lines []byte
)

// endpoint handles one method of a route.
type endpoint struct {
	do         func(a *memoryRequest) (memoryResponse, error)
	kinds      []string // allowed media types of the body; JSON if empty
	repeatable []string // query parameters that may be repeated
	waits      bool     // waits for something outside this process, so it has separate capacity and no time limit
}

// route is a path below /v1 with its methods; {} stands for one segment.
type route struct {
	segments []string
	verb     string
	methods  map[string]endpoint
}

// memoryRoutes returns the routes of memories §3.
func memoryRoutes() []route {
	var routes []route
	for path, methods := range map[string]map[string]endpoint{
		"vaults":                         {"GET": {do: listVaults}, "POST": {do: createVault}},
		"vaults/{}":                      {"GET": {do: getVault}, "DELETE": {do: deleteVault, waits: true}},
		"vaults/{}/memories":             {"GET": {do: listMemories}, "POST": {do: createMemory}},
		"memories/{}":                    {"GET": {do: getMemory}, "DELETE": {do: deleteMemory, waits: true}},
		"memories/{}/entries":            {"GET": {do: listEntries, repeatable: []string{"tag"}}, "POST": {do: addEntry}},
		"memories/{}/entries/{}":         {"GET": {do: getEntry}, "PATCH": {do: patchEntry}, "DELETE": {do: deleteEntry, waits: true}},
		"memories/{}/entries/{}/tags":    {"PATCH": {do: patchEntry}},
		"memories/{}/entries/{}:correct": {"POST": {do: correctEntry}},
		"memories/{}/entries/{}:delete":  {"POST": {do: deleteEntry, waits: true}},
		"memories/{}/inflight":           {"GET": {do: listInflight}},
		"memories/{}/inflight/{}":        {"GET": {do: getInflight}},
		"memories/{}/context":            {"GET": {do: getContext}, "PUT": {do: putContext, kinds: []string{"application/json", "text/plain"}}},
		"memories/{}/top":                {"GET": {do: getTop}},
		"memories/{}:await_consistency":  {"POST": {do: awaitConsistency, waits: true}},
		"memories/{}:await_commit":       {"POST": {do: awaitCommit, waits: true}},
		"memories/{}/export":             {"GET": {do: exportMemory}},
		"memories/{}/import":             {"POST": {do: importMemory, kinds: []string{"application/json", "application/x-ndjson"}}},
		"search":                         {"POST": {do: search}},
		"prompts/{}":                     {"GET": {do: getPrompts}},
		"replication":                    {"GET": {do: replicationStatus}},
		"replication:pause":              {"POST": {do: pauseReplication}},
		"replication:resume":             {"POST": {do: resumeReplication}},
		"replication:retry":              {"POST": {do: retryFailed}},
		"replication:discard":            {"POST": {do: discardFailed}},
		"replication:drain":              {"POST": {do: drainReplication, waits: true}},
	} {
		path, verb, _ := strings.Cut(path, ":")
		for method, e := range methods {
			if e.kinds == nil {
				e.kinds = []string{"application/json"}
			}
			if methods[method] = e; method == http.MethodGet {
				methods[http.MethodHead] = e
			}
		}
		routes = append(routes, route{strings.Split(path, "/"), verb, methods})
	}
	return routes
}

// isMemoryPath reports whether a path belongs to memories. Then errors before the routing
// have the form of memories too.
func isMemoryPath(escaped string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(escaped, "/v1/"), "/")
	first, _, _ = strings.Cut(first, ":")
	switch first {
	case "vaults", "memories", "search", "prompts", "replication":
		return strings.HasPrefix(escaped, "/v1/")
	}
	return strings.HasPrefix(escaped, "/memories/")
}

// findMemoryRoute returns the methods of an escaped path, and the values of {} in it.
func (s *Server) findMemoryRoute(escaped string) (methods map[string]endpoint, vars []string, ok bool) {
	rest, versioned := strings.CutPrefix(escaped, "/v1/")
	if !versioned {
		rest = strings.TrimPrefix(escaped, "/")
	}
	segments := strings.Split(rest, "/")
	last := len(segments) - 1
	verb := ""
	segments[last], verb, _ = strings.Cut(segments[last], ":")
	for _, r := range s.memoryRoutes {
		if len(r.segments) != len(segments) || r.verb != verb || !versioned && r.segments[last] != "context" {
			continue
		}
		if vars, ok = r.match(segments); ok {
			return r.methods, vars, true
		}
	}
	return nil, nil, false
}

func (r route) match(segments []string) (vars []string, ok bool) {
	for i, want := range r.segments {
		if want != "{}" {
			if segments[i] != want {
				return nil, false
			}
			continue
		}
		text, err := url.PathUnescape(segments[i])
		if err != nil {
			return nil, false
		}
		vars = append(vars, text)
	}
	return vars, true
}

// serveMemories serves a request about memories of an accepted bearer.
func (s *Server) serveMemories(w *response, r *http.Request, who mcp.Bearer) {
	methods, vars, ok := s.findMemoryRoute(r.URL.EscapedPath())
	if !ok || s.config.Cairn == nil {
		refuse(w, refusal{status: http.StatusNotFound, code: "not_found", message: "this route does not exist", hint: "memories §3 lists the routes"})
		return
	}
	e, ok := methods[r.Method]
	if !ok {
		names := slices.Sorted(maps.Keys(methods))
		checkMethod(w, r, slices.DeleteFunc(names, func(m string) bool { return m == http.MethodHead })...)
		return
	}
	a := &memoryRequest{Server: s, w: w, r: r, vars: vars, caller: memory.Caller{
		User: who.User, Level: who.Level, Trace: w.Header().Get("Traceparent"), ProjectID: s.config.Project, Remote: true,
	}}
	places := s.gate.calls
	if e.waits {
		places = s.gate.streams
	}
	s.gate.admit(w, r, places, maxMemoryBody, func() { a.answer(e) })
}

// answer reads the request's head, calls the endpoint and writes the response.
func (a *memoryRequest) answer(e endpoint) {
	err := a.head(e)
	var out memoryResponse
	if err == nil {
		out, err = e.do(a)
	}
	if _, done := errors.AsType[*alreadyRefused](err); done {
		return
	}
	h := a.w.Header()
	echo(h, out.receipt)
	if err != nil {
		a.failed(err)
		return
	}
	for name, value := range out.header {
		h.Set(name, value)
	}
	switch body := out.body.(type) {
	case nil:
		a.w.WriteHeader(out.status)
	case plain:
		a.write(out.status, "text/plain; charset=utf-8", []byte(body))
	case lines:
		a.write(out.status, "application/x-ndjson", body)
	default:
		writeJSON(a.w, out.status, body)
	}
}

func (a *memoryRequest) write(status int, kind string, body []byte) {
	a.w.Header().Set("Content-Type", kind)
	a.w.WriteHeader(status)
	_, _ = a.w.Write(body) // a disconnected client is not an error
}

// head reads the headers and parameters that every request can have.
func (a *memoryRequest) head(e endpoint) (err error) {
	if a.query, err = queryParameters(a.r.URL.RawQuery, e.repeatable...); err != nil {
		return err
	}
	if project := a.query.string("project"); project != "" {
		a.caller.ProjectID = project
	}
	a.caller.UserID = a.query.id("user_id")
	if a.query.err != nil {
		return a.query.err
	}
	if a.caller.Key, err = keyOf(a.r); err != nil {
		return err
	}
	echo(a.w.Header(), memory.WriteInfo{Key: a.caller.Key})
	sent := a.r.Header.Values("Content-Type")
	if len(sent) == 0 || a.r.Method == http.MethodGet || a.r.Method == http.MethodHead {
		return nil
	}
	if !slices.Contains(e.kinds, mediaType(sent)) {
		f := fault.Newf(fault.Invalid, "unsupported_media_type", "the body must be %s", strings.Join(e.kinds, " or "))
		f.Details = map[string]any{"accepted": e.kinds}
		return f.WithHint("send it with such a Content-Type")
	}
	return nil
}

// mediaType returns the media type of a Content-Type header, "" if it is invalid. Text must
// be UTF-8.
func mediaType(sent []string) string {
	if len(sent) != 1 {
		return ""
	}
	kind, more, err := mime.ParseMediaType(sent[0])
	if charset, there := more["charset"]; err != nil || kind == "text/plain" && there && !strings.EqualFold(charset, "utf-8") {
		return ""
	}
	return kind
}

// raw reads the whole body. It responds itself to a body that is too long or too slow.
func (a *memoryRequest) raw() ([]byte, error) {
	body, err := io.ReadAll(a.r.Body)
	if err == nil {
		return body, nil
	}
	a.w.Header().Set("Connection", "close")
	switch long, isLong := errors.AsType[*http.MaxBytesError](err); {
	case isLong:
		tooLong(a.w, long.Limit, max(a.r.ContentLength, int64(len(body))+1))
	case errors.Is(err, os.ErrDeadlineExceeded):
		refuse(a.w, refusal{status: http.StatusRequestTimeout, code: "request_timeout", message: "the body came too slowly", hint: "send it again"})
	default:
		return nil, invalid("body", "the body could not be read")
	}
	return nil, new(alreadyRefused)
}

// body reads the members of the body.
func (a *memoryRequest) body() (*arguments, error) {
	raw, err := a.raw()
	if err != nil {
		return nil, err
	}
	return bodyArguments(raw)
}

// requireNoBody returns an error if the body has members.
func (a *memoryRequest) requireNoBody() error {
	body, err := a.body()
	if err != nil {
		return err
	}
	return a.done(body)
}

// done returns the first error of the body and the query.
func (a *memoryRequest) done(more ...*arguments) error {
	for _, arguments := range append(more, a.query) {
		if err := arguments.done(); err != nil {
			return err
		}
	}
	return nil
}

// clearReadDeadline removes the time limit for reading, which would otherwise end the
// request's context during its work.
func (a *memoryRequest) clearReadDeadline() {
	_ = http.NewResponseController(a.w).SetReadDeadline(time.Time{}) // fails only without a connection, as in some tests
}

// failed sends an error (memories §9).
func (a *memoryRequest) failed(err error) {
	f, known := errors.AsType[*fault.Error](err)
	switch {
	case !known && a.r.Context().Err() != nil:
		refuse(a.w, refusal{status: http.StatusServiceUnavailable, code: memory.CodeStopping, message: "the call was cancelled", hint: "try again", retry: busyFor})
		return
	case !known:
		f = fault.New(fault.Internal, memory.CodeInternal, "internal error").WithHint("see the server's log")
	}
	id := a.w.Header().Get("Request-Id")
	if f.Kind == fault.Internal || f.Kind == fault.Unavailable {
		a.log.ErrorContext(a.r.Context(), "a request failed", "request_id", id, "code", f.Code, "error", err)
	}
	status := memory.Status(f)
	envelope := fault.EnvelopeOf(f)
	switch status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		setRetry(a.w, busyFor)
	case http.StatusInternalServerError:
		envelope.Error.Details = maps.Clone(envelope.Error.Details)
		envelope.Error.Details["request_id"] = id
	}
	writeJSON(a.w, status, envelope)
}

// reading calls a reading method of memories.Service. Its result is the body of the response.
func reading[T any](a *memoryRequest, ask func(context.Context, *memories.Service, memory.Caller) (T, error)) (memoryResponse, error) {
	out := memoryResponse{status: http.StatusOK}
	err := a.config.Cairn.Memories().Read(a.r.Context(), a.caller, func(ctx context.Context, b *memories.Service, c memory.Caller) error {
		v, err := ask(ctx, b, c)
		out.body = v
		return err
	})
	return out, err
}

// writing calls a writing method of memories.Service. Its result is the body of the response, with
// the given status.
func writing[T any](a *memoryRequest, status int, do func(context.Context, *memories.Service, memory.Caller) (T, memory.WriteInfo, error)) (memoryResponse, error) {
	out := memoryResponse{status: status}
	err := a.config.Cairn.Memories().Write(a.r.Context(), a.caller, func(ctx context.Context, b *memories.Service, c memory.Caller) error {
		v, receipt, err := do(ctx, b, c)
		out.body, out.receipt = v, receipt
		return err
	})
	return out, err
}

// deleting calls a deleting method of memories.Service. The response is 204 without a body.
func deleting(a *memoryRequest, do func(context.Context, *memories.Service, memory.Caller) (memory.WriteInfo, error)) (memoryResponse, error) {
	if err := a.requireNoBody(); err != nil {
		return memoryResponse{}, err
	}
	a.clearReadDeadline()
	out, err := writing(a, http.StatusNoContent, func(ctx context.Context, b *memories.Service, c memory.Caller) (any, memory.WriteInfo, error) {
		r, err := do(ctx, b, c)
		return nil, r, err
	})
	out.body = nil
	return out, err
}

// maxCorrelation is the maximum length of Idempotency-Key, Request-Id and traceparent.
const maxCorrelation = 64

// isPrintable reports whether a text has 1 to most bytes of printable ASCII.
func isPrintable(text string, most int) bool {
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// keyOf returns the idempotency key in a request's header, "" if there is none.
func keyOf(r *http.Request) (string, error) {
	sent := r.Header.Values("Idempotency-Key")
	if len(sent) == 0 {
		return "", nil
	}
	if len(sent) > 1 || !isPrintable(sent[0], maxCorrelation) {
		return "", invalid("Idempotency-Key", "Idempotency-Key has 1 to 64 printable ASCII characters")
	}
	return sent[0], nil
}

// echo adds the idempotency key of a call to the response's headers.
func echo(h http.Header, r memory.WriteInfo) {
	if r.Key != "" {
		h.Set("Idempotency-Key", r.Key)
	}
	if r.Replayed {
		h.Set("Idempotency-Replayed", "true")
	}
}

// correlate returns a request's Request-Id and traceparent to the client. Missing or invalid
// ones are replaced by new ones (memories §9).
func correlate(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Request-Id")
	if !isPrintable(id, maxCorrelation) {
		id = rules.NewID()
	}
	trace := r.Header.Get("Traceparent")
	if !isTraceparent(trace) {
		var random [24]byte
		_, _ = rand.Read(random[:]) // never fails
		random[0] |= 1              // an id must not be all zeros
		random[16] |= 1
		trace = fmt.Sprintf("00-%x-%x-00", random[:16], random[16:])
	}
	w.Header().Set("Request-Id", id)
	w.Header().Set("Traceparent", trace)
}

// isTraceparent reports whether a text is a W3C traceparent of version 00.
func isTraceparent(text string) bool {
	if len(text) != 55 || text[:3] != "00-" || text[35] != '-' || text[52] != '-' || strings.ToLower(text) != text {
		return false
	}
	_, err := hex.DecodeString(text[3:35] + text[36:52] + text[53:])
	return err == nil && strings.Trim(text[3:35], "0") != "" && strings.Trim(text[36:52], "0") != ""
}
