package mcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// named is how many transport sessions have a name.
func (s *Server) named() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.connections)
}

// forgets calls a tool in five sessions over HTTP, ends each, and waits until none
// has a name any more. It returns how many calls were answered, by different names; one
// of a session that was idle for too long has none, since it is answered by itself.
func forgets(t *testing.T, idle time.Duration, end func(*Server, *sdk.ClientSession) error) (called int) {
	t.Helper()
	names := map[string]bool{}
	s, err := NewServer(Config{Version: "1", Tools: []Tool{{
		Name: "which", Description: "For a test.",
		Call: func(_ context.Context, a Args) (any, error) {
			if a.Connection() != "" {
				names[a.Connection()] = true
			}
			return Text(a.Connection()), nil
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler(HTTPOptions{SessionIdle: idle}))
	defer web.Close()
	defer s.Close()
	for range 5 {
		client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: web.Client(), DisableStandaloneSSE: true, MaxRetries: -1},
			&sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			continue // it was idle for too long already
		}
		answer, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "which"})
		if err == nil && answer.Content[0].(*sdk.TextContent).Text != "" {
			called++
		}
		if err := end(s, client); err != nil {
			t.Fatal(err)
		}
		for s.named() > 0 { // it ends in its own time
			r, err := web.Client().Get(web.URL)
			if err != nil || r.StatusCode != http.StatusBadRequest || r.Body.Close() != nil {
				t.Fatalf("asking for no session: %+v, %v", r, err)
			}
		}
		_ = client.Close() // there may be nothing left to end
	}
	if len(names) < called {
		t.Errorf("%d calls by %v", called, names)
	}
	return called
}

func TestNamesOfHTTPSessionsAreForgottenWhenTheyEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Server, *sdk.ClientSession) error{
		"by the client": func(_ *Server, c *sdk.ClientSession) error { return c.Close() },
		"by the server": func(s *Server, _ *sdk.ClientSession) error { return s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if called := forgets(t, time.Hour, end); called != 5 {
				t.Errorf("%d calls were answered", called)
			}
		})
	}
}

func TestNamesOfIdleHTTPSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	idle := 10 * time.Millisecond
	for forgets(t, idle, func(*Server, *sdk.ClientSession) error { return nil }) == 0 {
		idle *= 2 // too short for a call on this machine
	}
}
