//go:build conformance

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// addNoticeTools adds the tools that send notifications, or must not.
func addNoticeTools(s *sdk.Server) {
	addTool(s, "test_tool_with_logging", "Logs while it runs.", logging)
	addTool(s, "test_tool_with_progress", "Reports progress.", progress)
	addTool(s, "test_logging_tool", "Logs once.", logging)
	addTool(s, "test_streaming_elicitation", "Answers without asking anything.", plain("no question was asked"))
	addTool(s, "test_missing_capability", "Needs a client with sampling.", needsSampling)
	addTool(s, "test_trigger_tool_change", "Changes the list of tools.",
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			addTool(s, "test_added_tool", "Was added while serving.", plain("added"))
			return text("the list of tools has changed"), nil
		})
	addTool(s, "test_trigger_prompt_change", "Changes the list of prompts.",
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			addPrompt(s, "test_added_prompt", "Was added while serving.", "added")
			return text("the list of prompts has changed"), nil
		})
}

func plain(s string) sdk.ToolHandler {
	return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text(s), nil }
}

func logging(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	for _, message := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		//lint:ignore SA1019 the suite tests the deprecated feature
		err := r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: message})
		if err != nil {
			return nil, err
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
	return text("logged"), nil
}

func progress(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	token := r.Params.GetProgressToken()
	for _, done := range []float64{0, 50, 100} {
		if token != nil {
			err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: token, Progress: done, Total: 100, Message: fmt.Sprintf("%.0f of 100", done),
			})
			if err != nil {
				return nil, err
			}
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
	return text("done"), nil
}

func needsSampling(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if c := r.ClientCapabilities(); c != nil && c.Sampling != nil {
		return text("the client has sampling"), nil
	}
	data, err := json.Marshal(sdk.MissingRequiredClientCapabilityData{
		RequiredCapabilities: &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}},
	})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{
		Code: sdk.CodeMissingRequiredClientCapabilities, Message: "the client lacks sampling", Data: data,
	}
}

// pause waits 50 ms, so that notifications arrive one by one.
func pause(ctx context.Context) error {
	select {
	case <-time.After(50 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
