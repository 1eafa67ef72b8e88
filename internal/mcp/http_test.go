package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cairn/internal/mcp"
	"cairn/internal/mcp/toolargs"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// serveHTTP starts a server that listens until the end of the test.
func serveHTTP(t *testing.T, s *mcp.Server, o mcp.HTTPOptions) *httptest.Server {
	t.Helper()
	web := httptest.NewServer(s.Handler(o))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the sessions: %v", err)
		}
		web.Close()
	})
	return web
}

// connectHTTP returns an official client connected to web.
func connectHTTP(t *testing.T, web *httptest.Server, query, revision string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	session, err := client.Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: web.URL + query, HTTPClient: web.Client()},
		&sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return session
}

// send posts body with the headers, given as alternating names and values. The response ends
// with ctx.
func send(ctx context.Context, t *testing.T, web *httptest.Server, method, query, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, web.URL+query, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := response.Body.Close(); err != nil {
			t.Errorf("closing the body: %v", err)
		}
	})
	return response
}

// post sends one message and returns the status and the whole response.
func post(t *testing.T, web *httptest.Server, query, body string, headers ...string) (status int, answer string) {
	t.Helper()
	response := send(t.Context(), t, web, http.MethodPost, query, body, headers...)
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

type scopeArgs struct {
	Project toolargs.Scope `arg:"project"`
}

// scoping returns a server with a tool that returns the project of a call.
func scoping(t *testing.T) *mcp.Server {
	t.Helper()
	return newServer(t, mcp.Config{
		Tools: []mcp.Tool{tool("scope", func(_ context.Context, _ mcp.Call, a scopeArgs) (any, error) {
			return mcp.Text(fmt.Sprintf("%+v", a.Project)), nil
		})},
		Context: func(_ context.Context, project toolargs.Scope) (string, error) {
			return fmt.Sprintf("%+v", project), nil
		},
	})
}

func TestOneURLServesEveryRevision(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, scoping(t), mcp.HTTPOptions{})
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		session := connectHTTP(t, web, "", revision, nil)
		if got := session.InitializeResult().ProtocolVersion; got != revision {
			t.Errorf("asked for %s, got %s", revision, got)
		}
		if hasID := session.ID() != ""; hasID != (revision < "2026-07-28") {
			t.Errorf("%s: session id %q", revision, session.ID())
		}
		result, err := call(t, session, "scope", nil)
		if err != nil || texts(t, result)[0] != "{All:true Name:}" {
			t.Errorf("%s: %v %v", revision, result, err)
		}
	}
}

func TestURLNamesTheProjectOfCallsThatNameNone(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, scoping(t), mcp.HTTPOptions{})
	for _, revision := range revisions() {
		for query, want := range map[string]string{
			"":                        "{All:true Name:}",
			"?project=":               "{All:true Name:}",
			"?project=*":              "{All:true Name:}",
			"?project=billing":        "{All:false Name:billing}",
			"?project=caf%C3%A9%0A&x": "{All:false Name:café\n}",
		} {
			session := connectHTTP(t, web, query, revision, nil)
			for args, want := range map[string]string{
				`{}`: want, `{"project":null}`: "{All:true Name:}", `{"project":"own"}`: "{All:false Name:own}",
			} {
				result, err := call(t, session, "scope", json.RawMessage(args))
				if err != nil || texts(t, result)[0] != want {
					t.Errorf("%s %s %s: %v %v", revision, query, args, result, err)
				}
			}
			read, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: mcp.ContextURI})
			if err != nil || read.Contents[0].Text != want {
				t.Errorf("%s %s: context: %v %v", revision, query, read, err)
			}
		}
	}
}

func TestClientCannotSetTheScopeByHeader(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, scoping(t), mcp.HTTPOptions{})
	status, answer := post(t, web, "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"scope",`+modernMeta+`}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "scope", "Cairn-Scope", "billing")
	if status != http.StatusOK || !strings.Contains(answer, "{All:true Name:}") {
		t.Errorf("%d %s", status, answer)
	}
}

