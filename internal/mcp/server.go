package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"cairn"
	"cairn/internal/mcp/toolargs"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ContextURI is the resource with the context of a new session.
const ContextURI = "cairn://context"

// emptyContext is the text for an empty context, because an MCP resource must have a text.
const emptyContext = "Nothing is recorded about earlier work here yet.\n"

// Config contains the tools, resources and options of a server.
type Config struct {
	Version      string // of the program; sent to clients
	Instructions string // how to use the tools together; sent to clients, may be empty
	Tools        []Tool
	Resources    []Resource

	// Context returns the Markdown of [ContextURI]. If it is nil, the resource does not
	// exist and clients cannot subscribe.
	Context func(ctx context.Context, project toolargs.Scope) (string, error)

	// Observe is called at the end of each call with its duration and its error, nil on
	// success. It must not block. It may be nil.
	Observe func(tool string, took time.Duration, err error)

	// Log receives events of calls and sessions, never their content. Nil discards them.
	Log *slog.Logger
}

// Server serves clients, each in its own session. It is safe for concurrent use. It holds
// no resources until it serves.
type Server struct {
	sdk     *sdk.Server
	log     *slog.Logger
	seen    func(tool string, took time.Duration, err error)
	context func(context.Context, toolargs.Scope) (string, error)

	mu          sync.Mutex
	connections map[*sdk.ServerSession]string // connection ids of sessions that called a tool, except over HTTP
}

// NewServer returns a server with c's tools. It fails when two tools share a
// name, or when a parameter's default cannot be written as JSON.
func NewServer(c Config) (*Server, error) { return newServer(c, func(*sdk.ServerOptions) {}) }

func newServer(c Config, adjust func(*sdk.ServerOptions)) (*Server, error) {
	s := &Server{log: c.Log, seen: c.Observe, context: c.Context, connections: map[*sdk.ServerSession]string{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.seen == nil {
		s.seen = func(string, time.Duration, error) {}
	}
	options := &sdk.ServerOptions{
		Instructions: c.Instructions,
		Logger:       s.log,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		// Results belong to one user, so shared caches must not store them.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
	}
	if len(c.Resources) > 0 {
		options.Capabilities.Resources = &sdk.ResourceCapabilities{}
	}
	if s.context != nil {
		options.Capabilities.Resources = &sdk.ResourceCapabilities{Subscribe: true}
		options.SubscribeHandler = func(_ context.Context, r *sdk.SubscribeRequest) error { return known(r.Params.URI) }
		options.UnsubscribeHandler = func(_ context.Context, r *sdk.UnsubscribeRequest) error { return known(r.Params.URI) }
	}
	adjust(options)
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: "cairn", Version: c.Version}, options)
	s.sdk.AddReceivingMiddleware(s.recoverPanics, ownerOnlyResources, matchAddresses)
	if s.context != nil {
		s.sdk.AddResource(&sdk.Resource{
			URI: ContextURI, Name: "context", Title: "cairn context", MIMEType: "text/markdown",
			Description: "The context of a new session: what matters from earlier work.",
		}, s.readContext)
	}
	for _, r := range c.Resources {
		s.addResource(r)
	}
	names, aliases := make(map[string]bool, len(c.Tools)), map[string]string{}
	s.sdk.AddReceivingMiddleware(resolveNames(aliases, func(name string) bool { return !names[name] && reachesByName(c.Tools, name) }))
	for _, t := range c.Tools {
		d, err := t.definition()
		if err != nil {
			return nil, err
		}
		if names[t.Name] {
			return nil, fmt.Errorf("two tools are named %q", t.Name)
		}
		names[t.Name] = true
		for _, alias := range t.Aliases {
			aliases[alias] = t.Name
		}
		s.sdk.AddTool(d, s.sdkHandler(t))
	}
	return s, nil
}

// resolveNames lets clients call tools by their aliases, and unlisted tools that call_tool
// reaches by their own names.
func resolveNames(aliases map[string]string, reaches func(name string) bool) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			call, ok := r.(*sdk.CallToolRequest)
			if !ok {
				return next(ctx, method, r)
			}
			params, renamed := *call.Params, *call
			renamed.Params = &params
			switch name := call.Params.Name; {
			case aliases[name] != "":
				params.Name = aliases[name]
			case reaches(name):
				arguments, err := toolargs.JSON(map[string]any{"name": name, "arguments": call.Params.Arguments})
				if err != nil {
					return nil, err
				}
				params.Name, params.Arguments = callTool, arguments
			}
			return next(ctx, method, &renamed)
		}
	}
}

