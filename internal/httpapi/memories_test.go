package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn"
	"cairn/internal/mcp"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// desk is a server with a temporary store that contains a vault and a memory.
type desk struct {
	testing.TB
	*Server
	cairn         *cairn.Cairn
	dir           string
	log           *bytes.Buffer
	vault, memory string
}

// newDesk creates a desk. setting contains settings by their keys.
func newDesk(t testing.TB, setting map[string]string) *desk {
	t.Helper()
	d := &desk{TB: t, dir: filepath.Join(t.TempDir(), "data"), log: new(bytes.Buffer)}
	var err error
	d.cairn, err = cairn.Open(cairn.Config{Dir: d.dir, Role: store.Server, Setting: func(key string) string { return setting[key] }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.cairn.Close(); err != nil {
			t.Error(err)
		}
	})
	tools := mcp.MemoryTools(d.cairn.Memories(), "")
	inner, err := mcp.NewServer(mcp.Config{Tools: append(tools, kinds(told))})
	if err != nil {
		t.Fatal(err)
	}
	d.Server, err = New(Config{
		MCP: inner, Meter: new(ToolMetrics), Log: slog.New(slog.NewTextHandler(d.log, nil)), Cairn: d.cairn,
		Toolsets: []Toolset{{Name: "set", Project: []string{"project"}, Tools: []mcp.Tool{kinds(told)}}, {Name: "memories", Project: []string{"project"}, Tools: tools}},
		Token:    func() (string, error) { return "open", nil },
		Bearer:   func(token string) (mcp.Bearer, bool, error) { return FindToken(d.dir, token, time.Now()) },
		Health: func(ctx context.Context) (h Health) {
			h.Hub, h.Replication, h.Err = d.cairn.Replication().Health(ctx, false)
			return h
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.vault = d.made("POST", "/v1/vaults", `{"title":"v"}`, "vaultId")
	d.memory = d.made("POST", "/v1/vaults/"+d.vault+"/memories", `{"title":"m"}`, "memoryId")
	return d
}

// send sends a request with the owner's token. headers are alternating names and values. A
// repeated name adds another value.
func (d *desk) send(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, strings.NewReplacer("{v}", d.vault, "{m}", d.memory).Replace(path), strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer open")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Authorization" {
			r.Header.Del(headers[i])
		}
		if r.Header.Add(headers[i], headers[i+1]); headers[i+1] == "" && headers[i] == "Authorization" {
			r.Header.Del(headers[i])
		}
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

// wants sends a request and checks the status of the response and, for an error, the code.
func (d *desk) wants(status int, code, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	d.Helper()
	w := d.send(method, path, body, headers...)
	got := ""
	if w.Code >= 400 {
		got = codeOf(w)
	}
	if w.Code != status || got != code {
		d.Errorf("%s %s %.200q %q: %d %s; want %d %s", method, path, body, headers, w.Code, w.Body, status, code)
	}
	return w
}

// codeOf returns the code of an error in the envelope. The envelope's details must be an object.
func codeOf(w *httptest.ResponseRecorder) string {
	var e struct {
		Error struct {
			Code, Message string
			Details       map[string]any
			Hint          *string `json:"recovery_hint"`
		}
	}
	if json.Unmarshal(w.Body.Bytes(), &e) != nil || e.Error.Message == "" || e.Error.Details == nil || e.Error.Hint == nil {
		return "no envelope: " + w.Body.String()
	}
	return e.Error.Code
}

// detail returns a detail of an error, "" if it is missing or not a text.
func detail(w *httptest.ResponseRecorder, name string) string {
	var e struct {
		Error struct{ Details map[string]any }
	}
	_ = json.Unmarshal(w.Body.Bytes(), &e)
	text, _ := e.Error.Details[name].(string)
	return text
}

// made sends a request and returns one field of the created object.
func (d *desk) made(method, path, body, field string, headers ...string) string {
	d.Helper()
	w := d.send(method, path, body, headers...)
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code >= 300 {
		d.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	text, _ := v[field].(string)
	return text
}

// joined connects the device's own user to a hub that does not exist.
func (d *desk) joined() *desk {
	d.Helper()
	err := d.cairn.Memories().Write(d.Context(), memory.Caller{}, func(ctx context.Context, b *memories.Service, c memory.Caller) error {
		me, err := b.Whoami(ctx, c)
		if err == nil && b.Exists() {
			err = b.Join(ctx, me.UserID, "http://127.0.0.1:9", rules.NewID(), true)
		}
		return err
	})
	if err != nil {
		d.Fatal(err)
	}
	return d
}

func (d *desk) me() string {
	d.Helper()
	var me memory.User
	err := d.cairn.Memories().Read(d.Context(), memory.Caller{}, func(ctx context.Context, b *memories.Service, c memory.Caller) (err error) {
		me, err = b.Whoami(ctx, c)
		return err
	})
	if err != nil {
		d.Fatal(err)
	}
	return me.UserID
}

const absent = "00000000-0000-4000-8000-000000000000"

func TestEveryRouteOfMemoriesAnswers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	first := d.made("POST", "/v1/memories/{m}/entries", `{"rawEntry":"one","summary":"s","tags":{"k":"v"},"metadata":{"a":[1]}}`, "entryId")
	second := d.made("POST", "/v1/memories/{m}/entries", `{"rawEntry":"two"}`, "entryId")
	session := rules.NewID()
	for _, c := range []struct {
		status       int
		method, path string
		body, want   string
		headers      []string
	}{
		{200, "GET", "/v1/health", ``, `"status":"healthy"`, []string{"Authorization", ""}},
		{200, "GET", "/v1/health", ``, `"hub":"","replication":{"state":"none","pending":0,"failed":0}`, nil},
		{200, "GET", "/v1/vaults", ``, `"count":1`, nil},
		{200, "GET", "/v1/vaults/{v}", ``, `"title":"v"`, nil},
		{200, "GET", "/v1/vaults/" + strings.ToUpper(d.vault), ``, `"title":"v"`, nil},
		{201, "POST", "/v1/vaults", `{"title":"w","description":null}`, `"description":""`, nil},
		{200, "GET", "/v1/vaults/{v}/memories", ``, `"memories":[{`, nil},
		{201, "POST", "/v1/vaults/{v}/memories", `{"title":"code","memoryType":"code","description":"d"}`, `"memoryType":"code"`, nil},
		{200, "GET", "/v1/memories/{m}", ``, `"memoryType":"chat"`, nil},
		{201, "POST", "/v1/memories/{m}/entries", `{"rawEntry":"three","creationTime":"1999-01-01T00:00:00Z","sessionId":"` + session + `"}`, `"status":"committed"`, nil},
		{200, "GET", "/v1/memories/{m}/entries", ``, `"count":3,"applied_limit":25,`, nil},
		{200, "GET", "/v1/memories/{m}/entries?limit=1", ``, `"count":1,"applied_limit":1,`, nil},
		{200, "GET", "/v1/memories/{m}/entries?tag=k:v", ``, `"count":1,`, nil},
		{200, "GET", "/v1/memories/{m}/entries?tag=k:v&tag=k:w", ``, `"entries":[],"count":0,"applied_limit":25,"next_before":null,"next_after":null`, nil},
		{200, "GET", "/v1/memories/{m}/entries?session_id=" + session, ``, `"count":1,`, nil},
		{200, "GET", "/v1/memories/{m}/entries?before=" + second, ``, `"count":1,`, nil},
		{200, "GET", "/v1/memories/{m}/entries?after=" + first + "&limit=1", ``, `"rawEntry":"two"`, nil},
		{200, "GET", "/v1/memories/{m}/entries/" + first, ``, `"metadata":{"a":[1]}`, nil},
		{200, "PATCH", "/v1/memories/{m}/entries/" + first, `{"summary":"t"}`, `"summary":"t","tags":{"k":"v"}`, nil},
		{200, "PATCH", "/v1/memories/{m}/entries/" + first + "/tags", `{"tags":{"l":"w"}}`, `"tags":{"l":"w"}`, nil},
		{200, "POST", "/v1/memories/{m}/entries/" + first + ":correct", `{"correctedEntryId":"` + second + `","reason":"r"}`, `"correctionReason":"r"`, nil},
		{200, "GET", "/v1/memories/{m}/inflight", ``, `{"entries":[],"count":0,"applied_limit":25}`, nil},
		{200, "GET", "/v1/memories/{m}/inflight?limit=50", ``, `"applied_limit":50`, nil},
		{201, "PUT", "/v1/memories/{m}/context", `{"session_id":"` + session + `","markdown":"# c"}`, `"synced":true`, nil},
		{200, "GET", "/v1/memories/{m}/context", ``, `"markdown":"# c"`, nil},
		{200, "GET", "/memories/{m}/context", ``, `"markdown":"# c"`, nil},
		{201, "PUT", "/memories/{m}/context?session_id=" + session, "# d\r\n", `"memory_id"`, []string{"Content-Type", "text/plain; charset=UTF-8"}},
		{201, "PUT", "/memories/{m}/context?session_id=" + session, "# e\n", `"updated_at"`, nil},
		{201, "PUT", "/memories/{m}/context", `{"session_id":"` + session + `","content":"# f","markdown":"# f"}`, `"session_id":"` + session, []string{"If-Match", "old"}},
		{200, "GET", "/v1/memories/{m}/top", ``, `"applied_limit":10`, nil},
		{200, "GET", "/v1/memories/{m}/top?k=99", ``, `"applied_limit":50`, nil},
		{200, "GET", "/v1/memories/{m}/top?k=1&query=two", ``, `"mode":"lexical"`, nil},
		{200, "POST", "/v1/memories/{m}:await_consistency", `{"timeout_ms":0}`, `{"status":"consistent"}`, nil},
		{200, "POST", "/v1/memories/{m}:await_consistency", ``, `{"status":"consistent"}`, nil},
		{200, "POST", "/v1/memories/" + absent + ":await_consistency", ``, `{"status":"consistent"}`, nil},
		{200, "POST", "/v1/memories/{m}:await_commit", `{}`, `{"status":"consistent"}`, nil},
		{200, "POST", "/v1/search", `{"memoryId":"{m}","query":"two"}`, `"rawEntry":"two"`, nil},
		{200, "POST", "/v1/search", `{"memoryId":"{m}","query":"two","topK":"1","mode":"lexical","tags":{"l":"x"}}`, `"entries":[],"count":0`, nil},
		{200, "GET", "/v1/prompts/chat", ``, `"version":"v1"`, nil},
		{200, "GET", "/v1/prompts/code", ``, `"source":"default"`, nil},
		{200, "GET", "/v1/memories/{m}/export?limit=1", ``, `"rawEntry":"one"`, nil},
		{200, "POST", "/v1/memories/{m}/import", `{"rawEntry":"four"}`, `{"added":1,"known":0,"refused":[]}`, []string{"Content-Type", "application/x-ndjson"}},
		{200, "POST", "/v1/memories/{m}/import", `{"rawEntry":"four"}`, `{"added":0,"known":1,"refused":[]}`, nil},
		{200, "GET", "/v1/replication", ``, `"state":"none"`, nil},
		{200, "POST", "/v1/replication:pause", ``, `{"paused":true}`, nil},
		{200, "POST", "/v1/replication:resume", `{}`, `{"paused":false}`, nil},
		{200, "POST", "/v1/replication:retry", ``, `{"changes":0}`, nil},
		{200, "POST", "/v1/replication:discard", `{"all":true}`, `{"changes":0}`, nil},
		{204, "POST", "/v1/memories/{m}/entries/" + first + ":delete", ``, ``, nil},
		{204, "POST", "/v1/memories/{m}/entries/" + first + ":delete", `{}`, ``, nil},
		{204, "DELETE", "/v1/memories/{m}/entries/" + first, ``, ``, nil},
		{204, "DELETE", "/v1/memories/{m}/entries/" + absent, ``, ``, nil},
		{204, "DELETE", "/v1/memories/{m}/entries/pending-7", ``, ``, nil},
		{204, "DELETE", "/v1/memories/{m}", ``, ``, nil},
	} {
		w := d.wants(c.status, "", c.method, c.path, strings.ReplaceAll(c.body, "{m}", d.memory), c.headers...)
		if !strings.Contains(w.Body.String(), c.want) || c.status == http.StatusNoContent && w.Body.Len() > 0 {
			t.Errorf("%s %s: %s; want %s", c.method, c.path, w.Body, c.want)
		}
		if w.Header().Get("Request-Id") == "" || !isTraceparent(w.Header().Get("Traceparent")) {
			t.Errorf("%s %s: %v", c.method, c.path, w.Header())
		}
	}
	if got := strings.Count(d.log.String(), "deprecated"); got != 1 {
		t.Errorf("await_commit is logged %d times as deprecated", got)
	}
}
