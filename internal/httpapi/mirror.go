package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/mcp/toolargs"
	"cairn/internal/memory"
)

// mirror serves tools as JSON and finds them by their path.
type mirror struct {
	tools map[string]mirroredTool // by toolset/tool
	index []listedTool
}

// mirroredTool is a tool with the argument for {key}, nil if it has none.
type mirroredTool struct {
	mcp.Tool
	project *toolargs.Param
}

// listedTool is a tool in GET /v1/tools.
type listedTool struct {
	Toolset     string          `json:"toolset"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Methods     []string        `json:"methods"`
	Path        string          `json:"path"`
	Project     string          `json:"project_argument,omitempty"` // the argument for {key}
	Schema      json.RawMessage `json:"input_schema"`
}

func newMirror(c Config) (*mirror, error) {
	m := &mirror{tools: map[string]mirroredTool{}, index: []listedTool{}}
	for _, set := range c.Toolsets {
		for _, t := range set.Tools {
			found := mirroredTool{Tool: t}
			for _, name := range set.Project {
				if i := slices.IndexFunc(t.Params, func(p toolargs.Param) bool { return p.Name == name }); i >= 0 {
					found.project = &t.Params[i]
					break
				}
			}
			schema, err := t.Schema()
			if err != nil {
				return nil, err
			}
			l := listedTool{
				Toolset: set.Name, Name: t.Name, Description: t.Description, Schema: schema,
				Methods: methodsOf(t), Path: "/v1/projects/{key}/" + set.Name + "/" + t.Name,
			}
			if found.project != nil {
				l.Project = found.project.Name
			}
			name := set.Name + "/" + t.Name
			if _, twice := m.tools[name]; twice {
				return nil, fmt.Errorf("two tools are at %s", name)
			}
			m.tools[name] = found
			m.index = append(m.index, l)
		}
	}
	return m, nil
}

func methodsOf(t mcp.Tool) []string {
	if t.ReadOnly {
		return []string{http.MethodGet, http.MethodPost}
	}
	return []string{http.MethodPost}
}

func (m *mirror) list(w http.ResponseWriter, r *http.Request) {
	if checkMethod(w, r, http.MethodGet, http.MethodHead) {
		writeJSON(w, http.StatusOK, map[string]any{"tools": m.index})
	}
}

// checkMethod reports whether a request has one of the methods. It responds to others.
func checkMethod(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	if slices.Contains(methods, r.Method) {
		return true
	}
	names := strings.Join(methods, ", ")
	w.Header().Set("Allow", names)
	refuse(w, refusal{
		status: http.StatusMethodNotAllowed, code: "method_not_allowed", message: "this route does not allow " + fmt.Sprintf("%.20q", r.Method), hint: "use " + names,
	})
	return false
}

// call is a tool call, identified by its path.
type call struct {
	tool mirroredTool
	key  string // the project, not empty; "*" for the server's
}

// find parses an escaped path /v1/projects/{key}/{toolset}/{tool}.
func (m *mirror) find(escaped string) (call, bool) {
	rest, ok := strings.CutPrefix(escaped, "/v1/projects/")
	key, name, found := strings.Cut(rest, "/")
	tool, known := m.tools[name]
	if !ok || !found || !known {
		return call{}, false
	}
	key, err := url.PathUnescape(key)
	return call{tool, key}, err == nil && key != ""
}

// answer calls a tool for a request.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, c call) {
	methods := []string{http.MethodPost}
	if c.tool.ReadOnly {
		methods = []string{http.MethodGet, http.MethodHead, http.MethodPost}
	}
	if !checkMethod(w, r, methods...) {
		return
	}
	began := time.Now()
	answer, err := s.ask(w, r, c)
	if _, refused := errors.AsType[*alreadyRefused](err); refused {
		s.meter.Seen(c.tool.Name, time.Since(began), fault.New(fault.Invalid, "refused", "refused"))
		return
	}
	s.meter.Seen(c.tool.Name, time.Since(began), err)
	for i, name := range answer.Ignored {
		answer.Ignored[i] = url.QueryEscape(name)
	}
	if len(answer.Ignored) > 0 {
		w.Header().Set("Cairn-Ignored", strings.Join(answer.Ignored, ", "))
	}
	echo(w.Header(), answer.Receipt)
	if err != nil {
		s.failed(w, r, c.tool.Tool, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if answer.Text {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(answer.Body) // a disconnected client is not an error
}

// alreadyRefused is the error of a request that already has its response.
type alreadyRefused struct{}

func (*alreadyRefused) Error() string { return "refused" }

func (s *Server) ask(w http.ResponseWriter, r *http.Request, c call) (mcp.Response, error) {
	var arguments json.RawMessage
	var err error
	if r.Method == http.MethodPost {
		arguments, err = bodyOf(w, r)
	} else {
		arguments, err = queryArguments(c.tool.Params, r.URL.RawQuery)
	}
	if err != nil {
		return mcp.Response{}, err
	}
	arguments, err = c.withProject(arguments)
	if err != nil {
		return mcp.Response{}, err
	}
	scope := toolargs.Scope{All: true}
	if c.key != "*" {
		scope = toolargs.Scope{Name: c.key}
	}
	from := mcp.CallInfo{AgentToken: r.Header.Get(mcp.AgentTokenHeader), Bearer: bearerOf(r), Trace: w.Header().Get("Traceparent")}
	if c.tool.Errors == mcp.ErrorStatus { // only the tools of memories accept this header
		if from.Key, err = keyOf(r); err != nil {
			return mcp.Response{}, err
		}
	}
	return c.tool.Invoke(r.Context(), arguments, scope, from)
}

// bodyOf reads the arguments of a POST; an empty body is an empty object.
func bodyOf(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	if sent := r.Header.Get("Content-Type"); sent != "" {
		if kind, _, err := mime.ParseMediaType(sent); err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
			refuse(w, refusal{
				status: http.StatusUnsupportedMediaType, code: "unsupported_media_type", message: "the body must be JSON",
				hint: "send it with Content-Type: application/json",
			})
			return nil, new(alreadyRefused)
		}
	}
	body, err := io.ReadAll(r.Body)
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		tooLong(w, long.Limit, long.Limit+1)
		return nil, new(alreadyRefused)
	}
	if err != nil {
		w.Header().Set("Connection", "close")
		if errors.Is(err, os.ErrDeadlineExceeded) {
			refuse(w, refusal{status: http.StatusRequestTimeout, code: "request_timeout", message: "the body came too slowly", hint: "send it again"})
		} else {
			refuse(w, refusal{status: http.StatusBadRequest, code: "invalid_argument", message: "the body could not be read", hint: "send it again"})
		}
		return nil, new(alreadyRefused)
	}
	if len(body) == 0 {
		return json.RawMessage("{}"), nil
	}
	if !json.Valid(body) {
		return nil, fault.New(fault.Invalid, toolargs.CodeInvalidArgument, "the body is not a JSON value").WithHint("send the arguments as a JSON object")
	}
	return body, nil
}

// withProject adds the project in the path to the arguments. It rejects arguments with
// another project.
func (c call) withProject(arguments json.RawMessage) (json.RawMessage, error) {
	if !utf8.ValidString(c.key) {
		return nil, fault.New(fault.Invalid, toolargs.CodeInvalidArgument, "the project in the path must be valid Unicode")
	}
	p := c.tool.project
	if p == nil || c.key == "*" {
		return arguments, nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(arguments, &fields) != nil {
		return arguments, nil // the tool reports the expected type
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	if given, there := fields[p.Name]; there && (string(given) != "null" || p.Kind == toolargs.Project) {
		var name string
		if json.Unmarshal(given, &name) != nil || name != c.key {
			e := fault.Newf(fault.Invalid, toolargs.CodeInvalidArgument, "the path and argument %q name different projects", p.Name).
				WithHint("omit the argument, or use * in the path")
			e.Details = map[string]any{"field": p.Name}
			return nil, e
		}
	}
	key, err := json.Marshal(c.key)
	if err != nil {
		return nil, err
	}
	fields[p.Name] = key
	return encode(fields)
}

// failed sends the error of a call.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, t mcp.Tool, err error) {
	f, known := errors.AsType[*fault.Error](err)
	switch {
	case !known && r.Context().Err() != nil:
		refuse(w, refusal{status: http.StatusServiceUnavailable, code: "stopping", message: "the call was cancelled", hint: "try again", retry: busyFor})
		return
	case !known:
		s.log.ErrorContext(r.Context(), "a tool failed", "tool", t.Name, "error", err)
	case f.Kind == fault.Internal || f.Kind == fault.Unavailable:
		s.log.ErrorContext(r.Context(), "a tool failed", "tool", t.Name, "code", f.Code, "error", f.Message)
	}
	status := statusOf(err)
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		setRetry(w, busyFor)
	}
	writeJSON(w, status, t.Envelope(err))
}

// statusOf returns the HTTP status of an error. For codes of mail it follows mail §2.1; a
// timeout has its own status; all others follow memories §9.
func statusOf(err error) int {
	if errors.Is(err, context.DeadlineExceeded) {
		return http.StatusGatewayTimeout
	}
	switch fault.As(err).Code {
	case "MESSAGE_TOO_LARGE":
		return http.StatusRequestEntityTooLarge
	case "RATE_LIMITED":
		return http.StatusTooManyRequests
	case "DISK_FULL":
		return http.StatusInsufficientStorage
	case "DATABASE_ERROR", "DATABASE_CORRUPTION":
		return http.StatusInternalServerError
	}
	return memory.Status(err)
}
