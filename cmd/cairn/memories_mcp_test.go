package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// refusal is the error of a memory tool (memories §9).
type refusal struct {
	Status int
	Error  struct {
		Code, Message string
		Details       map[string]any
		Hint          string `json:"recovery_hint"`
	}
}

// tell calls a tool with arguments as JSON text, which may be invalid.
func (c *client) tell(tool, args string) (*sdk.CallToolResult, string) {
	c.t.Helper()
	r, err := c.CallTool(c.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		c.t.Fatalf("%s %s: %v", tool, args, err)
	}
	if len(r.Content) != 1 {
		c.t.Fatalf("%s %s: %d texts", tool, args, len(r.Content))
	}
	c.checked(tool, r)
	return r, r.Content[0].(*sdk.TextContent).Text
}

// remembered calls a tool and returns its result, which must be equal as text and as
// structured content.
func remembered[T any](c *client, tool, args string) (out T) {
	c.t.Helper()
	r, text := c.tell(tool, args)
	if r.IsError {
		c.t.Fatalf("%s %s: %s", tool, args, text)
	}
	var object any
	if err := json.Unmarshal([]byte(text), &object); err != nil || !reflect.DeepEqual(object, r.StructuredContent) {
		c.t.Errorf("%s: the structured content is not the text: %s", tool, text)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		c.t.Errorf("%s: %s: %v", tool, text, err)
	}
	return out
}

// refused calls a tool that must fail: the envelope must contain the status, and the text
// must begin with the code.
func (c *client) refused(tool, args string, status int, code, field string) refusal {
	c.t.Helper()
	var out refusal
	r, text := c.tell(tool, args)
	data, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil || !r.IsError || out.Status != status || out.Error.Code != code || out.Error.Details == nil || out.Error.Hint == "" || !strings.HasPrefix(text, code+": "+out.Error.Message) {
		c.t.Errorf("%s %s: %s, %s, %v; want %d %s", tool, args, text, data, err, status, code)
	}
	if field != "" && out.Error.Details["field"] != field {
		c.t.Errorf("%s %s: about %v, want %s", tool, args, out.Error.Details["field"], field)
	}
	return out
}

