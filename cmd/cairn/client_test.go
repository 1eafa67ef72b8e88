package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const contextURI = "cairn://context"

// revisions returns the two protocol revisions that differ most: with and without sessions.
func revisions() []string { return []string{"2025-11-25", "2026-07-28"} }

// client is an official MCP client connected to a server process.
type client struct {
	*sdk.ClientSession
	t      *testing.T
	server *exec.Cmd
	stderr *gathered
	left   bool

	schemas resultSchemas
}

// dial starts cairn serve in the repository and connects to it with a protocol revision. An empty
// revision means the newest.
func (h *home) dial(revision string, o *sdk.ClientOptions) *client {
	h.t.Helper()
	return h.dialTo(h.command("serve"), revision, o)
}

// dialTo is like dial, for a server that has not been started yet.
func (h *home) dialTo(server *exec.Cmd, revision string, o *sdk.ClientOptions) *client {
	h.t.Helper()
	c := &client{t: h.t, server: server, stderr: &gathered{}}
	c.server.Stderr = c.stderr
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(h.t.Context(),
		&sdk.CommandTransport{Command: c.server, TerminateDuration: stopLimit},
		&sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		h.t.Fatalf("connecting: %v, %s", err, c.stderr)
	}
	c.ClientSession = session
	return c
}

// connect is like dial, but the client disconnects when the test ends.
func (h *home) connect(revision string, o *sdk.ClientOptions) *client {
	h.t.Helper()
	c := h.dial(revision, o)
	h.t.Cleanup(c.leave)
	return c
}

// leave closes the client. The server must then exit with 0 and empty standard error.
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

// answer returns the first text of a tool's result. A JSON object must also be present as
// structured content.
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
	c.checked(tool, r)
	if strings.HasPrefix(first.Text, "{") && !r.IsError {
		var object any
		if err := json.Unmarshal([]byte(first.Text), &object); err != nil || !reflect.DeepEqual(object, r.StructuredContent) {
			c.t.Errorf("%s: the structured content is not the text (%v)", tool, err)
		}
	}
	return first.Text, r.IsError, nil
}

// rows returns the array in a tool's result.
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

// refuses expects a tool error whose message equals want or begins with it.
func (c *client) refuses(tool string, args any, want string) {
	c.t.Helper()
	text, isError, err := c.answer(tool, args)
	if err != nil || !isError || !strings.HasPrefix(text, want) {
		c.t.Errorf("%s %v: %q (error: %v), %v; want %q", tool, args, text, isError, err, want)
	}
}

// says expects an exact tool result.
func (c *client) says(tool string, args any, want string) {
	c.t.Helper()
	text, isError, err := c.answer(tool, args)
	if err != nil || isError || text != want {
		c.t.Errorf("%s %v: %s (error: %v), %v; want %s", tool, args, text, isError, err, want)
	}
}

// told returns the text of the context resource.
func (c *client) told() string {
	c.t.Helper()
	r, err := c.ReadResource(c.t.Context(), &sdk.ReadResourceParams{URI: contextURI})
	if err != nil || len(r.Contents) != 1 || r.Contents[0].MIMEType != "text/markdown" {
		c.t.Fatalf("reading the context: %+v, %v", r, err)
	}
	return r.Contents[0].Text
}

// TestToolsRefuseInTheWordsOfTheContract covers the error tables of the seed and of observations
// §8.
func TestToolsRefuseInTheWordsOfTheContract(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.worked()
	many := make([]int, 51)
	words := strings.TrimSpace(strings.Repeat("word ", 65))
	for _, revision := range revisions() {
		c := h.connect(revision, nil)
		c.refuses("search", fields{"query": " \n"}, "query must not be empty")
		c.refuses("search", fields{"query": "!? --"}, "query has no searchable term")
		c.refuses("search", fields{"query": `open "quote`}, "")
		c.refuses("search", fields{"query": "(open"}, "")
		c.refuses("search", fields{"query": strings.Repeat("x", 1001)}, "")
		c.refuses("search", fields{"query": words}, "")
		c.refuses("search", fields{"query": "x", "orderBy": "newest"}, "")
		c.refuses("search", fields{"query": 7}, `argument "query" must be a string, not a number`)
		c.refuses("search", fields{}, `missing required argument "query"`)
		c.refuses("get_observations", fields{"ids": []int{}}, "ids array must not be empty")
		c.refuses("get_observations", fields{"ids": many}, "ids array must not exceed 50 elements")
		c.refuses("get_observations", fields{"ids": []any{1, "2"}}, `argument "ids" must be an array of integers; element 2 is a string`)
		c.refuses("timeline", fields{"anchor": 999}, "anchor observation not found")
		c.refuses("timeline", fields{"anchor": "1"}, `argument "anchor" must be an integer, not a string`)
		c.refuses("session_trace", fields{"session_id": "nobody"}, "session not found: nobody")

		c.says("search", fields{"query": "nothinglikethis"}, "[]")
		c.says("search", fields{"query": "refund", "project": "nowhere"}, "[]")
		c.refuses("search", fields{"query": "refund", "obs_type": "dream"}, "")
		c.says("search", fields{"query": "refund", "offset": 100}, "[]")
		c.says("get_observations", fields{"ids": []int{997, 998}}, "[]")
		c.says("recent_context", fields{"project": "nowhere"}, "[]")
		c.says("file_history", fields{"file_path": "no/such.go"}, `{"file_path":"no/such.go","sessions":[]}`)
		if n := len(c.rows("search", fields{"query": "refund", "limit": -3})); n != 1 {
			t.Errorf("a limit below 1 gives %d rows", n)
		}
		var alone struct{ Before, After []any }
		c.object("timeline", fields{"anchor": 10, "before": -1, "after": 900}, &alone)
		if alone.Before == nil || alone.After == nil || len(alone.Before)+len(alone.After) > 0 {
			t.Errorf("around a row that is alone: %+v", alone)
		}
		var trace struct{ Prompts []any }
		c.object("session_trace", fields{"session_id": "s1", "before": 1000}, &trace)
		if trace.Prompts == nil || len(trace.Prompts) > 0 {
			t.Errorf("outside the window: %+v", trace)
		}

		_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "no_such_tool"})
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("an unknown tool: %v", err)
		}
	}
}

