package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/mcp/toolargs"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Resource is data that clients read by its address, resource://…. The last part of the
// address and the query are arguments, as those of a [Tool].
type Resource struct {
	Name        string
	Description string
	Address     string // the address up to its last part, such as inbox/; without a last part, the whole address without a slash at the end

	params []toolargs.Param // of the query, in any order, booleans also as 1, t, yes and y; and of the last part, if there is one
	in     reflect.Type
	common reflect.Type
	do     toolFunc
}

const resourceScheme = "resource://"

// template returns the address as a template of RFC 6570.
func (r Resource) template() string {
	text := resourceScheme + r.Address + r.last("{+", "}")
	var names []string
	for _, p := range r.params {
		if !p.Unlisted && !p.Last {
			names = append(names, p.Name)
		}
	}
	if len(names) > 0 {
		text += "{?" + strings.Join(names, ",") + "}"
	}
	return text
}

// last returns the name of the last part of the address with before and after around it, or ""
// if the address has no last part.
func (r Resource) last(before, after string) string {
	i := slices.IndexFunc(r.params, func(p toolargs.Param) bool { return p.Last })
	if i < 0 {
		return ""
	}
	return before + r.params[i].Name + after
}

// arguments returns the arguments in an address.
func (r Resource) arguments(uri string) (json.RawMessage, error) {
	path, query, _ := strings.Cut(strings.TrimPrefix(uri, resourceScheme), "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, toolargs.Error("uri", "the query of the address cannot be read")
	}
	fields := map[string]any{}
	if last := r.last("", ""); last != "" {
		if fields[last], err = url.PathUnescape(strings.TrimPrefix(path, r.Address)); err != nil {
			return nil, toolargs.Error(last, "the address cannot be read")
		}
	}
	kinds := map[string]toolargs.Kind{}
	for _, p := range r.params {
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			kinds[name] = p.Kind
		}
	}
	for name := range values {
		text := values.Get(name)
		if b, ok := parseBool(text); ok && kinds[name] == toolargs.Boolean {
			fields[name] = b
		} else if text != "" {
			fields[name] = text
		}
	}
	return toolargs.JSON(fields)
}

// parseBool parses a boolean in an address (mail §2).
func parseBool(word string) (b, ok bool) {
	switch strings.ToLower(word) {
	case "1", "t", "true", "yes", "y":
		return true, true
	case "0", "f", "false", "no", "n":
		return false, true
	}
	return false, false
}

// addResource offers r to clients.
func (s *Server) addResource(r Resource) {
	handler := func(ctx context.Context, request *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		uri, _ := ctx.Value(wholeURI{}).(string)
		return s.readResource(ctx, r, uri, request)
	}
	if r.last("", "") == "" {
		s.sdk.AddResource(&sdk.Resource{URI: r.template(), Name: r.Name, Description: r.Description, MIMEType: "application/json"}, handler)
		return
	}
	s.sdk.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: r.template(), Name: r.Name, Description: r.Description, MIMEType: "application/json",
	}, handler)
}

// wholeURI is the context key of a resource's address with its query.
type wholeURI struct{}

// matchAddresses finds resources without their query, whose parts may be in any order.
func matchAddresses(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if read, ok := r.(*sdk.ReadResourceRequest); ok && strings.HasPrefix(read.Params.URI, resourceScheme) {
			ctx = context.WithValue(ctx, wholeURI{}, read.Params.URI)
			params := *read.Params
			params.URI, _, _ = strings.Cut(params.URI, "?")
			bare := *read
			bare.Params = &params
			r = &bare
		}
		return next(ctx, method, r)
	}
}

func (s *Server) readResource(ctx context.Context, r Resource, uri string, request *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	var v any
	raw, err := r.arguments(uri)
	if err == nil {
		var in any
		c := Call{Remote: request.Extra != nil && request.Extra.Header != nil, AgentToken: headerOf(request.Extra, AgentTokenHeader)}
		if in, err = c.decode(raw, r.params, r.in, r.common); err == nil {
			v, err = r.do(ctx, c, in)
		}
	}
	var data []byte
	if err == nil {
		data, err = toolargs.JSON(v)
	}
	if err != nil {
		return nil, s.unreadable(ctx, uri, err)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(data)}}}, nil
}

// unreadable returns the error of reading a resource. It is a protocol error, because
// resources have no others, with the envelope as its data.
func (s *Server) unreadable(ctx context.Context, uri string, err error) error {
	result, err := envelopeFailure(ctx, s.log, uri, err)
	if err != nil {
		return err
	}
	data, err := toolargs.JSON(result.StructuredContent)
	if err != nil {
		return err
	}
	var e fault.Envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: e.Error.Message, Data: data}
}
