package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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
	sameWithEachDriver(t)
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
		h.soon("a notice", func() bool { // the stream for notifications may still be opening
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
	sameWithEachDriver(t)
	h := newHome(t)
	w := h.listenUntil()
	old := w.token
	for _, path := range []string{"/mcp", "/api/", "/v1/tools", "/v1/projects/x/records/list_records", "/metrics", "/nowhere"} {
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

	// A new token is valid immediately, and the old token is invalid.
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
	if err := os.Chmod(printed.File, 0o644); err != nil {
		t.Fatal(err)
	}
	if e := h.run(h.command("doctor"), nil); !strings.Contains(e.stdout, "http-token is 644, not 600") {
		t.Errorf("doctor says nothing of a token that others can read: %s", e.stdout)
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

func TestHostAndOriginAreChecked(t *testing.T) { // DNS rebinding, cross-origin pages
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	w := h.listen("--allow-host", "desk.example", "--allow-host", "lab.example:81", "--allow-origin", "https://Desk.example")
	own := strings.TrimPrefix(w.url, "http://")
	if !strings.HasPrefix(own, "127.0.0.1:") {
		t.Errorf("it listens on %s", own)
	}
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

	// A page of a listed origin can be an MCP client, also through a proxy.
	w.wants(http.StatusOK, "", http.MethodPost, "/mcp", initializing, "Origin", "https://desk.example", "Host", "desk.example",
		"Sec-Fetch-Site", "cross-site", "Accept", "application/json, text/event-stream")
}

func TestOtherMachinesAreServedOnlyWhenThatIsMeant(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	w := h.listenAt("0.0.0.0:0", "--allow-remote")
	for host, want := range map[string]int{"localhost": 200, "127.0.0.1": 200, "10.1.2.3": 403, "0.0.0.0": 403, "desk.example": 403} {
		w.wants(want, "", http.MethodGet, "/health", "", "Host", host)
	}
	w.wants(200, "", http.MethodGet, "/v1/tools", "", "Host", "localhost")
	w.stop()
}

const initializing = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
	`"clientInfo":{"name":"page","version":"1"}}}`

func TestHTTPStatusesFollowTheErrors(t *testing.T) { // records §2, mail §2.1 and §13
	t.Parallel()
	sameWithEachDriver(t)
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

// TestAStoreThatCannotBeReadIsToldByHealthAndStatuses makes a store unreadable without
// damage. Servers refuse to start on a damaged store.
func TestAStoreThatCannotBeReadIsToldByHealthAndStatuses(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("t1", "make"))
	db := h.raw()
	h.sqlite(db, "UPDATE store_meta SET value = '4711' WHERE name = 'schema'", "PRAGMA user_version=4711")
	if err := db.Close(); err != nil {
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
	w.wants(http.StatusServiceUnavailable, "store_newer", http.MethodGet, "/v1/projects/x/observations/recent_context", "")
	if w.number("cairn_metrics_failed") != 1 {
		t.Error("the metrics do not say that they are not all")
	}
}

func TestHealthAndMetricsTellTheState(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
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
