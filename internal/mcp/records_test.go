package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/store"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestEnvelopedErrorsAreResultsWithTheEnvelopeAsText(t *testing.T) {
	t.Parallel()
	detailed := fault.New(fault.Conflict, "NOT_ACTIVATED", "R1 < R2").WithHint("activate it")
	detailed.Details = map[string]any{"id": "R001"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"detailed":    {fmt.Errorf("x: %w", detailed), `{"error":{"code":"NOT_ACTIVATED","message":"R1 < R2","details":{"id":"R001"},"recovery_hint":"activate it"}}`},
		"lower case":  {fault.New(fault.NotFound, "project_not_found", "m").WithHint("h"), `{"error":{"code":"PROJECT_NOT_FOUND","message":"m","details":{},"recovery_hint":"h"}}`},
		"no hint":     {fault.New(fault.Invalid, "INVALID_ARGUMENT", "m"), `{"error":{"code":"INVALID_ARGUMENT","message":"m","details":{},"recovery_hint":"correct the arguments and call again"}}`},
		"unavailable": {fault.New(fault.Unavailable, "STORAGE_UNAVAILABLE", "full").WithHint("free some"), `{"error":{"code":"STORAGE_UNAVAILABLE","message":"full","details":{},"recovery_hint":"free some"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failing := tool("fail", func(context.Context, mcp.Call, none) (any, error) { return nil, c.err })
			failing.Errors = mcp.ErrorEnvelope
			s := newServer(t, mcp.Config{Tools: []mcp.Tool{failing}})
			for _, revision := range revisions() {
				result, err := call(t, connect(t, s, revision, nil), "fail", json.RawMessage(`{"more":1}`))
				if err != nil {
					t.Fatal(err)
				}
				if got := texts(t, result); !result.IsError || len(got) != 1 || got[0] != c.want {
					t.Errorf("%s: isError %v, %q", revision, result.IsError, got)
				}
				if ignored, err := json.Marshal(result.Meta["cairn/ignored"]); err != nil || string(ignored) != `["more"]` {
					t.Errorf("%s: ignored %s, %v", revision, ignored, err)
				}
			}
		})
	}
}

func TestUnclassifiedErrorsOfEnvelopedToolsStayInternal(t *testing.T) {
	t.Parallel()
	failing := tool("fail", func(context.Context, mcp.Call, none) (any, error) { return nil, errors.New("open /home/someone") })
	failing.Errors = mcp.ErrorEnvelope
	_, err := call(t, connect(t, newServer(t, mcp.Config{Tools: []mcp.Tool{failing}}), "", nil), "fail", nil)
	if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInternalError || e.Message != "internal error" {
		t.Errorf("%#v", err)
	}
}

func TestLongListsOfIgnoredArgumentsAreCut(t *testing.T) {
	t.Parallel()
	sent := map[string]int{strings.Repeat("é", 200): 1}
	for i := range 50 {
		sent[fmt.Sprint("a", i)] = i
	}
	result, err := call(t, connect(t, newServer(t, mcp.Config{Tools: []mcp.Tool{
		tool("do", func(context.Context, mcp.Call, none) (any, error) { return "done", nil }),
	}}), "", nil), "do", sent)
	if err != nil {
		t.Fatal(err)
	}
	names, _ := result.Meta["cairn/ignored"].([]any)
	if len(names) != 20 {
		t.Errorf("%d names: %v", len(names), names)
	}
	for _, n := range names {
		if s, ok := n.(string); !ok || len(s) > 64 {
			t.Errorf("name %v", n)
		}
	}
}

// TestConnectionsAreToldApart compares the connection ids of calls over every transport.
func TestConnectionsAreToldApart(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{Tools: []mcp.Tool{
		tool("which", func(_ context.Context, c mcp.Call, _ none) (any, error) { return mcp.Text(c.Connection), nil }),
	}})
	which := func(c *sdk.ClientSession) string {
		result, err := call(t, c, "which", nil)
		if err != nil {
			t.Fatal(err)
		}
		return texts(t, result)[0]
	}
	var seen []string
	web := serveHTTP(t, s, mcp.HTTPOptions{})
	for _, c := range []*sdk.ClientSession{
		connect(t, s, "2025-11-25", nil), connect(t, s, "2026-07-28", nil), connect(t, s, "2026-07-28", nil),
		connectHTTP(t, web, "", "2025-11-25", nil), connectHTTP(t, web, "", "2025-11-25", nil),
	} {
		first, second := which(c), which(c)
		if first == "" || first != second || slices.Contains(seen, first) {
			t.Errorf("connection %q, then %q; before %q", first, second, seen)
		}
		seen = append(seen, first)
	}
	if got := which(connectHTTP(t, web, "", "2026-07-28", nil)); got != "" {
		t.Errorf("a transport without sessions has one: %q", got)
	}
}

// opened returns a cairn in an empty folder, without a store.
func opened(t *testing.T, adjust ...func(*cairn.Config)) *cairn.Cairn {
	t.Helper()
	dir := t.TempDir()
	config := cairn.Config{Home: dir, Dir: filepath.Join(dir, "data"), Role: store.Server}
	for _, a := range adjust {
		a(&config)
	}
	c, err := cairn.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestAStoreThatCannotBeOpenedIsNamedAndExplained replaces the store by something else.
func TestAStoreThatCannotBeOpenedIsNamedAndExplained(t *testing.T) {
	t.Parallel()
	c := opened(t)
	if err := os.MkdirAll(filepath.Dir(c.Path()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Path(), bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	session := connect(t, newServer(t, mcp.Config{Tools: mcp.RecordTools(c.Records(), "")}), "", nil)
	for _, name := range []string{"list_projects", "save_session", "get_project_overview"} {
		result, err := call(t, session, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		var e fault.Envelope
		if err := json.Unmarshal([]byte(texts(t, result)[0]), &e); err != nil || !result.IsError ||
			e.Error.Code != "STORAGE_UNAVAILABLE" || e.Error.Details["cause"] != store.CodeCorrupt || e.Error.Hint == "" {
			t.Errorf("%s: %v, %q", name, err, texts(t, result))
		}
	}
}

// TestOverHTTPRecordsAreOfTheURLsProjectOrTheDefaultOne runs without a working directory.
func TestOverHTTPRecordsAreOfTheURLsProjectOrTheDefaultOne(t *testing.T) {
	t.Parallel()
	c := opened(t)
	web := serveHTTP(t, newServer(t, mcp.Config{Tools: mcp.RecordTools(c.Records(), "")}), mcp.HTTPOptions{})
	project := func(session *sdk.ClientSession, args string) (id string) {
		result, err := call(t, session, "get_project_overview", json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		var v struct{ Project struct{ ID string } }
		if err := json.Unmarshal([]byte(texts(t, result)[0]), &v); err != nil || result.IsError {
			t.Fatalf("%v, %q", err, texts(t, result))
		}
		return v.Project.ID
	}
	made, err := call(t, connectHTTP(t, web, "?project=design", "2025-11-25", nil), "create_record",
		json.RawMessage(`{"type":"note","title":"t","summary":"","body":""}`))
	if err != nil {
		t.Fatal(err)
	}
	if made.IsError {
		t.Fatalf("%q", texts(t, made))
	}
	for _, revision := range revisions() {
		if got := project(connectHTTP(t, web, "", revision, nil), `{}`); got != "default" {
			t.Errorf("%s: without a project: %s", revision, got)
		}
		if got := project(connectHTTP(t, web, "?project=design", revision, nil), `{}`); got != "design" {
			t.Errorf("%s: with one in the URL: %s", revision, got)
		}
		if got := project(connectHTTP(t, web, "?project=other", revision, nil), `{"project_id":"design"}`); got != "design" {
			t.Errorf("%s: with an explicit one: %s", revision, got)
		}
	}
}
