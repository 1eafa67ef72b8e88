package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn"
	"cairn/internal/store"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// web is a process of cairn serve --http.
type web struct {
	h      *home
	server *exec.Cmd
	url    string // http://127.0.0.1:PORT
	token  string
	stderr *gathered
	http   *http.Client
}

// listen starts a server on a free port; it is interrupted when the test ends and
// must then exit 0 and have said nothing more.
func (h *home) listen(args ...string) *web {
	h.t.Helper()
	w := h.listenUntil(args...)
	h.t.Cleanup(func() {
		w.stop()
		if said := w.stderr.String(); strings.Count(said, "\n") != 1 {
			h.t.Errorf("serve --http said %s", said)
		}
	})
	return w
}

// listenUntil is listen of a server that the test itself ends.
func (h *home) listenUntil(args ...string) *web {
	h.t.Helper()
	w := &web{h: h, server: h.command(append([]string{"serve", "--http", ":0"}, args...)...), stderr: &gathered{}}
	w.server.Stderr = w.stderr
	if err := w.server.Start(); err != nil {
		h.t.Fatal(err)
	}
	line := regexp.MustCompile(`^cairn: serving (http://127\.0\.0\.1:\d+) \(token in (.*)\)\n`)
	h.t.Cleanup(func() { _ = w.server.Process.Kill() }) // has ended already, unless the test failed
	h.soon("the address", func() bool { return strings.Contains(w.stderr.String(), "\n") })
	m := line.FindStringSubmatch(w.stderr.String())
	if m == nil || m[2] != filepath.Join(h.dataDir(), "http-token") {
		h.t.Fatalf("serve --http said %s", w.stderr)
	}
	token, err := os.ReadFile(m[2])
	if err != nil {
		h.t.Fatal(err)
	}
	w.url, w.token = m[1], strings.TrimSpace(string(token))
	connections := &http.Transport{MaxIdleConnsPerHost: 2000}
	h.t.Cleanup(connections.CloseIdleConnections)
	w.http = &http.Client{Transport: connections, Timeout: stopLimit}
	return w
}

// soon waits until something is so.
func (h *home) soon(what string, so func() bool) {
	h.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(stopLimit)
	for !so() {
		select {
		case <-tick.C:
		case <-limit:
			h.t.Fatalf("%s: not in time", what)
		}
	}
}

// stop interrupts the server, which must exit 0.
func (w *web) stop() {
	w.h.t.Helper()
	if w.server.ProcessState != nil {
		return
	}
	if err := w.server.Process.Signal(os.Interrupt); err != nil {
		w.h.t.Error(err)
	}
	if err := w.server.Wait(); err != nil {
		w.h.t.Errorf("serve --http: %v, %s", err, w.stderr)
	}
}

// reply is what a server answered.
type reply struct {
	status int
	header http.Header
	body   string
}

// code is the error code in the envelope of a reply.
func (r reply) code() string {
	var e envelope
	if json.Unmarshal([]byte(r.body), &e) != nil || e.Error.Message == "" || e.Error.Details == nil {
		return "no envelope: " + r.body
	}
	return e.Error.Code
}

// send makes a request with the token and a JSON body, "" for none. Headers are names
// and values in turn; an empty value takes the header away.
func (w *web) send(method, path, body string, headers ...string) (reply, error) {
	r, err := http.NewRequestWithContext(w.h.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		switch name, value := headers[i], headers[i+1]; {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Add(name, value)
		}
	}
	response, err := w.http.Do(r)
	if err != nil {
		return reply{}, err
	}
	data, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(data)}, errors.Join(err, response.Body.Close())
}

func (w *web) do(method, path, body string, headers ...string) reply {
	w.h.t.Helper()
	r, err := w.send(method, path, body, headers...)
	if err != nil {
		w.h.t.Fatalf("%s %s: %v, %s", method, path, err, w.stderr)
	}
	return r
}