// object decodes a tool's result into an object.
func (c *client) object(tool string, args, into any) {
	c.t.Helper()
	text, isError, err := c.answer(tool, args)
	if err == nil && !isError {
		err = json.Unmarshal([]byte(text), into)
	}
	if err != nil || isError {
		c.t.Errorf("%s: %s, %v", tool, text, err)
	}
}

// TestMalformedQueriesAreExplained checks that the error states the reason.
func TestMalformedQueriesAreExplained(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.recorded(h.shell("t1", "make"))
	c := h.connect("", nil)
	for query, want := range map[string]string{
		`open "quote`:                        "quot",
		"(open":                              "parenthes",
		strings.Repeat("x", 1001):            "1,000 characters",
		strings.Repeat("word ", 64) + "more": "64 terms",
	} {
		text, isError, err := c.answer("search", fields{"query": query})
		if err != nil || !isError || !strings.Contains(strings.ReplaceAll(text, "1000", "1,000"), want) {
			t.Errorf("%.20s: %q, %v; want it to name %q", query, text, err, want)
		}
	}
}

// TestServerStartsWithoutADatabaseAndSeesItAppear queries the server before and after the first
// hook of another process.
func TestServerStartsWithoutADatabaseAndSeesItAppear(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions() {
		h := newHome(t)
		c := h.connect(revision, nil)
		c.says("search", fields{"query": "refund"}, "[]")
		c.says("get_observations", fields{"ids": []int{1}}, "[]")
		c.says("recent_context", nil, "[]")
		c.says("file_history", fields{"file_path": "a.go"}, `{"file_path":"a.go","sessions":[]}`)
		c.refuses("timeline", fields{"anchor": 1}, "anchor observation not found")
		c.refuses("session_trace", fields{"session_id": "s1"}, "session not found: s1")
		c.refuses("get_observations", fields{"ids": []int{}}, "ids array must not be empty")
		if told := c.told(); told != "Nothing is recorded about earlier work here yet.\n" {
			t.Errorf("told without a database: %q", told)
		}
		if _, err := os.Stat(h.dataDir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("asking made the data directory: %v", err)
		}

		h.worked()
		if n := len(c.rows("search", fields{"query": "refund"})); n != 6 {
			t.Errorf("%d rows found after the database appeared", n)
		}
		if told := c.told(); !strings.HasPrefix(told, "# cairn context\n") || !strings.Contains(told, "src/refund.go") {
			t.Errorf("told: %q", told)
		}
	}
}

// TestSubscriberIsToldWhatAnotherProcessRecorded waits for notifications about recorded hooks.
func TestSubscriberIsToldWhatAnotherProcessRecorded(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions() {
		for _, there := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s store %v", revision, there), func(t *testing.T) {
				t.Parallel()
				h := newHome(t)
				if there {
					h.recorded(h.shell("t0", "make first"))
				}
				notices := make(chan string, 1000)
				c := h.connect(revision, &sdk.ClientOptions{
					ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
						notices <- r.Params.URI
					},
				})
				if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: contextURI}); err != nil {
					t.Fatal(err)
				}
				if !there { // the first event of a new store is announced
					h.recorded(h.shell("first", "make the store"))
					select {
					case <-notices:
					case <-time.After(stopLimit):
						t.Fatal("the first event was not announced")
					}
				}
				// In the other case the server starts following shortly after it starts serving, so
				// it may miss the first hooks.
				limit := time.Now().Add(stopLimit)
				for i, told := 0, false; !told; i++ {
					h.recorded(h.shell(fmt.Sprint("n", i), fmt.Sprint("make early", i)))
					select {
					case <-notices:
						told = true
					default:
						if time.Now().After(limit) {
							t.Fatal("no notice arrived")
						}
					}
				}
				for i := range 3 {
					command := fmt.Sprintf("make part%d", i)
					h.recorded(h.shell(fmt.Sprint("u", i), command))
					c.hears(notices, command)
				}
			})
		}
	}
}

// hears reads the context again at each notification, until it contains a text.
func (c *client) hears(notices <-chan string, text string) {
	c.t.Helper()
	limit := time.After(stopLimit)
	for {
		select {
		case uri := <-notices:
			if uri != contextURI {
				c.t.Errorf("a notice about %s", uri)
			}
			if strings.Contains(c.told(), text) {
				return
			}
		case <-limit:
			c.t.Fatalf("no notice about %q", text)
		}
	}
}
