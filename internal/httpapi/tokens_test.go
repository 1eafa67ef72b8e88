package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

func TestTokensAreKeptAsHashesAndEndAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	now := time.Now()
	if list, err := Tokens(dir); err != nil || len(list) != 0 || list == nil {
		t.Errorf("before: %v, %v", list, err)
	}
	made, secret, err := CreateToken(dir, TokenArgs{Name: "dash", Level: "read", Expires: time.Hour}, now)
	_, other, err2 := CreateToken(dir, TokenArgs{UserID: strings.ToUpper(absent)}, now.Add(time.Second))
	if err != nil || err2 != nil || secret == other || len(secret) != 43 {
		t.Fatalf("%v, %v", err, err2)
	}
	for token, want := range map[string]mcp.Bearer{secret: {Level: memory.Read}, other: {User: absent, Level: memory.Admin}} {
		if who, ok, err := FindToken(dir, token, now); !ok || err != nil || who != want {
			t.Errorf("%+v %v %v; want %+v", who, ok, err, want)
		}
	}
	for _, wrong := range []string{"", secret[:42], secret + "x", strings.ToUpper(secret), made.ID, hashOf(secret), "../" + hashOf(secret)} {
		if _, ok, err := FindToken(dir, wrong, now); ok || err != nil {
			t.Errorf("%q: %v, %v", wrong, ok, err)
		}
	}
	if _, ok, _ := FindToken(dir, secret, now.Add(time.Hour)); ok {
		t.Error("an expired token counts")
	}
	files, err := os.ReadDir(tokensDir(dir))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		info, err := f.Info()
		data, rerr := os.ReadFile(filepath.Join(tokensDir(dir), f.Name()))
		if err != nil || rerr != nil || info.Mode().Perm() != 0o600 || bytes.Contains(data, []byte(secret)) || bytes.Contains(data, []byte(other)) {
			t.Errorf("%s: %v", f.Name(), info.Mode())
		}
	}
	if _, err := RevokeToken(dir, "", now); !fault.HasCode(err, "not_found") {
		t.Errorf("revoking nothing: %v", err)
	}
	if _, err := RevokeToken(dir, "zz", now); !fault.HasCode(err, "not_found") {
		t.Errorf("revoking nobody: %v", err)
	}
	for range 2 {
		if gone, err := RevokeToken(dir, made.ID[:6], now); err != nil || gone.Revoked.IsZero() || gone.ID != made.ID {
			t.Errorf("%+v, %v", gone, err)
		}
	}
	if _, ok, _ := FindToken(dir, secret, now); ok {
		t.Error("a revoked token counts")
	}
	list, err := Tokens(dir)
	if err != nil || len(list) != 2 || list[0].Name != "dash" || list[0].Revoked.IsZero() || !list[1].Revoked.IsZero() {
		t.Errorf("%+v, %v", list, err)
	}
	if err := os.WriteFile(filepath.Join(tokensDir(dir), hashOf("x")), []byte(`{"level":"root"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := FindToken(dir, "x", now); ok {
		t.Error("a level that is none counts")
	}
	for _, a := range []TokenArgs{{Level: "root"}, {Expires: -1}, {Name: strings.Repeat("n", 65)}, {Name: "a\nb"}, {Name: "\xff"}, {UserID: "me"}} {
		if _, _, err := CreateToken(dir, a, now); !fault.HasCode(err, "usage") {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

// as creates a token of a level and returns the header value for it.
func (d *desk) as(level string) (bearer string) {
	d.Helper()
	_, secret, err := CreateToken(d.dir, TokenArgs{Level: level}, time.Now())
	if err != nil {
		d.Fatal(err)
	}
	return "Bearer " + secret
}

func TestLevelsDecideWhatATokenMayDo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	e := d.made("POST", "/v1/memories/{m}/entries", `{"rawEntry":"one"}`, "entryId")
	tokens := map[string]string{"read": d.as("read"), "write": d.as("write"), "admin": d.as("admin")}
	levels := []string{"read", "write", "admin"}
	for _, c := range []struct{ from, method, path, body string }{
		{"read", "GET", "/v1/vaults", ``},
		{"read", "GET", "/v1/memories/{m}/entries", ``},
		{"read", "GET", "/v1/memories/{m}/inflight", ``},
		{"read", "POST", "/v1/search", `{"memoryId":"{m}","query":"one"}`},
		{"read", "POST", "/v1/memories/{m}:await_consistency", `{"timeout_ms":0}`},
		{"read", "GET", "/v1/memories/{m}/export", ``},
		{"read", "GET", "/v1/replication", ``},
		{"read", "GET", "/v1/prompts/chat", ``},
		{"read", "GET", "/v1/tools", ``},
		{"read", "GET", "/metrics", ``},
		{"read", "GET", "/v1/projects/*/memories/list_vaults", ``},
		{"write", "POST", "/v1/vaults", `{"title":"n-{level}"}`},
		{"write", "POST", "/v1/vaults/{v}/memories", `{"title":"n-{level}"}`},
		{"write", "POST", "/v1/memories/{m}/entries", `{"rawEntry":"x"}`},
		{"write", "POST", "/v1/memories/default/entries?project=shop", `{"rawEntry":"x"}`},
		{"write", "PATCH", "/v1/memories/{m}/entries/{e}", `{"summary":"x"}`},
		{"write", "PUT", "/v1/memories/{m}/context", `{"session_id":"{e}","markdown":"x"}`},
		{"write", "POST", "/v1/projects/*/memories/add_entry", `{"memory_id":"{m}","raw_entry":"x","summary":"x"}`},
		{"write", "POST", "/v1/projects/*/memories/create_vault", `{"title":"p-{level}"}`},
		{"admin", "POST", "/v1/memories/{m}/entries/" + absent + ":delete", ``},
		{"admin", "DELETE", "/v1/memories/{m}/entries/" + absent, ``},
		{"admin", "POST", "/v1/memories/{m}/import", `{"rawEntry":"i"}`},
		{"admin", "POST", "/v1/replication:pause", ``},
		{"admin", "POST", "/v1/replication:resume", ``},
		{"admin", "POST", "/v1/replication:retry", ``},
		{"admin", "POST", "/v1/replication:discard", `{"all":true}`},
		{"admin", "POST", "/v1/projects/*/set/kinds", `{}`}, // with the owner's level and the owner's user
	} {
		for i, level := range levels {
			ids := strings.NewReplacer("{e}", e, "{m}", d.memory, "{level}", level)
			w := d.send(c.method, ids.Replace(c.path), ids.Replace(c.body), "Authorization", tokens[level])
			lower := i < map[string]int{"read": 0, "write": 1, "admin": 2}[c.from]
			if lower && (w.Code != http.StatusForbidden || strings.ToLower(codeOf(w)) != "forbidden") || !lower && w.Code >= 300 {
				t.Errorf("%s %s with %s: %d %s", c.method, c.path, level, w.Code, w.Body)
			}
		}
	}
	// The checks are in this order: existence, level, content.
	d.wants(http.StatusNotFound, "not_found", "DELETE", "/v1/memories/"+absent, ``, "Authorization", tokens["read"])
	d.wants(http.StatusForbidden, "forbidden", "DELETE", "/v1/memories/{m}", ``, "Authorization", tokens["write"])
	d.wants(http.StatusForbidden, "forbidden", "POST", "/v1/memories/{m}/entries", `{"rawEntry":" "}`, "Authorization", tokens["read"])
	d.wants(http.StatusBadRequest, "validation_error", "POST", "/v1/memories/{m}/entries", `{"raw":" "}`, "Authorization", tokens["read"])
	d.wants(http.StatusNotFound, "not_found", "POST", "/v1/memories/{m}/entries?user_id="+absent, `{"rawEntry":" "}`, "Authorization", tokens["read"])
	d.wants(http.StatusForbidden, "forbidden", "POST", "/v1/vaults", `{"title":"v"}`, "Authorization", tokens["read"])

	list, err := Tokens(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		if _, err := RevokeToken(d.dir, one.ID, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for _, header := range []string{tokens["admin"], "", "Bearer", "Bearer ", "Basic open", "open", "Bearer opens"} {
		for _, path := range []string{"/v1/vaults", "/v1/memories/{m}/nowhere", "/memories/{m}/context", "/v1/replication:pause", "/v1/search"} {
			w := d.wants(http.StatusUnauthorized, "unauthorized", "GET", path, ``, "Authorization", header)
			if !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") || w.Header().Get("Request-Id") == "" {
				t.Errorf("%v", w.Header())
			}
		}
	}
	if strings.Contains(d.log.String(), strings.TrimPrefix(tokens["admin"], "Bearer ")) {
		t.Error("a token was logged")
	}
}

// rpc calls a method of MCP without a transport session.
func (d *desk) rpc(bearer, method, params string, headers ...string) string {
	d.Helper()
	headers = append(headers, "Authorization", bearer, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	w := d.send("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, headers...)
	return w.Body.String()
}

func TestLevelsCountOverMCPToo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	read, write := d.as("read"), d.as("write")
	const hello = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`
	// A client cannot set its own identity.
	forged := []string{"Cairn-Bearer", "0 "}
	if got := d.rpc(read, "initialize", hello, forged...); !strings.Contains(got, `"serverInfo"`) {
		t.Fatal(got)
	}
	session := func(bearer string) string {
		w := d.send("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+hello+`}`,
			"Authorization", bearer, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
		return w.Header().Get("Mcp-Session-Id")
	}
	add := `{"name":"add_entry","arguments":{"memory_id":"` + d.memory + `","raw_entry":"x","summary":"x"}}`
	for _, c := range []struct{ bearer, params, want, not string }{
		{read, add, `"isError":true`, `"committed"`},
		{read, add, `forbidden`, ``},
		{read, add, `"status":403`, ``},
		{read, `{"name":"list_vaults","arguments":{}}`, `"count":1`, `isError`},
		{write, add, `committed`, `isError`},
		{write, `{"name":"kinds","arguments":{}}`, `FORBIDDEN`, ``},
		{"Bearer open", `{"name":"kinds","arguments":{}}`, `"content"`, `isError`},
	} {
		id := session(c.bearer)
		d.send("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			"Authorization", c.bearer, "Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Session-Id", id)
		got := strings.ReplaceAll(d.rpc(c.bearer, "tools/call", c.params, append(forged, "Mcp-Session-Id", id)...), `\"`, `"`)
		if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s: %s; want %s", c.params, got, c.want)
		}
	}
	// A session that the owner started gives a lower token no additional rights.
	id := session("Bearer open")
	if got := d.rpc(read, "tools/call", add, "Mcp-Session-Id", id); !strings.Contains(got, `forbidden`) {
		t.Error(got)
	}
	if got := d.rpc(read, "resources/list", `{}`, "Mcp-Session-Id", id); !strings.Contains(got, `"error"`) {
		t.Error(got)
	}
}

func TestCallsCarryTheirKeysAndNamesBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	body := `{"rawEntry":"once","metadata":{"b":1,"a":2}}`
	first := d.wants(http.StatusCreated, "", "POST", "/v1/memories/{m}/entries", body, "Idempotency-Key", "k 1", "Request-Id", "r1", "Traceparent", trace)
	again := d.wants(http.StatusCreated, "", "POST", "/v1/memories/{m}/entries", `{"metadata":{"a":2.0,"b":1}, "rawEntry":"once"}`, "Idempotency-Key", "k 1", "Request-Id", "r2")
	if first.Body.String() != again.Body.String() {
		t.Errorf("%s, then %s", first.Body, again.Body)
	}
	for _, c := range []struct {
		w                    *httptest.ResponseRecorder
		key, replayed, named string
	}{{first, "k 1", "", "r1"}, {again, "k 1", "true", "r2"}} {
		h := c.w.Header()
		if h.Get("Idempotency-Key") != c.key || h.Get("Idempotency-Replayed") != c.replayed || h.Get("Request-Id") != c.named {
			t.Errorf("%v", h)
		}
		for name := range h {
			if strings.HasPrefix(name, "X-") && name != "X-Content-Type-Options" {
				t.Errorf("there is a header %s", name)
			}
		}
	}
	if first.Header().Get("Traceparent") != trace {
		t.Errorf("%v", first.Header())
	}
	d.wants(http.StatusConflict, "idempotency_mismatch", "POST", "/v1/memories/{m}/entries", `{"rawEntry":"twice"}`, "Idempotency-Key", "k 1")
	own := d.wants(http.StatusCreated, "", "POST", "/v1/memories/{m}/entries", `{"rawEntry":"own"}`).Header().Get("Idempotency-Key")
	if _, ok := rules.ParseID(own); !ok {
		t.Errorf("the key made here is %q", own)
	}
	for range 2 { // rejections are stored too
		d.send("POST", "/v1/vaults", `{"title":"v"}`, "Idempotency-Key", "taken")
	}
	if w := d.wants(http.StatusConflict, "already_exists", "POST", "/v1/vaults", `{"title":"v"}`, "Idempotency-Key", "taken"); w.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v", w.Header())
	}
	for _, key := range []string{"", strings.Repeat("k", 65), "é", "a\x7f", "a\tb"} {
		w := d.wants(http.StatusBadRequest, "validation_error", "POST", "/v1/memories/{m}/entries", body, "Idempotency-Key", key)
		if detail(w, "field") != "Idempotency-Key" {
			t.Error(w.Body)
		}
	}
	d.wants(http.StatusBadRequest, "validation_error", "POST", "/v1/memories/{m}/entries", body, "Idempotency-Key", "a", "Idempotency-Key", "b")
	for name, bad := range map[string][]string{
		"Request-Id": {"", strings.Repeat("r", 65), "é", "a\x01"},
		"Traceparent": {"", "01" + trace[2:], strings.ToUpper(trace), trace + "-x", trace[:54], strings.Replace(trace, "0af7", "0ag7", 1),
			"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-" + strings.Repeat("0", 16) + "-01"},
	} {
		for _, value := range bad {
			w := d.wants(http.StatusOK, "", "GET", "/v1/vaults", ``, name, value)
			if got := w.Header().Get(name); got == value || got == "" {
				t.Errorf("%s %q is echoed as %q", name, value, got)
			}
		}
	}
	if d.log.Len() > 0 {
		t.Errorf("logged: %s", d.log)
	}
	var list entries.Listed
	if err := json.Unmarshal(d.send("GET", "/v1/memories/{m}/entries", ``).Body.Bytes(), &list); err != nil || list.Count != 2 {
		t.Errorf("%d entries, %v", list.Count, err)
	}
}