// wants expects a status of a request, and of an error its code.
func (w *web) wants(status int, code, method, path, body string, headers ...string) reply {
	w.h.t.Helper()
	r := w.do(method, path, body, headers...)
	if r.status != status || code != "" && r.code() != code {
		w.h.t.Errorf("%s %s %.200s %q: %d %s; want %d %s", method, path, body, headers, r.status, r.body, status, code)
	}
	return r
}

// post calls a tool of the mirror, which must succeed.
func (w *web) post(path string, args fields) reply {
	w.h.t.Helper()
	body, err := json.Marshal(args)
	if err != nil {
		w.h.t.Fatal(err)
	}
	return w.wants(http.StatusOK, "", http.MethodPost, path, string(body))
}

// bearer adds a token to all requests of a client.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// dial connects an official MCP client to a path of the server.
func (w *web) dial(path, revision, token string, o *sdk.ClientOptions) (*client, error) {
	transport := &sdk.StreamableClientTransport{
		Endpoint: w.url + path, HTTPClient: &http.Client{Transport: bearer{token, w.http.Transport}}, MaxRetries: -1,
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(w.h.t.Context(), transport,
		&sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return nil, err
	}
	return &client{ClientSession: session, t: w.h.t, left: true}, nil
}

// connect is dial for a client that leaves before the server ends.
func (w *web) connect(path, revision string, o *sdk.ClientOptions) *client {
	w.h.t.Helper()
	c, err := w.dial(path, revision, w.token, o)
	if err != nil {
		w.h.t.Fatalf("connecting to %s: %v, %s", path, err, w.stderr)
	}
	w.h.t.Cleanup(func() { _ = c.Close() }) // a test may have stopped the server
	return c
}

// holdWrites keeps every other process from writing until release is called.
func (h *home) holdWrites() (release func()) {
	h.t.Helper()
	held, released := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		h.opened(func(ctx context.Context, c *cairn.Cairn) error {
			s, err := c.Store(ctx)
			if err != nil {
				close(held)
				return err
			}
			return s.Write(ctx, store.Full, func(context.Context, *store.Tx) error {
				close(held)
				<-released
				return nil
			})
		})
	})
	<-held
	release = sync.OnceFunc(func() { close(released); done.Wait() })
	h.t.Cleanup(release)
	return release
}

// running is how many calls the server works on.
func (w *web) running() int {
	w.h.t.Helper()
	return w.number("cairn_http_running_calls")
}

// number is one of /metrics, -1 if it is not there.
func (w *web) number(name string) int {
	w.h.t.Helper()
	for line := range strings.Lines(w.do(http.MethodGet, "/metrics", "").body) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				w.h.t.Fatal(err)
			}
			return int(v)
		}
	}
	return -1
}

func TestClientsOfEveryRevisionAreServedOverHTTP(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worked()
	w := h.listen()
	for i, path := range []string{"/mcp", "/mcp/", "/api", "/api/?project=shop"} {
		for _, revision := range revisions() {
			c := w.connect(path, revision, nil)
			if got := c.InitializeResult().ProtocolVersion; got != revision {
				t.Errorf("%s: asked for %s, got %s", path, revision, got)
			}
			if n := len(c.rows("search", fields{"query": "send"})); n != map[bool]int{true: 0, false: 1}[i == 3] {
				t.Errorf("%s %s: %d rows of the other project", path, revision, n)
			}
			c.refuses("session_trace", fields{"session_id": "nobody"}, "session not found: nobody")
			r := c.created(fields{"title": "over HTTP", "project_id": "shop"})
			c.fails("get_record_ref", fields{"id": "R999", "project_id": "shop"}, "RECORD_NOT_FOUND")
			if got := asked[kept](c, "get_record_ref", fields{"id": r.ID, "project_id": "shop"}); got.Title != "over HTTP" {
				t.Errorf("%s %s: %+v", path, revision, got)
			}
			if told := c.told(); !strings.Contains(told, "refund.go") {
				t.Errorf("told: %q", told)
			}
		}
	}
	h.wantRows(`SELECT count(*) FROM records`, "8")
	h.check()
}

