//go:build conformance

// Package conformance is the test server for the official MCP conformance
// suite: the product's server and HTTP handler with the tools, prompts and
// resources that the suite asks for by name. Only builds with the tag
// "conformance" hold it.
package conformance

import (
	"context"
	"encoding/json"
	"log/slog"

	"cairn/internal/fault"
	"cairn/internal/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// NewServer returns the test server.
func NewServer(log *slog.Logger) (*mcp.Server, error) {
	c := mcp.Config{Version: "conformance", Instructions: "A test server.", Tools: productTools(), Log: log}
	return mcp.NewConformanceServer(c, options, features)
}

// options turns on everything that the suite looks for.
func options(o *sdk.ServerOptions) {
	o.Capabilities = &sdk.ServerCapabilities{
		Logging:   &sdk.LoggingCapabilities{},
		Prompts:   &sdk.PromptCapabilities{ListChanged: true},
		Resources: &sdk.ResourceCapabilities{ListChanged: true, Subscribe: true},
		Tools:     &sdk.ToolCapabilities{ListChanged: true},
	}
	o.SubscribeHandler = func(context.Context, *sdk.SubscribeRequest) error { return nil }
	o.UnsubscribeHandler = func(context.Context, *sdk.UnsubscribeRequest) error { return nil }
	o.CompletionHandler = func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
		return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}, nil
	}
}

func features(s *sdk.Server) {
	addContentTools(s)
	addNoticeTools(s)
	addAskingTools(s)
	addRoundTools(s)
	addResources(s)
	addPrompts(s)
}

// productTools are the two tools that the product's own layer can express.
func productTools() []mcp.Tool {
	return []mcp.Tool{
		{
			Name: "test_simple_text", Description: "Returns a text.", ReadOnly: true,
			Call: func(context.Context, mcp.Args) (any, error) {
				return mcp.Text("This is a simple text response for testing."), nil
			},
		},
		{
			Name: "test_error_handling", Description: "Always fails.", ReadOnly: true,
			Call: func(context.Context, mcp.Args) (any, error) {
				return nil, fault.New(fault.Invalid, "test", "This tool intentionally returns an error for testing")
			},
		},
	}
}

// addTool adds a tool that is outside of what the product's layer offers.
func addTool(s *sdk.Server, name, description string, h sdk.ToolHandler) {
	addToolWithSchema(s, name, description, `{"type":"object"}`, h)
}

func addToolWithSchema(s *sdk.Server, name, description, schema string, h sdk.ToolHandler) {
	s.AddTool(&sdk.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}, h)
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}
