package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// agent is an MCP client of one cairn server.
type agent struct {
	session *sdk.ClientSession
}

// newAgent starts `cairn serve` in a folder and initialises the connection.
func (h *home) newAgent(ctx context.Context, dir string, args ...string) (*agent, error) {
	cmd := h.command(ctx, dir, append([]string{"serve"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	client := sdk.NewClient(&sdk.Implementation{Name: "cairn-demo", Version: "1"}, nil)
	session, err := client.Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		if endsSoon(ctx) {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("cairn serve: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return &agent{session}, nil
}

func (a *agent) close() error { return a.session.Close() }

// ask calls a tool and decodes its result.
func (a *agent) ask(ctx context.Context, tool string, args map[string]any, into any) (time.Duration, error) {
	began := time.Now()
	result, err := a.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	took := time.Since(began)
	if err != nil {
		if endsSoon(ctx) {
			return took, ctx.Err()
		}
		return took, fmt.Errorf("%s: %w", tool, err)
	}
	var text string
	if len(result.Content) > 0 {
		if c, ok := result.Content[0].(*sdk.TextContent); ok {
			text = c.Text
		}
	}
	if result.IsError {
		return took, fmt.Errorf("%s: %w", tool, errors.New(text))
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return took, fmt.Errorf("%s: %w", tool, err)
	}
	return took, nil
}

// row is an observation as the tools return it.
type row struct {
	ID        int64
	Timestamp int64
	SessionID string `json:"session_id"`
	Project   string
	ObsType   string `json:"obs_type"`
	ToolName  string `json:"tool_name"`
	Content   string
	Preview   string `json:"content_preview"`
	FilePath  string `json:"file_path"`
	Metadata  map[string]any
	Score     float64
}

type timeline struct {
	Anchor        row
	Before, After []row
}

type trace struct {
	SessionID string `json:"session_id"`
	Project   string
	Summary   struct {
		Intent  string
		Fixed   []string
		Failing []string
		Commits []struct{ Hash, Message string }
	}
	Prompts []struct {
		Source       string
		Content      string
		Observations []row
	}
}

type history struct {
	FilePath string `json:"file_path"`
	Sessions []struct {
		SessionID string `json:"session_id"`
		Project   string
		Intent    string `json:"summary_intent"`
		Touches   []struct {
			ID        int64 `json:"observation_id"`
			Timestamp int64
			ObsType   string `json:"obs_type"`
			Prompt    string `json:"prompt_content"`
		}
	}
}