func TestSubscribersOverHTTPAreToldOfEveryProject(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("t0", "make first"))
	w := h.listen()
	for _, revision := range revisions() {
		notices := make(chan string, 1000)
		c := w.connect("/mcp", revision, &sdk.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { notices <- r.Params.URI },
		})
		if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: contextURI}); err != nil {
			t.Fatal(err)
		}
		other := h.repository(filepath.Join(h.dir, "elsewhere"))
		i := 0
		h.soon("a notice", func() bool { // the stream for notices may still be opening
			i++
			h.recorded(h.payload("UserPromptSubmit", fields{"prompt": fmt.Sprint("look ", i), "cwd": other, "session_id": "s" + revision}))
			select {
			case uri := <-notices:
				return uri == contextURI
			default:
				return false
			}
		})
	}
}

func TestWithoutTheTokenNobodyIsLetIn(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.listenUntil()
	old := w.token
	for _, path := range []string{"/mcp", "/api/", "/v1/tools", "/v1/projects/x/records/list_records", "/metrics", "/", "/nowhere"} {
		for _, header := range []string{"", "Bearer", "Bearer ", "Bearer " + old[:42], "Bearer " + old + "x", "Basic " + old, old} {
			r := w.wants(http.StatusUnauthorized, "", http.MethodGet, path, "", "Authorization", "", "Authorization", header)
			if r.body != `{"detail":"Unauthorized"}`+"\n" || !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s %q: %v %s", path, header, r.header, r.body)
			}
		}
	}
	for _, revision := range revisions() {
		if _, err := w.dial("/mcp", revision, "wrong", nil); err == nil {
			t.Errorf("%s: connected with a wrong token", revision)
		}
	}
	w.wants(http.StatusOK, "", http.MethodGet, "/v1/tools", "", "Authorization", "", "Authorization", "bearer "+old)
	w.wants(http.StatusOK, "", http.MethodGet, "/health", "", "Authorization", "")

	// A new token counts at once, and the old one no more.
	if printed := h.cairn("http-token"); printed != old+"\n" {
		t.Error("http-token prints another token")
	}
	w.token = strings.TrimSpace(h.cairn("http-token", "--rotate"))
	if w.token == old || len(w.token) != 43 {
		t.Error("rotating made no new token")
	}
	w.wants(http.StatusOK, "", http.MethodGet, "/v1/tools", "")
	w.wants(http.StatusUnauthorized, "", http.MethodGet, "/v1/tools", "", "Authorization", "", "Authorization", "Bearer "+old)
	var printed struct{ Token, File string }
	if err := json.Unmarshal([]byte(h.cairn("http-token", "--json")), &printed); err != nil || printed.Token != w.token {
		t.Errorf("http-token --json: %v", err)
	}
	if mode := h.files()["http-token"]; mode.Perm() != 0o600 {
		t.Errorf("the token's file is %v", mode)
	}
	if err := os.WriteFile(printed.File, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.wants(http.StatusUnauthorized, "", http.MethodGet, "/v1/tools", "", "Authorization", "", "Authorization", "Bearer ")
	if said := w.stderr.String(); strings.Contains(said, old) || strings.Contains(said, w.token) {
		t.Error("the server has printed its token")
	}
	w.stop()
}

func TestEightProcessesMakeOneToken(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	var printed [8]string
	var all sync.WaitGroup
	for i := range printed {
		all.Go(func() {
			e := h.run(h.command("http-token"), nil)
			if printed[i] = e.stdout; e.code != 0 {
				t.Errorf("exit %d, %s", e.code, e.stderr)
			}
		})
	}
	w := h.listen()
	all.Wait()
	for _, p := range printed {
		if p != w.token+"\n" {
			t.Error("two tokens were made")
		}
	}
	for name := range h.files() {
		if name != "." && name != "http-token" {
			t.Errorf("%s is left", name)
		}
	}
}

