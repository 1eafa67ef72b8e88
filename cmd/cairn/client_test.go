package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// client is an official MCP client of a server process.
type client struct {
	*sdk.ClientSession
	t      *testing.T
	server *exec.Cmd
	stderr *gathered
	left   bool
}

// connect starts cairn serve in the repository and connects to it in a revision
// of the protocol, "" for the newest. The client leaves when the test ends.
func (h *home) connect(revision string, o *sdk.ClientOptions, args ...string) *client {
	h.t.Helper()
	c := &client{t: h.t, server: h.command(append([]string{"serve"}, args...)...), stderr: &gathered{}}
	c.server.Stderr = c.stderr
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(h.t.Context(),
		&sdk.CommandTransport{Command: c.server, TerminateDuration: stopLimit},
		&sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		h.t.Fatalf("connecting: %v, %s", err, c.stderr)
	}
	c.ClientSession = session
	h.t.Cleanup(c.leave)
	return c
}

// leave ends the client; the server must then exit 0 and have said nothing.
func (c *client) leave() {
	c.t.Helper()
	if c.left {
		return
	}
	c.left = true
	if err := c.Close(); err != nil {
		c.t.Errorf("closing the client: %v", err)
	}
	if state := c.server.ProcessState; state == nil || state.ExitCode() != 0 || c.stderr.String() != "" {
		c.t.Errorf("serve ended with %v and said %q", state, c.stderr)
	}
}

// answer is the text of a tool's result.
func (c *client) answer(tool string, args any) (text string, isError bool, err error) {
	c.t.Helper()
	r, err := c.CallTool(c.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", false, err
	}
	if len(r.Content) == 0 {
		return "", r.IsError, errors.New("the result is empty")
	}
	first, ok := r.Content[0].(*sdk.TextContent)
	if !ok {
		return "", r.IsError, errors.New("the result is no text")
	}
	return first.Text, r.IsError, nil
}

// rows is the array that a tool answers.
func (c *client) rows(tool string, args any) (rows []map[string]any) {
	c.t.Helper()
	text, isError, err := c.answer(tool, args)
	if err == nil && !isError {
		err = json.Unmarshal([]byte(text), &rows)
	}
	if err != nil || isError {
		c.t.Errorf("%s: %s, %v", tool, text, err)
	}
	return rows
}