// TestBadArgumentsOfMemoryToolsAreRefusedByField covers the rows of memories §5.3 that an
// MCP client can cause.
func TestBadArgumentsOfMemoryToolsAreRefusedByField(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := h.dial("", nil)
	t.Cleanup(c.leave)
	added := remembered[struct{ EntryID, LocalID, Status string }](c, "add_entry", `{"memory_id":"default","raw_entry":"kept","summary":"s"}`)
	own := remembered[struct{ MemoryID, ActorID string }](c, "get_memory", `{"memory_id":"default"}`)
	if added.Status != "committed" || added.LocalID != "pending-1" {
		t.Errorf("added: %+v", added)
	}
	user, memory := fmt.Sprintf(`"user_id":%q,`, own.ActorID), `"memory_id":"default",`
	const other = "5f0c1d2e-0000-4000-8000-00000000000c"
	const bad = "validation_error"
	for _, row := range []struct{ tool, args, code, field string }{
		{"add_entry", `{` + memory + `"raw_entry":"x","summary":"s","context":"c"}`, bad, "context"},
		{"add_entry", `{` + memory + `"raw_entry":"x","summary":"s","expirationTime":"t"}`, bad, "expirationTime"},
		{"add_entry", `{` + memory + `"raw_entry":"x"}`, bad, "summary"},
		{"add_entry", `{` + memory + `"raw_entry":"x","summary":" "}`, bad, "summary"},
		{"add_entry", `{` + memory + `"raw_entry":" ","summary":"s"}`, bad, "raw_entry"},
		{"add_entry", `{` + memory + `"raw_entry":7,"summary":"s"}`, bad, "raw_entry"},
		{"add_entry", `{` + memory + `"raw_entry":"a\u0000b","summary":"s"}`, bad, "raw_entry"},
		{"add_entry", `{` + memory + `"raw_entry":"\ud800","summary":"s"}`, bad, "raw_entry"},
		{"add_entry", `{"raw_entry":"x","summary":"s"}`, bad, "memory_id"},
		{"add_entry", `{"memory_id":"","raw_entry":"x","summary":"s"}`, bad, "memory_id"},
		{"add_entry", `{"memory_id":"Default","raw_entry":"x","summary":"s"}`, bad, "memory_id"},
		{"add_entry", `{"memory_id":null,"raw_entry":"x","summary":"s"}`, bad, "memory_id"},
		{"add_entry", `{` + memory + `"raw_entry":"x","summary":"s","tags":null}`, bad, "tags"},
		{"add_entry", `{` + memory + `"raw_entry":"x","summary":"s","tags":[]}`, bad, "tags"},
		{"add_entry", `{` + memory + `"raw_entry":"x","summary":"s","tags":"a"}`, bad, "tags"},
		{"add_entry", `{` + memory + `"raw_entry":"x","summary":"s","tags":{"a":1}}`, bad, "tags"},
		{"add_entry", `{` + memory + `"raw_entry":"x","summary":"s","metadata":null}`, bad, "metadata"},
		{"add_entry", `{` + memory + `"raw_entry":"x","summary":"s","metadata":3}`, bad, "metadata"},
		{"add_entry", `{` + memory + `"raw_entry":"x","summary":"s","session_id":"s1"}`, bad, "session_id"},
		{"add_entry", `{` + memory + `"raw_entry":"x","summary":"s","session_id":""}`, bad, "session_id"},
		{"list_entries", `{` + memory + `"limit":2.5}`, bad, "limit"},
		{"list_entries", `{` + memory + `"limit":"abc"}`, bad, "limit"},
		{"list_entries", `{` + memory + `"limit":""}`, bad, "limit"},
		{"list_entries", `{` + memory + `"limit":" 3"}`, bad, "limit"},
		{"list_entries", `{` + memory + `"limit":true}`, bad, "limit"},
		{"list_entries", `{` + memory + `"limit":[1]}`, bad, "limit"},
		{"list_entries", `{` + memory + `"limit":{}}`, bad, "limit"},
		{"list_entries", `{` + memory + `"before":"x"}`, bad, "before"},
		{"list_entries", `{` + memory + `"before":"` + other + `"}`, bad, "before"},
		{"list_entries", `{` + memory + `"before":"2026-01-01T00:00:00Z","after":"2026-01-01T00:00:00Z"}`, bad, ""},
		{"list_entries", `{` + memory + `"user_id":""}`, bad, "user_id"},
		{"list_entries", `{` + memory + `"user_id":"me"}`, bad, "user_id"},
		{"get_entry", `{` + memory + `"entry_id":"e1"}`, bad, "entry_id"},
		{"get_entry", `{` + memory + `"entry_id":""}`, bad, "entry_id"},
		{"get_entry", `{` + memory + `"entry_id":["a"]}`, bad, "entry_id"},
		{"list_inflight_entries", `{` + memory + `"limit":1}`, bad, "user_id"},
		{"list_inflight_entries", `{` + user + `"limit":1}`, bad, "memory_id"},
		{"get_inflight_entry", `{` + user + memory + `"local_id":null}`, bad, "local_id"},
		{"get_inflight_entry", `{` + user + memory + `"local_id":5}`, bad, "local_id"},
		{"update_context", `{` + memory + `"markdown":"m"}`, bad, "session_id"},
		{"update_context", `{` + memory + `"session_id":"` + other + `","markdown":"m","content":"n"}`, bad, "markdown"},
		{"update_context", `{` + memory + `"session_id":"` + other + `","markdown":"  "}`, bad, "markdown"},
		{"update_context", `{` + memory + `"session_id":"` + other + `","markdown":"a\u0001"}`, bad, "markdown"},
		{"update_context", `{` + memory + `"session_id":"` + other + `","markdown":"a\ufdd0"}`, bad, "markdown"},
		{"await_consistency", `{` + memory + `"timeout_ms":-1}`, bad, "timeout_ms"},
		{"await_consistency", `{` + memory + `"timeout_ms":"1s"}`, bad, "timeout_ms"},
		{"search_memories", `{` + memory + `"query":" "}`, bad, "query"},
		{"search_memories", `{` + memory + `"query":"x","mode":"magic"}`, bad, "mode"},
		{"search_memories", `{` + memory + `"query":"x","top_k":"many"}`, bad, "top_k"},
		{"search_memories", `{` + memory + `"query":"x","tags":{"a":1}}`, bad, "tags"},
		{"search_memories", `{` + memory + `"query":"x","session_id":"s1"}`, bad, "session_id"},
		{"get_top_k", `{` + memory + `"k":false}`, bad, "k"},
		{"get_top_k", `{` + memory + `"query":" "}`, bad, "query"},
		{"get_default_prompts", `{}`, bad, "memory_type"},
		{"create_vault", `{"title":"a b"}`, bad, "title"},
		{"create_vault", `{"title":"` + strings.Repeat("a", 51) + `"}`, bad, "title"},
		{"list_memories", `{"vault_id":"shop"}`, bad, "vault_id"},
	} {
		c.refused(row.tool, row.args, 400, row.code, row.field)
	}
	for _, local := range []string{"", "pending-0", "pending-01", "Pending-1", "pending-+1", " pending-1", "pending-1 ", "pending-1x", other, "pending-9223372036854775808"} {
		c.refused("get_inflight_entry", `{`+user+memory+`"local_id":"`+local+`"}`, 400, "invalid_local_id", "")
	}
	for _, row := range []struct{ tool, args string }{
		{"list_entries", `{` + memory + `"user_id":"` + other + `"}`},
		{"list_entries", `{"memory_id":"` + other + `"}`},
		{"search_memories", `{"memory_id":"` + other + `","query":"x"}`},
		{"get_top_k", `{"memory_id":"` + other + `"}`},
		{"get_entry", `{` + memory + `"entry_id":"` + other + `"}`},
		{"get_inflight_entry", `{` + user + memory + `"local_id":"pending-2"}`},
		{"list_memories", `{"vault_id":"` + other + `"}`},
		{"create_memory_in_vault", `{"vault_id":"` + other + `","title":"t"}`},
		{"get_context", `{` + memory + `"project":"shop"}`},
	} {
		c.refused(row.tool, row.args, 404, "not_found", "")
	}
	if no := c.refused("get_inflight_entry", `{`+user+memory+`"local_id":"pending-1"}`, 404, "already_committed", ""); no.Error.Details["entryId"] != added.EntryID {
		t.Errorf("already committed: %+v", no)
	}
	if no := c.refused("get_default_prompts", `{"memory_type":"poem"}`, 404, "not_found", ""); !reflect.DeepEqual(no.Error.Details["allowed"], []any{"chat", "code"}) {
		t.Errorf("prompts: %+v", no)
	}
	c.refused("add_entry", `{`+memory+`"summary":"s","raw_entry":"`+strings.Repeat("a", 9001)+`"}`, 413, "entry_too_large", "")
	c.refused("update_context", `{`+memory+`"session_id":"`+other+`","markdown":"`+strings.Repeat("a", 5001)+`"}`, 413, "context_too_large", "")
	if n := remembered[struct{ Count int }](c, "list_entries", `{`+memory+`"limit":50}`).Count; n != 1 {
		t.Errorf("%d entries after all this", n)
	}
}