// traces returns the trace ids in the memory's rows, oldest first.
func (d *desk) traces() (out []string) {
	d.Helper()
	s, err := d.cairn.Store(d.Context())
	if err == nil {
		err = s.Read(d.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			out, err = tx.Texts(ctx, `SELECT ifnull(trace_id, '') FROM memory_entries UNION ALL SELECT ifnull(trace_id, '') FROM memory_contexts`)
			return err
		})
	}
	if err != nil {
		d.Fatal(err)
	}
	return out
}

func TestCallsOfToolsCarryTheirKeysAndTracesToo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"
	arguments := func(text, more string) string {
		return `{"memory_id":"` + d.memory + `","raw_entry":"` + text + `","summary":"s"` + more + `}`
	}
	const path = "/v1/projects/shop/memories/add_entry"
	for i, replayed := range []string{"", "true"} {
		w := d.wants(http.StatusOK, "", "POST", path, arguments("json", ""), "Idempotency-Key", "k 1", "Traceparent", trace+"1")
		if h := w.Header(); h.Get("Idempotency-Key") != "k 1" || h.Get("Idempotency-Replayed") != replayed {
			t.Errorf("%d: %v", i, h)
		}
	}
	w := d.wants(http.StatusConflict, "idempotency_mismatch", "POST", path, arguments("other", ""), "Idempotency-Key", "k 1")
	if w.Header().Get("Idempotency-Key") != "k 1" {
		t.Errorf("%v", w.Header())
	}
	w = d.wants(http.StatusOK, "", "POST", path, arguments("json", `,"idempotency_key":"k 2"`), "Idempotency-Key", "k 1", "Traceparent", trace+"2")
	if w.Header().Get("Idempotency-Key") != "k 2" { // the argument of the call takes precedence
		t.Errorf("%v", w.Header())
	}
	d.wants(http.StatusBadRequest, "validation_error", "POST", path, arguments("json", ""), "Idempotency-Key", "")

	const meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	call := func(tool, arguments string, headers ...string) string {
		t.Helper()
		got := d.rpc("Bearer open", "tools/call", `{"name":"`+tool+`","arguments":`+arguments+meta+`}`,
			append(headers, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool)...)
		if !strings.Contains(got, `"structuredContent"`) {
			t.Fatal(got)
		}
		return got
	}
	for _, want := range []string{`"cairn/idempotency-key":"k 3",`, `"cairn/idempotency-key":"k 3","cairn/idempotency-replayed":true`} {
		if got := call("add_entry", arguments("mcp", `,"idempotency_key":"k 3"`), "Traceparent", trace+"3"); !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	call("update_context", `{"memory_id":"`+d.memory+`","session_id":"`+absent+`","markdown":"x"}`, "Traceparent", trace+"4")
	call("add_entry", arguments("unsound", ""), "Traceparent", "x")
	if got := call("list_vaults", `{}`); strings.Contains(got, "idempotency") {
		t.Errorf("what only reads has a key: %s", got)
	}
	got := d.traces()
	if made := got[3]; !isTraceparent(made) {
		t.Errorf("the trace made here is %q", made)
	}
	if want := []string{trace + "1", trace + "2", trace + "3", got[3], trace + "4"}; !slices.Equal(got, want) {
		t.Errorf("the rows have %q, not %q", got, want)
	}
}