func TestVersionInBodyAndHeaderMustAgree(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, scoping(t), mcp.HTTPOptions{})
	discover := `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + modernMeta + `}}`
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
		code    int
	}{
		"both":           {discover, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "server/discover"}, 200, 0},
		"body only":      {discover, nil, 400, -32020},
		"older header":   {discover, []string{"Mcp-Protocol-Version", "2025-11-25", "Mcp-Method", "server/discover"}, 400, -32020},
		"header only":    {ping, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "ping"}, 400, -32602},
		"unknown future": {strings.Replace(discover, "2026-07-28", "2099-01-01", 1), []string{"Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "server/discover"}, 400, -32022},
	} {
		status, answer := post(t, web, "", c.body, c.headers...)
		code := 0
		if status != http.StatusOK {
			_, code, _ = errorOf(t, answer)
		}
		if status != c.status || code != c.code {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
}

func TestHostileHTTPRequestsAreRefused(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, scoping(t), mcp.HTTPOptions{})
	long := `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 16<<20) + `"}`
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
	}{
		"foreign host":              {initialize, []string{"Host", "evil.example.com"}, 403},
		"too long":                  {long, nil, 413},
		"too long, newer":           {long, []string{"Mcp-Protocol-Version", "2026-07-28"}, 413},
		"too long, session":         {long, []string{"Mcp-Session-Id", "none"}, 413},
		"empty":                     {"", nil, 400},
		"no JSON":                   {"{bad", nil, 400},
		"wrong type":                {ping, []string{"Content-Type", "text/plain"}, 415},
		"old version, not dated":    {ping, []string{"Mcp-Protocol-Version", "1"}, 400},
		"session on newer revision": {ping, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Session-Id", "none"}, 400},
	} {
		if status, answer := post(t, web, "", c.body, c.headers...); status != c.status {
			t.Errorf("%s: %d, want %d: %.200s", name, status, c.status, answer)
		}
	}
	checked := serveHTTP(t, scoping(t), mcp.HTTPOptions{HostChecked: true})
	if status, answer := post(t, checked, "", initialize, "Host", "cairn.example.com"); status != http.StatusOK {
		t.Errorf("host that the listener has checked: %d %s", status, answer)
	}
}

func TestContextIsAnnouncedOverHTTP(t *testing.T) {
	t.Parallel()
	s := scoping(t)
	web := serveHTTP(t, s, mcp.HTTPOptions{})
	for _, revision := range revisions() {
		updates := make(chan string, 100)
		session := connectHTTP(t, web, "", revision, &sdk.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
				select {
				case updates <- r.Params.URI:
				default: // one notice is enough
				}
			},
		})
		if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: mcp.ContextURI}); err != nil {
			t.Fatal(err)
		}
		for announced := false; !announced; { // the stream for notices may still be opening
			if err := s.ContextChanged(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := session.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			select {
			case uri := <-updates:
				announced = uri == mcp.ContextURI
			default:
			}
		}
	}
}