// TestIntegersOfMemoryToolsAreReadThenClamped covers the second row of memories §5.3.
func TestIntegersOfMemoryToolsAreReadThenClamped(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := h.dial("", nil)
	t.Cleanup(c.leave)
	remembered[any](c, "add_entry", `{"memory_id":"default","raw_entry":"kept","summary":"s"}`)
	for limit, want := range map[string]int{
		`7`: 7, `3.0`: 3, `"7"`: 7, `"-5"`: 25, `0`: 25, `-1`: 25, `51`: 50, `1e30`: 50, `"99999999999999999999999"`: 50, `null`: 25,
	} {
		if got := remembered[struct {
			Applied int `json:"applied_limit"`
		}](c, "list_entries", `{"memory_id":"default","limit":`+limit+`}`).Applied; got != want {
			t.Errorf("limit %s: %d, want %d", limit, got, want)
		}
	}
	for k, want := range map[string]int{`null`: 10, `0`: 10, `"3"`: 3, `51`: 50} {
		if got := remembered[struct {
			Applied int `json:"applied_limit"`
		}](c, "get_top_k", `{"memory_id":"default","k":`+k+`}`).Applied; got != want {
			t.Errorf("k %s: %d, want %d", k, got, want)
		}
	}
}

// TestMemoryToolsAnswerAsTheContractSays covers successful calls (memories §3, §9).
func TestMemoryToolsAnswerAsTheContractSays(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := h.dial("", nil)
	t.Cleanup(c.leave)
	vault := remembered[struct{ VaultID string }](c, "create_vault", `{"title":"work","idempotency_key":"v","request_id":"r"}`)
	if again := remembered[struct{ VaultID string }](c, "create_vault", `{"title":"work","idempotency_key":"v"}`); again != vault {
		t.Errorf("with the same key: %v, %v", vault, again)
	}
	c.refused("create_vault", `{"title":"work"}`, 409, "already_exists", "")
	c.refused("create_vault", `{"title":"play","idempotency_key":"v"}`, 409, "idempotency_mismatch", "")
	m := remembered[struct{ MemoryID, MemoryType string }](c, "create_memory_in_vault", `{"vault_id":"`+vault.VaultID+`","title":"notes"}`)
	if m.MemoryType != "chat" {
		t.Errorf("made: %+v", m)
	}
	of := `{"memory_id":"` + strings.ToUpper(m.MemoryID) + `"`
	remembered[any](c, "add_entry", of+`,"raw_entry":"Ana wants refunds in UTC.","summary":"refunds in UTC","tags":{"topic":"refunds"},"metadata":{"speaker":"Ana"}}`)
	remembered[any](c, "add_entry", of+`,"raw_entry":"Lunch is at noon.","summary":"lunch"}`)
	type found struct {
		Mode    string
		Count   int
		Entries []struct {
			EntryID, RawEntry string
			Score             float64
		}
	}
	for _, tool := range []string{"search_memories", "get_top_k"} {
		got := remembered[found](c, tool, of+`,"query":"refunds of ana"}`)
		if got.Mode != "lexical" || len(got.Entries) == 0 || got.Entries[0].RawEntry != "Ana wants refunds in UTC." || got.Entries[0].Score <= 0 {
			t.Errorf("%s: %+v", tool, got)
		}
	}
	if got := remembered[found](c, "search_memories", of+`,"query":"lunch","tags":{"topic":"refunds"}}`); len(got.Entries) > 1 {
		t.Errorf("with tags: %+v", got)
	}
	if got := remembered[found](c, "get_entries", of+`}`); got.Count != 2 || got.Entries[0].RawEntry != "Lunch is at noon." {
		t.Errorf("get_entries: %+v", got)
	}
	for _, tool := range []string{"update_context", "put_context"} {
		remembered[any](c, tool, of+`,"session_id":"5f0c1d2e-0000-4000-8000-000000000001","content":"# `+tool+`"}`)
	}
	if r, text := c.tell("get_context", of+`}`); text != "# put_context" || r.StructuredContent.(map[string]any)["markdown"] != text {
		t.Errorf("the context: %q, %v", text, r.StructuredContent)
	}
	if r, text := c.tell("await_consistency", of+`}`); text != "consistent" || !reflect.DeepEqual(r.StructuredContent, map[string]any{"status": "consistent"}) {
		t.Errorf("await: %q, %v", text, r.StructuredContent)
	}
	if p := remembered[struct {
		Version, Prompt, Source string
		Rules                   string `json:"context_summary_rules"`
		Templates               map[string]string
	}](c, "get_default_prompts", `{"memory_type":"code"}`); p.Version != "v1" || p.Prompt == "" || p.Source != "default" || p.Rules == "" || len(p.Templates) != 3 {
		t.Errorf("prompts: %+v", p)
	}
	listed, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range listed.Tools {
		reads := tool.Annotations != nil && tool.Annotations.ReadOnlyHint
		switch tool.Name {
		case "get_entries", "put_context":
			t.Errorf("the alias %s is listed", tool.Name)
		case "add_entry", "update_context", "create_vault", "create_memory_in_vault":
			if reads {
				t.Errorf("%s is said to read", tool.Name)
			}
		case "list_vaults", "list_memories", "get_memory", "list_entries", "get_entry", "list_inflight_entries", "get_inflight_entry",
			"get_top_k", "search_memories", "get_default_prompts", "get_context", "await_consistency":
			if !reads {
				t.Errorf("%s is not said to read", tool.Name)
			}
		}
		if tool.Name == "create_memory_in_vault" && !strings.Contains(tool.Description, "consent") {
			t.Errorf("%s asks for no consent: %s", tool.Name, tool.Description)
		}
	}
}