func TestHostAndOriginAreChecked(t *testing.T) { // DNS rebinding, foreign pages
	t.Parallel()
	h := newHome(t)
	w := h.listen("--allow-host", "desk.example", "--allow-host", "lab.example:81", "--allow-origin", "https://Desk.example")
	own := strings.TrimPrefix(w.url, "http://")
	_, port, _ := strings.Cut(own, ":")
	for host, ok := range map[string]bool{
		own: true, "localhost": true, "LOCALHOST:1": true, "localhost.:" + port: true, "127.0.0.2": true, "[::1]:8": true, "[::1]": true,
		"desk.example": true, "Desk.Example:99": true, "lab.example:81": true,
		"lab.example": false, "lab.example:8": false, "evil.example": false, "evil.example:" + port: false, "localhost.evil.example": false,
		"127.0.0.1.evil.example": false, "0.0.0.0": false, "10.0.0.1": false, "xdesk.example": false, "desk.example.": false, "[::2]": false,
	} {
		for _, path := range []string{"/health", "/v1/tools"} {
			if ok {
				w.wants(http.StatusOK, "", http.MethodGet, path, "", "Host", host)
			} else {
				w.wants(http.StatusForbidden, "forbidden", http.MethodGet, path, "", "Host", host)
			}
		}
	}
	for origin, ok := range map[string]bool{
		w.url: true, strings.ToUpper(w.url): true, "https://desk.example": true, "HTTPS://DESK.example": true,
		"http://localhost:" + port: false, "https://" + own: false, "http://127.0.0.1": false, "null": false, "http://desk.example": false,
		"https://desk.example:8": false, "https://evil.example": false, "https://desk.example.evil.example": false, "*": false, w.url + ".evil.example": false,
	} {
		r := w.do(http.MethodGet, "/v1/tools", "", "Origin", origin)
		listed := strings.EqualFold(origin, "https://desk.example")
		if (r.status == http.StatusOK) != ok || !ok && (r.status != http.StatusForbidden || r.code() != "forbidden") {
			t.Errorf("origin %s: %d %.100s", origin, r.status, r.body)
		}
		got := r.header.Get("Access-Control-Allow-Origin")
		if listed != (got == origin) || !listed && got != "" || r.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("origin %s: %v", origin, r.header)
		}
	}
	if r := w.do(http.MethodGet, "/v1/tools", "", "Origin", "https://desk.example", "Origin", "https://evil.example"); r.status != http.StatusForbidden {
		t.Errorf("two origins: %d", r.status)
	}
	preflight := []string{"Access-Control-Request-Method", "POST", "Authorization", ""}
	r := w.do(http.MethodOptions, "/mcp", "", append(preflight, "Origin", "https://desk.example")...)
	if r.status != http.StatusNoContent || !strings.Contains(r.header.Get("Access-Control-Allow-Headers"), "Authorization") ||
		r.header.Get("Access-Control-Allow-Methods") == "" || r.header.Get("Vary") != "Origin" {
		t.Errorf("preflight: %d %v", r.status, r.header)
	}
	w.wants(http.StatusForbidden, "forbidden", http.MethodOptions, "/mcp", "", append(preflight, "Origin", "https://evil.example")...)
	w.wants(http.StatusUnauthorized, "", http.MethodOptions, "/mcp", "", preflight...)

	// A page that is listed can be an MCP client, through a proxy too.
	w.wants(http.StatusOK, "", http.MethodPost, "/mcp", initializing, "Origin", "https://desk.example", "Host", "desk.example",
		"Sec-Fetch-Site", "cross-site", "Accept", "application/json, text/event-stream")
}

const initializing = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
	`"clientInfo":{"name":"page","version":"1"}}}`