func TestOpenStreamsGetHeartbeatsAndEndWithTheServer(t *testing.T) {
	t.Parallel()
	s := scoping(t)
	web := serveHTTP(t, s, mcp.HTTPOptions{Heartbeat: time.Millisecond})
	begun := send(t.Context(), t, web, http.MethodPost, "", initialize)
	if _, err := io.ReadAll(begun.Body); err != nil {
		t.Fatal(err)
	}
	streams := map[string]*http.Response{
		"standalone": send(t.Context(), t, web, http.MethodGet, "", "", "Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id")),
		"listen": send(t.Context(), t, web, http.MethodPost, "",
			`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["cairn://context"]},`+modernMeta+`}}`,
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"),
	}
	readers := map[string]*bufio.Reader{}
	for name, response := range streams {
		r := bufio.NewReader(response.Body)
		readers[name] = r
		for beats := 0; beats < 3; {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if line == ":\n" {
				beats++
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, r := range readers {
		if _, err := io.ReadAll(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, scoping(t), mcp.HTTPOptions{SessionIdle: time.Millisecond})
	begun := send(t.Context(), t, web, http.MethodPost, "", initialize)
	if _, err := io.ReadAll(begun.Body); err != nil {
		t.Fatal(err)
	}
	// The session's stream ends with it.
	stream := send(t.Context(), t, web, http.MethodGet, "", "", "Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id"))
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Fatal(err)
	}
	if ended := send(t.Context(), t, web, http.MethodDelete, "", "", "Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id")); ended.StatusCode != http.StatusNotFound {
		t.Errorf("the session goes on: %s", ended.Status)
	}
}

func TestACallOutsideAnySessionIsAnsweredByItself(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, scoping(t), mcp.HTTPOptions{})
	const calls = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"scope","arguments":{}}}`
	for name, headers := range map[string][]string{
		"no session":                {},
		"a script":                  {"Accept", "*/*", "Content-Type", "application/x-www-form-urlencoded"},
		"an old revision":           {"Mcp-Protocol-Version", "2025-03-26"},
		"the newest with sessions":  {"Mcp-Protocol-Version", "2025-11-25"},
		"a session before restarts": {"Mcp-Session-Id", "of-another-server", "Mcp-Protocol-Version", "2025-06-18"},
	} {
		response := send(t.Context(), t, web, http.MethodPost, "?project=shop", calls, headers...)
		answer, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/json" ||
			!strings.Contains(string(answer), `"id":7`) || !strings.Contains(string(answer), "Name:shop") {
			t.Errorf("%s: %s, %s: %v", name, response.Status, answer, err)
		}
	}
}

func TestCallEndsWhenItsHTTPRequestIsGone(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}), make(chan error, 1)
	s := newServer(t, mcp.Config{Tools: []mcp.Tool{tool("wait", func(ctx context.Context, _ mcp.Call, _ none) (any, error) {
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})}})
	web := serveHTTP(t, s, mcp.HTTPOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	session := connectHTTP(t, web, "", "2026-07-28", nil)
	if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "wait"}); err == nil {
		t.Error("the call succeeded")
	}
	if err := <-ended; err == nil {
		t.Error("the tool was not told")
	}
}

func TestTheSessionUsedTheLongestAgoEndsForOneTooMany(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, scoping(t), mcp.HTTPOptions{MaxSessions: 2})
	begin := func() string {
		t.Helper()
		response := send(t.Context(), t, web, http.MethodPost, "", initialize)
		if _, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(response.StatusCode, err)
		}
		return response.Header.Get("Mcp-Session-Id")
	}
	status := func(session string) int {
		t.Helper()
		code, _ := post(t, web, "", ping, "Mcp-Session-Id", session)
		return code
	}
	first, second := begin(), begin()
	for i := range 10 { // no trace of these may remain
		if got := status(fmt.Sprint("unknown", i)); got != http.StatusOK {
			t.Fatalf("an unknown session: %d", got)
		}
	}
	if status(first) != http.StatusOK { // so that the second session is the oldest
		t.Fatal("the first session has ended")
	}
	third := begin()
	// The stream of the session that will be ended also ends.
	stream := send(t.Context(), t, web, http.MethodGet, "", "", "Mcp-Session-Id", second)
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Fatal(err)
	}
	for session, want := range map[string]int{first: http.StatusNoContent, second: http.StatusNotFound, third: http.StatusNoContent} {
		if got := send(t.Context(), t, web, http.MethodDelete, "", "", "Mcp-Session-Id", session).StatusCode; got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}

func TestASessionOverHTTPHasOneNameAtEveryServerAndNoClientChoosesIt(t *testing.T) {
	t.Parallel()
	name := func(headers ...string) string {
		t.Helper()
		s := newServer(t, mcp.Config{Tools: []mcp.Tool{tool("which", func(_ context.Context, c mcp.Call, _ none) (any, error) {
			return mcp.Text("[" + c.Connection + "]"), nil
		})}})
		const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"which","arguments":{}}}`
		response := send(t.Context(), t, serveHTTP(t, s, mcp.HTTPOptions{}), http.MethodPost, "", call, headers...)
		answer, err := io.ReadAll(response.Body)
		_, rest, _ := strings.Cut(string(answer), `"text":"[`)
		found, _, ok := strings.Cut(rest, `]"`)
		if err != nil || !ok {
			t.Fatal(err, string(answer))
		}
		return found
	}
	first := name("Mcp-Session-Id", "a")
	switch {
	case first == "" || first != name("Mcp-Session-Id", "a"):
		t.Error("a server that has restarted knows a session by another name")
	case first == name("Mcp-Session-Id", "b") || first == name("Mcp-Session-Id", first):
		t.Error("two sessions have one name")
	case name() != "" || name("Cairn-Connection", first) != "" || name("Cairn-Connection", first, "Mcp-Session-Id", "a") != first:
		t.Error("a client has chosen the name of its session")
	}
}

func TestASessionThatItsClientHasEndedIsOver(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, scoping(t), mcp.HTTPOptions{})
	response := send(t.Context(), t, web, http.MethodPost, "", initialize)
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	id := response.Header.Get("Mcp-Session-Id")
	if code, _ := post(t, web, "", ping, "Mcp-Session-Id", id); code != http.StatusOK {
		t.Fatal(code)
	}
	if r := send(t.Context(), t, web, http.MethodDelete, "", "", "Mcp-Session-Id", id); r.StatusCode >= 300 {
		t.Fatal(r.Status)
	}
	if code, _ := post(t, web, "", ping, "Mcp-Session-Id", id); code != http.StatusNotFound {
		t.Errorf("it goes on: %d", code)
	}
	if code, _ := post(t, web, "", ping, "Mcp-Session-Id", "of-another-server"); code != http.StatusOK {
		t.Errorf("one of a server before: %d", code)
	}
}