// ContextChanged notifies every session that subscribed to [ContextURI] that its text has
// changed. It returns when the notices are written, after 10 seconds at most if a client
// does not read. It does not report clients that are blocked or disconnected.
func (s *Server) ContextChanged(ctx context.Context) error {
	return s.sdk.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: ContextURI})
}

// Close ends every session after its running calls have returned, including the open
// streams of HTTP clients. Register it with [net/http.Server.RegisterOnShutdown]. Close is
// idempotent.
func (s *Server) Close() error {
	var failed []error
	for session := range s.sdk.Sessions() {
		failed = append(failed, session.Close())
	}
	return errors.Join(failed...)
}

// reachesByName reports whether tools contain call_tool and it reaches a tool of this name.
func reachesByName(tools []Tool, name string) bool {
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.reach != nil })
	if i < 0 {
		return false
	}
	_, ok := tools[i].reach.tool(name)
	return ok
}

// sdkHandler returns the SDK's handler for t. cairn decodes the arguments and formats the
// errors itself.
func (s *Server) sdkHandler(t Tool) sdk.ToolHandler {
	return func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if t.reach == nil {
			return s.call(ctx, t, r, r.Params.Arguments)
		}
		began := time.Now()
		meant, arguments, err := t.reach.target(r.Params.Arguments)
		if err != nil {
			s.seen(t.Name, time.Since(began), err)
			return s.failed(ctx, t, Call{}, err)
		}
		return s.call(ctx, meant, r, arguments)
	}
}

// call calls t for a request.
func (s *Server) call(ctx context.Context, t Tool, r *sdk.CallToolRequest, arguments json.RawMessage) (*sdk.CallToolResult, error) {
	began := time.Now()
	c, in, err := t.decode(arguments, scopeOf(r.Extra))
	c.bearer = bearerOf(r.Extra)
	if !t.checksLevel && !c.bearer.IsOwner() {
		err = ownersOnly()
	}
	var v any
	if err == nil {
		c.Connection, c.Remote, c.AgentToken = s.connectionOf(r), isRemote(r), headerOf(r.Extra, AgentTokenHeader)
		c.trace = headerOf(r.Extra, traceHeader)
		v, err = t.do(ctx, c, in)
	}
	s.seen(t.Name, time.Since(began), err)
	if err != nil {
		return s.failed(ctx, t, c, err)
	}
	result, err := success(v)
	if err != nil {
		return s.failed(ctx, t, c, err)
	}
	return c.noteReceipt(c.noteIgnored(result)), nil
}

// failed presents the error of a call.
func (s *Server) failed(ctx context.Context, t Tool, c Call, err error) (*sdk.CallToolResult, error) {
	result, err := t.Errors.presenter()(ctx, s.log, t.Name, err)
	if err != nil {
		return nil, err
	}
	return c.noteIgnored(result), nil
}

// connectionOf names the transport session of a call; see [Call.Connection].
func (s *Server) connectionOf(r *sdk.CallToolRequest) string {
	if isRemote(r) {
		return headerOf(r.Extra, connectionHeader)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name, ok := s.connections[r.Session]
	if !ok {
		name = cairn.NewSessionID()
		s.connections[r.Session] = name
	}
	return name
}

// AgentTokenHeader carries the token of the agent that calls (mail §4).
const AgentTokenHeader = "X-Cairn-Agent-Token"

// headerOf returns a header of a call over HTTP, else "".
func headerOf(extra *sdk.RequestExtra, name string) string {
	if extra == nil || extra.Header == nil {
		return ""
	}
	return extra.Header.Get(name)
}

func isRemote(r *sdk.CallToolRequest) bool { return r.Extra != nil && r.Extra.Header != nil }

func (s *Server) readContext(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	text, err := s.context(ctx, scopeOf(r.Extra))
	if err != nil {
		result, err := failure(ctx, s.log, ContextURI, err)
		if err == nil { // reading a resource can only return protocol errors
			err = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: result.Content[0].(*sdk.TextContent).Text}
		}
		return nil, err
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{
		URI: ContextURI, MIMEType: "text/markdown", Text: cmp.Or(text, emptyContext),
	}}}, nil
}

func known(uri string) error {
	if uri != ContextURI {
		return sdk.ResourceNotFoundError(uri)
	}
	return nil
}

// recoverPanics turns a panic into an internal error. The panic's text may contain user
// data. So it is never sent, and it is logged only for runtime errors, with the stack.
func (s *Server) recoverPanics(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (result sdk.Result, err error) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			what := fmt.Sprintf("%T", p)
			if e, ok := p.(runtime.Error); ok {
				what = e.Error()
			}
			s.log.ErrorContext(ctx, "panic while answering", "method", method, "panic", what, "stack", string(debug.Stack()))
			result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
		}()
		return next(ctx, method, r)
	}
}