func TestHTTPStatusesFollowTheErrors(t *testing.T) { // records §2, mail §2.1 and §13
	t.Parallel()
	h := newHome(t)
	w := h.listen()
	w.post("/v1/projects/*/records/create_project", fields{"id": "shop", "name": "Shop"})
	records := "/v1/projects/shop/records/"
	w.post(records+"create_record", fields{"type": "q", "title": "t", "summary": "", "body": "", "session_id": "one"})
	long := `{"query":"` + strings.Repeat("x", 16<<20) + `"}`
	for _, c := range []struct {
		status             int
		code               string
		method, path, body string
		headers            []string
	}{
		{400, "INVALID_ARGUMENT", "POST", records + "create_record", `{}`, nil},
		{400, "INVALID_ARGUMENT", "POST", records + "create_record", ``, nil},
		{400, "INVALID_ARGUMENT", "POST", records + "create_record", `[1]`, nil},
		{400, "INVALID_ARGUMENT", "POST", records + "create_record", `null x`, nil},
		{400, "INVALID_ARGUMENT", "POST", records + "create_record", `{"type":`, nil},
		{400, "INVALID_ARGUMENT", "POST", records + "list_records", `{"project_id":"other"}`, nil},
		{400, "INVALID_ARGUMENT", "GET", records + "list_records?project_id=other", ``, nil},
		{400, "INVALID_ARGUMENT", "GET", records + "list_records?depth=deep", ``, nil},
		{400, "INVALID_ARGUMENT", "GET", records + "list_records?depth=1&depth=2", ``, nil},
		{400, "INVALID_ARGUMENT", "GET", records + "list_records?states=%ff", ``, nil},
		{400, "INVALID_ARGUMENT", "GET", records + "list_records?a=%zz", ``, nil},
		{400, "INVALID_ARGUMENT", "GET", "/v1/projects/a%FF/records/list_records", ``, nil},
		{400, "invalid_argument", "GET", "/v1/projects/shop/observations/search", ``, nil},
		{404, "RECORD_NOT_FOUND", "GET", records + "get_record_ref?id=R9", ``, nil},
		{404, "PROJECT_NOT_FOUND", "GET", "/v1/projects/nowhere/records/list_records", ``, nil},
		{404, "PROJECT_NOT_FOUND", "GET", "/v1/projects/a%2Fb/records/list_records", ``, nil},
		{404, "SESSION_NOT_FOUND", "POST", records + "save_session", `{"session_id":"none"}`, nil},
		{404, "not_found", "POST", "/v1/projects/shop/records/nothing", `{}`, nil},
		{404, "not_found", "POST", "/v1/projects/shop/observations/create_record", `{}`, nil},
		{404, "not_found", "GET", "/v1/projects//records/list_records", ``, nil},
		{404, "not_found", "GET", "/v1/projects/shop/records/list_records/", ``, nil},
		{404, "not_found", "GET", "/v1/projects/a/b/records/list_records", ``, nil},
		{404, "not_found", "GET", "/", ``, nil},
		{404, "not_found", "GET", "/mcp/more", ``, nil},
		{404, "not_found", "GET", "/health/", ``, nil},
		{405, "method_not_allowed", "GET", records + "create_record", ``, nil},
		{405, "method_not_allowed", "DELETE", records + "list_records", ``, nil},
		{405, "method_not_allowed", "POST", "/v1/tools", `{}`, nil},
		{405, "method_not_allowed", "POST", "/metrics", `{}`, nil},
		{405, "method_not_allowed", "POST", "/health", `{}`, nil},
		{409, "NOT_ACTIVATED", "POST", records + "update_record", `{"id":"R1","title":"x","session_id":"two"}`, nil},
		{409, "PARENT_NOT_ACTIVATED", "POST", records + "create_record", `{"parent_id":"R1","type":"q","title":"x","summary":"","body":"","session_id":"two"}`, nil},
		{409, "INVALID_TRANSITION", "POST", records + "transition", `{"id":"R1","to_state":"OPEN","session_id":"one"}`, nil},
		{409, "ALREADY_EXISTS", "POST", records + "create_project", `{"name":"again"}`, nil},
		{413, "body_too_large", "POST", records + "search_records", long, nil},
		{413, "body_too_large", "POST", "/mcp", long, nil},
		{415, "unsupported_media_type", "POST", records + "list_records", `{}`, []string{"Content-Type", "", "Content-Type", "text/plain"}},
	} {
		r := w.wants(c.status, c.code, c.method, c.path, c.body, c.headers...)
		if c.status == http.StatusMethodNotAllowed && r.header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
	}
	if r := w.wants(http.StatusOK, "", http.MethodHead, records+"list_records", ""); r.body != "" {
		t.Errorf("HEAD: %s", r.body)
	}
	h.wantRows(`SELECT count(*) FROM records`, "1")
	h.check()
}

