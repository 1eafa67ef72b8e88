package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// secret creates a token for the memories of serve --http.
func (h *home) secret(args ...string) (id, bearer string) {
	h.t.Helper()
	var made struct{ ID, Token string }
	if err := json.Unmarshal([]byte(h.cairn(append([]string{"token", "create", "--json"}, args...)...)), &made); err != nil {
		h.t.Fatal(err)
	}
	return made.ID, "Bearer " + made.Token
}

// text returns a field of a reply that is an object.
func (r reply) text(field string) string {
	var v map[string]any
	if json.Unmarshal([]byte(r.body), &v) != nil {
		return ""
	}
	s, _ := v[field].(string)
	return s
}

func TestMemoriesAreServedToTokensOfTheirLevelUntilTheyAreRevoked(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.listen()
	if r := w.wants(http.StatusOK, "", "GET", "/v1/health", "", "Authorization", ""); !strings.Contains(r.body, `"replication":{"state":"none","pending":0,"failed":0}`) {
		t.Errorf("health: %s", r.body)
	}
	id, write := h.secret("--level", "write", "--name", "laptop")
	_, read := h.secret("--level", "read")
	as := func(token string) []string { return []string{"Authorization", "", "Authorization", token} }
	w.wants(http.StatusForbidden, "forbidden", "POST", "/v1/memories/default/entries?project=shop", `{"rawEntry":"x"}`, as(read)...)
	w.wants(http.StatusOK, "", "GET", "/v1/memories/default/entries?project=shop", "", as(read)...)
	added := w.wants(http.StatusCreated, "", "POST", "/v1/memories/default/entries?project=shop", `{"rawEntry":"kept by HTTP"}`, as(write)...)
	if added.text("status") != "committed" {
		t.Errorf("added: %s", added.body)
	}
	// Entries written over HTTP are visible on the command line and over MCP.
	if got := h.cairn("memory", "list-entries", "--project", "shop", "--json"); !strings.Contains(got, "kept by HTTP") {
		t.Errorf("list-entries: %s", got)
	}
	found := w.post("/v1/projects/shop/memories/search_memories", fields{"memory_id": "default", "query": "kept"})
	if !strings.Contains(found.body, added.text("entryId")) {
		t.Errorf("search_memories: %s", found.body)
	}
	w.wants(http.StatusForbidden, "FORBIDDEN", "POST", "/v1/projects/shop/records/list_records", `{}`, as(write)...)
	w.wants(http.StatusForbidden, "forbidden", "DELETE", "/v1/memories/default/entries/"+added.text("entryId")+"?project=shop", "", as(write)...)
	if out := h.cairn("token", "revoke", id[:6]); out != "revoked "+id+"\n" {
		t.Errorf("revoke: %s", out)
	}
	w.wants(http.StatusUnauthorized, "unauthorized", "GET", "/v1/vaults", "", as(write)...)
	if r := w.wants(http.StatusUnauthorized, "", "GET", "/v1/tools", "", as(write)...); r.body != `{"detail":"Unauthorized"}`+"\n" {
		t.Errorf("elsewhere: %s", r.body)
	}
	if out := h.cairn("token", "list"); !regexp.MustCompile(id + `  write  made [0-9-]+, revoked [0-9-]+  laptop\n`).MatchString(out) {
		t.Errorf("list: %s", out)
	}
	w.wants(http.StatusNoContent, "", "DELETE", "/v1/memories/default/entries/"+added.text("entryId")+"?project=shop", "")
	h.check()
}

// TestAWaitLastsLongerThanARequestMayTakeToCome waits for an unreachable hub, longer than
// the server's read and write timeouts.
func TestAWaitLastsLongerThanARequestMayTakeToCome(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.setting("[http]\nread_s = 1\nwrite_s = 1\n[memory]\ndelete_timeout_ms = 1200\n")
	token := h.cairn("hub", "token", "create", "--user", "new")
	p := h.hub()
	if e := h.run(h.command("hub", "join", p.url), []byte(token)); e.code != 0 {
		t.Fatal(e.stderr)
	}
	w := h.listenUntil()
	first := w.wants(http.StatusAccepted, "", "POST", "/v1/memories/default/entries?project=shop", `{"rawEntry":"one"}`)
	w.wants(http.StatusOK, "", "POST", "/v1/memories/default:await_consistency?project=shop", `{"timeout_ms":20000}`)
	r := w.wants(http.StatusNotFound, "already_committed", "GET", "/v1/memories/default/inflight/"+first.text("localId")+"?project=shop", "")
	var e struct {
		Error struct{ Details struct{ EntryID string } }
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Error.Details.EntryID == "" {
		t.Fatalf("%s, %v", r.body, err)
	}
	p.stop()
	second := w.wants(http.StatusAccepted, "", "POST", "/v1/memories/default/entries?project=shop", `{"rawEntry":"two"}`)
	w.wants(http.StatusOK, "", "GET", "/v1/memories/default/inflight/"+second.text("localId")+"?project=shop", "")
	w.wants(http.StatusGatewayTimeout, "await_timeout", "POST", "/v1/memories/default:await_consistency?project=shop", `{"timeout_ms":1300}`)
	r = w.wants(http.StatusServiceUnavailable, "hub_unavailable", "DELETE", "/v1/memories/default/entries/"+e.Error.Details.EntryID+"?project=shop", "")
	if r.header.Get("Retry-After") == "" {
		t.Errorf("%v", r.header)
	}
	w.wants(http.StatusOK, "", "GET", "/v1/memories/default/entries/"+e.Error.Details.EntryID+"?project=shop", "")
	if n := w.number("cairn_memory_pending_rows"); n != 1 {
		t.Errorf("%d rows are pending", n)
	}
	if n := w.number("cairn_memory_sync_latency_seconds_count"); n != 1 {
		t.Errorf("%d entries were confirmed", n)
	}
	w.stop()
}