func TestADamagedStoreIsToldByHealthAndStatuses(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("t1", "make"))
	if err := os.WriteFile(h.db(), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	w := h.listenUntil()
	var health struct{ Status, Cause, Version, Timestamp string }
	r := w.wants(http.StatusOK, "", http.MethodGet, "/health", "", "Authorization", "")
	if err := json.Unmarshal([]byte(r.body), &health); err != nil || health.Status != "unhealthy" || health.Cause == "" || strings.Contains(r.body, h.dir) {
		t.Errorf("health: %s, %v", r.body, err)
	}
	if r := w.wants(http.StatusServiceUnavailable, "STORAGE_UNAVAILABLE", http.MethodGet, "/v1/projects/x/records/list_records", ""); r.header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %v", r.header)
	}
	w.wants(http.StatusInternalServerError, "store_corrupt", http.MethodGet, "/v1/projects/x/observations/recent_context", "")
	if w.number("cairn_metrics_failed") != 1 {
		t.Error("the metrics do not say that they are not all")
	}
}

func TestHealthAndMetricsTellTheState(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.listen()
	health := func() (v struct {
		Status, Timestamp, Version string
		Schema                     int
		UptimeS                    float64 `json:"uptime_s"`
	}) {
		t.Helper()
		if err := json.Unmarshal([]byte(w.do(http.MethodGet, "/health", "", "Authorization", "").body), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := health(); v.Status != "healthy" || v.Schema != 0 || v.Version == "" || v.UptimeS <= 0 {
		t.Errorf("without a store: %+v", v)
	}
	if _, err := os.Stat(h.db()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking made a store: %v", err)
	}
	h.worked()
	if v := health(); v.Status != "healthy" || fmt.Sprint(v.Schema) != h.rows(`PRAGMA user_version`)[0] {
		t.Errorf("with a store: %+v", v)
	}
	c := w.connect("/mcp", "", nil)
	c.rows("search", fields{"query": "refund"})
	c.refuses("search", fields{}, "missing")
	w.wants(http.StatusOK, "", http.MethodGet, "/v1/projects/*/observations/search?query=refund", "")
	w.wants(http.StatusNotFound, "", http.MethodGet, "/v1/projects/shop/records/get_record_ref?id=R1", "")
	for name, want := range map[string]int{
		`cairn_tool_calls_total{tool="search",result="ok"}`:                2,
		`cairn_tool_calls_total{tool="search",result="invalid"}`:           1,
		`cairn_tool_calls_total{tool="get_record_ref",result="not_found"}`: 1,
		`cairn_tool_seconds_count{tool="search"}`:                          3,
		`cairn_tool_seconds_bucket{tool="search",le="+Inf"}`:               3,
		`cairn_http_responses_total{status="404"}`:                         1,
		`cairn_store_observations`:                                         10,
		`cairn_store_projects`:                                             2,
		`cairn_http_running_calls`:                                         0,
		`cairn_metrics_failed`:                                             0,
	} {
		if got := w.number(name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if w.number(`cairn_store_size_bytes{file="database"}`) < 4096 || w.number("cairn_heap_bytes") <= 0 {
		t.Errorf("metrics:\n%s", w.do(http.MethodGet, "/metrics", "").body)
	}
}
