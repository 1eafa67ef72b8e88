package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn"
	"cairn/internal/mail"
	"cairn/internal/mcp"
	"cairn/internal/memory"
	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// groups returns all tools of the product for c.
func groups(c *cairn.Cairn) []mcp.Group {
	o := mcp.MailOptions{Keyring: &mail.Keyring{}}
	return []mcp.Group{
		{Name: "recall", Tools: []mcp.Tool{mcp.RecallTool(remembering)}},
		{Name: "observations", Tools: mcp.ObservationTools(echoing())},
		{Name: "records", Tools: append(mcp.RecordTools(c.Records(), "design"), mcp.WhyTool(c.Why, "design"))},
		{Name: "mail", Tools: mcp.MailTools(c.Mail(), o)},
		{Name: "memories", Tools: mcp.MemoryTools(c.Memories(), "")},
	}
}

func toolsOf(all []mcp.Group) (tools []mcp.Tool) {
	for _, g := range all {
		tools = append(tools, g.Tools...)
	}
	return tools
}

// leanOf returns the tools of the lean profile.
func leanOf(all []mcp.Group) []mcp.Tool {
	return mcp.Lean(append(toolsOf(all), mcp.ReachTools(all)...))
}

func TestTheLeanSurfaceIsSmallAndHasAllParts(t *testing.T) {
	t.Parallel()
	all := groups(opened(t))
	whole, err := mcp.Tokens(toolsOf(all))
	if err != nil {
		t.Fatal(err)
	}
	lean := leanOf(all)
	n, err := mcp.Tokens(lean)
	if err != nil || len(lean) > 14 || n > 1200 {
		t.Errorf("%d tools, %d tokens, %v", len(lean), n, err)
	}
	var names []string
	for _, tool := range lean {
		names = append(names, tool.Name)
	}
	for _, want := range []string{
		"recall", "macro_start_session", "send_message", "fetch_inbox", "file_reservation_paths", "release_file_reservations",
		"get_project_overview", "activate", "create_record", "update_record", "add_entry", "find_tool", "call_tool",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s in %v", want, names)
		}
	}
	if again, err := mcp.Tokens(toolsOf(all)); err != nil || again != whole {
		t.Errorf("making the lean surface changed the full one: %d and %d tokens", whole, again)
	}
}

// exchange is one call of a golden script with its response.
type exchange struct {
	script, tool, arguments, answer string
}

// exchanges returns the calls of all golden scripts that match a pattern.
func exchanges(t *testing.T, pattern string) (all []exchange) {
	t.Helper()
	scripts, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%s: no scripts, %v", pattern, err)
	}
	for _, script := range scripts {
		data, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		var asked exchange
		for line := range strings.Lines(string(data)) {
			if text, sent := strings.CutPrefix(line, "> "); sent {
				var m struct {
					Params struct {
						Name      string
						Arguments json.RawMessage
					}
				}
				_ = json.Unmarshal([]byte(text), &m) // some are invalid on purpose
				asked = exchange{script: script, tool: m.Params.Name, arguments: string(m.Params.Arguments)}
			} else if text, ok := strings.CutPrefix(line, "< "); ok && asked.tool != "" {
				asked.answer = text
				all = append(all, asked)
			}
		}
	}
	return all
}

// resultOf returns the structured content of a response, nil for an error.
func (e exchange) resultOf() any {
	var m struct {
		Result struct {
			IsError           bool
			StructuredContent any
		}
	}
	if json.Unmarshal([]byte(e.answer), &m) != nil || m.Result.IsError {
		return nil
	}
	return m.Result.StructuredContent
}

// schemasOf returns the result schemas of a server. They are changed so that no object may
// have undeclared fields.
func schemasOf(t *testing.T, session *sdk.ClientSession) map[string]*jsonschema.Resolved {
	t.Helper()
	all := map[string]*jsonschema.Resolved{}
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		schema := tool.OutputSchema
		if m, _ := schema.(map[string]any); m["type"] != "object" {
			t.Errorf("%s has no schema of its result that is an object: %v", tool.Name, schema)
			continue
		}
		closed(schema)
		data, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
		if all[tool.Name], err = s.Resolve(nil); err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
	}
	return all
}

// closed forbids undeclared fields in all objects of a schema.
func closed(schema any) {
	switch s := schema.(type) {
	case []any:
		for _, v := range s {
			closed(v)
		}
	case map[string]any:
		if _, ok := s["properties"].(map[string]any); ok {
			s["additionalProperties"] = false
		}
		for _, v := range s {
			closed(v)
		}
	}
}

// TestEveryGoldenResultIsAsItsSchemaSays validates all responses that are not errors.
func TestEveryGoldenResultIsAsItsSchemaSays(t *testing.T) {
	t.Parallel()
	schemas := schemasOf(t, connect(t, newServer(t, mcp.Config{Tools: toolsOf(groups(opened(t)))}), "", nil))
	schemas["get_entries"] = schemas["list_entries"]
	checked := map[string]int{}
	for _, pattern := range []string{"*.jsonl", "mail/*.jsonl", "records/*.jsonl", "memories/*.jsonl"} {
		for _, e := range exchanges(t, pattern) {
			result := e.resultOf()
			if result == nil {
				continue
			}
			checked[e.tool]++
			if err := schemas[e.tool].Validate(result); err != nil {
				t.Errorf("%s: %s %s: %v\n%s", e.script, e.tool, e.arguments, err, e.answer)
			}
		}
	}
	if len(checked) < 50 {
		t.Errorf("results of %d tools alone: %v", len(checked), slices.Sorted(maps.Keys(checked)))
	}
}

// TestAnEmptyListIsAsItsSchemaSays validates an empty list with a hint.
func TestAnEmptyListIsAsItsSchemaSays(t *testing.T) {
	t.Parallel()
	o := echoing()
	o.Search = func(context.Context, mcp.SearchArgs) (any, error) { return mcp.Empty{Hint: "Try other words."}, nil }
	session := connect(t, newServer(t, mcp.Config{Tools: mcp.ObservationTools(o)}), "", nil)
	schema := schemasOf(t, session)["search"]
	result, err := call(t, session, "search", map[string]any{"query": "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(result.StructuredContent); err != nil || texts(t, result)[0] != "[]" {
		t.Errorf("%v: %v", result.StructuredContent, err)
	}
	if schema.Validate(map[string]any{"hint": "x"}) == nil || schema.Validate(map[string]any{"result": []any{map[string]any{"id": "one"}}}) == nil {
		t.Error("the schema allows anything")
	}
}

// TestCallToolIsTheToolItself plays all golden scripts against servers with the lean tools,
// each call through call_tool. The responses must equal the golden ones byte by byte.
func TestCallToolIsTheToolItself(t *testing.T) {
	t.Parallel()
	for pattern, settings := range map[string]map[string]string{
		"mail/*.jsonl": {"mail.name_mode": "strict", "mail.max_body_bytes": "2000"}, "records/*.jsonl": nil, "memories/*.jsonl": nil,
	} {
		scripts, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(scripts) == 0 {
			t.Fatalf("%s: no scripts, %v", pattern, err)
		}
		for _, script := range scripts {
			if filepath.Base(script) == "listed.jsonl" {
				continue // the lists of tools differ
			}
			t.Run(script, func(t *testing.T) {
				t.Parallel()
				want, err := os.ReadFile(script)
				if err != nil {
					t.Fatal(err)
				}
				c := opened(t, ticking, with(settings))
				server := newServer(t, mcp.Config{Tools: leanOf(groups(c)), Resources: mcp.MailResources(c.Mail(), mcp.MailOptions{})})
				got := withoutUIDs(play(t, server, throughCallTool(want)))
				gotLines, wantLines := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
				calls := 0
				for i, line := range gotLines {
					if !bytes.HasPrefix(line, []byte("< ")) || !bytes.Contains(wantLines[i-1], []byte(`"tools/call"`)) {
						continue
					}
					if calls++; !bytes.Equal(line, wantLines[i]) {
						t.Errorf("%s\ngot  %s\nwant %s", wantLines[i-1], line, wantLines[i])
					}
				}
				if calls == 0 {
					t.Error("nothing was called")
				}
			})
		}
	}
}

// throughCallTool returns a script whose calls go through call_tool.
func throughCallTool(script []byte) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(string(script)) {
		head, rest, ok := strings.Cut(line, `"method":"tools/call","params":{"name":`)
		if ok && strings.HasPrefix(line, "> ") {
			name, rest, hasArguments := strings.Cut(rest, `,"arguments":`)
			end := len(rest) - len("}}\n")
			if i := strings.LastIndex(rest, `},"_meta":`); i >= 0 {
				end = i + 1
			}
			if !hasArguments {
				out.WriteString(line)
				continue
			}
			line = head + `"method":"tools/call","params":{"name":"call_tool","arguments":{"name":` + name + `,"arguments":` + rest[:end] + "}" + rest[end:]
		}
		out.WriteString(line)
	}
	return out.Bytes()
}

// TestEveryToolIsReached calls every tool by call_tool and by its own name, although it is not
// listed. The metrics must count it under its own name.
func TestEveryToolIsReached(t *testing.T) {
	t.Parallel()
	all := groups(opened(t, ticking))
	var mu sync.Mutex
	seen := map[string]int{}
	note := func(tool string, _ time.Duration, _ error) {
		mu.Lock()
		defer mu.Unlock()
		seen[tool]++
	}
	lean := connect(t, newServer(t, mcp.Config{Tools: leanOf(all), Observe: note}), "", nil)
	full := connect(t, newServer(t, mcp.Config{Tools: toolsOf(all)}), "", nil)
	for _, tool := range toolsOf(all) {
		want := said(t, full, tool.Name, map[string]any{"bogus": 1})
		through := said(t, lean, "call_tool", map[string]any{"name": tool.Name, "arguments": map[string]any{"bogus": 1}})
		direct := said(t, lean, tool.Name, map[string]any{"bogus": 1})
		if tool.Name != "health_check" && (through != want || direct != want) { // its measurements have changed
			t.Errorf("%s\nas itself   %s\ncall_tool   %s\nby its name %s", tool.Name, want, through, direct)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, tool := range toolsOf(all) {
		if seen[tool.Name] != 2 {
			t.Errorf("%s was counted %d times", tool.Name, seen[tool.Name])
		}
	}
	if seen["call_tool"] != 0 {
		t.Error("call_tool was counted beside the tools that it called")
	}
}

// said returns the whole response of a call as JSON, without times and session ids.
func said(t *testing.T, session *sdk.ClientSession, name string, arguments any) string {
	t.Helper()
	result, err := call(t, session, name, arguments)
	data, marshalErr := json.Marshal([]any{result, err})
	if marshalErr != nil {
		t.Fatal(marshalErr)
	}
	return regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+Z|S-[0-9A-Z]{26}`).ReplaceAllString(string(data), "…")
}

func TestCallToolTakesWhatModelsWrite(t *testing.T) {
	t.Parallel()
	all := groups(opened(t))
	session := connect(t, newServer(t, mcp.Config{Tools: leanOf(all)}), "", nil)
	want := said(t, session, "timeline", map[string]any{"anchor": 7})
	for _, arguments := range []string{
		`{"name":"timeline","arguments":{"anchor":7}}`, `{"name":" Timeline ","arguments":{"anchor":7}}`,
		`{"name":"timeline","arguments":"{\"anchor\":7}"}`, `{"name":"timeline","anchor":7}`,
	} {
		if got := said(t, session, "call_tool", json.RawMessage(arguments)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", arguments, got, want)
		}
	}
	for arguments, want := range map[string]string{
		`{}`:                                   `missing required argument "name"`,
		`{"arguments":{}}`:                     `missing required argument "name"`,
		`{"name":7}`:                           `missing required argument "name"`,
		`[]`:                                   `arguments must be an object, not an array`,
		`{"name":"timeline"}`:                  `missing required argument "anchor"`,
		`{"name":"timeline","arguments":[7]}`:  `arguments must be an object, not an array`,
		`{"name":"timeline","arguments":"x"}`:  `arguments must be an object, not a string`,
		`{"name":"timeline","arguments":null}`: `missing required argument "anchor"`,
		`{"name":"call_tool","arguments":{}}`:  `unknown tool "call_tool"`,
		`{"name":"fetch_inbx","arguments":{}}`: `unknown tool "fetch_inbx"`,
	} {
		result, err := call(t, session, "call_tool", json.RawMessage(arguments))
		if err != nil || !result.IsError || texts(t, result)[0] != want {
			t.Errorf("%s: %v %v", arguments, result, err)
		}
	}
	result, err := call(t, session, "call_tool", map[string]any{"name": "fetch_inbx"})
	if err != nil || !strings.HasPrefix(texts(t, result)[1], "similar names are fetch_inbox;") {
		t.Errorf("%v, %v", texts(t, result), err)
	}
}

func TestFindToolFindsByWordsAndNames(t *testing.T) {
	t.Parallel()
	all := groups(opened(t))
	session := connect(t, newServer(t, mcp.Config{Tools: leanOf(all)}), "", nil)
	find := func(query string) mcp.FoundTools {
		t.Helper()
		result, err := call(t, session, "find_tool", map[string]any{"query": query})
		if err != nil || result.IsError {
			t.Fatalf("%s: %v, %v", query, result, err)
		}
		var found mcp.FoundTools
		if err := json.Unmarshal([]byte(texts(t, result)[0]), &found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	for query, want := range map[string]string{
		"lock a file": "file_reservation_paths", "release a lock": "release_file_reservations", "write a message": "send_message",
		"resolve a question": "transition", "who changed this line": "why", "read whole observations": "get_observations",
		"reply to mail": "reply_message", "who is here": "list_agents", "what happened to this file": "file_history",
		"remember a fact": "add_entry", "ask for contact permission": "request_contact", "full text search in mail": "search_messages",
		"compare two versions of a record": "get_record_diff", "replace the context document": "update_context", "commit hook": "install_precommit_guard",
		"force release a stale reservation": "force_release_file_reservation", "get_observations": "get_observations", "timeline": "timeline",
		"is the server healthy": "health_check", "extend my reservation": "renew_file_reservations", "sum up a thread": "summarize_thread",
	} {
		found := find(query)
		if !slices.ContainsFunc(found.Tools, func(f mcp.FoundTool) bool { return f.Name == want }) || len(found.Tools) > 3 {
			t.Errorf("%q finds %v, not %s", query, found.Tools, want)
		}
		for _, f := range found.Tools {
			if f.Description == "" || !json.Valid(f.InputSchema) {
				t.Errorf("%+v", f)
			}
		}
	}
	if found := find("timeline, get_record_ref and why"); len(found.Tools) != 1 || found.Tools[0].Name != "get_record_ref" {
		t.Errorf("names: %+v", found)
	}
	if found := find("timeline why, get_record_ref"); len(found.Tools) != 3 {
		t.Errorf("nothing but names: %+v", found)
	}
	if whole := find("send_message").Tools; !bytes.Contains(whole[0].InputSchema, []byte(`"idempotency_key"`)) {
		t.Errorf("not the complete schema: %s", whole[0].InputSchema)
	}
	for _, query := range []string{"", "xyzzy"} {
		found, names := find(query), 0
		for _, group := range found.Names {
			names += len(group)
		}
		if len(found.Tools) != 0 || names != len(toolsOf(all)) || found.Hint == "" {
			t.Errorf("%q: %+v", query, found)
		}
	}
}

// TestCallToolGivesNobodyMoreThanTheToolItself calls as a bearer who may use only memories.
func TestCallToolGivesNobodyMoreThanTheToolItself(t *testing.T) {
	t.Parallel()
	all := groups(opened(t))
	server := newServer(t, mcp.Config{Tools: leanOf(all)})
	reader := func(*http.Request) mcp.Bearer { return mcp.Bearer{User: "someone", Level: memory.Read} }
	session := connectHTTP(t, serveHTTP(t, server, mcp.HTTPOptions{Bearer: reader}), "", "2025-11-25", nil)
	for name, allowed := range map[string]bool{"list_projects": false, "list_agents": false, "list_vaults": true} {
		result, err := call(t, session, "call_tool", map[string]any{"name": name, "arguments": map[string]any{"project_key": "/srv/x"}})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(texts(t, result), " ")
		if forbidden := strings.Contains(strings.ToLower(text), "this token is for memories only"); forbidden == allowed {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestEveryArgumentIsTold checks that every argument has a type and a description.
func TestEveryArgumentIsTold(t *testing.T) {
	t.Parallel()
	for _, tool := range append(toolsOf(groups(opened(t))), mcp.ReachTools(nil)...) {
		data, err := tool.Schema()
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Properties map[string]struct {
				Type, Description string
				Items             struct{ Type string }
			}
		}
		if err := json.Unmarshal(data, &schema); err != nil {
			t.Fatal(err)
		}
		for name, p := range schema.Properties {
			if p.Type == "" || len(p.Description) < 8 || !strings.HasSuffix(strings.TrimRight(p.Description, ")"), ".") || (p.Type == "array") != (p.Items.Type != "") {
				t.Errorf("%s: %s: %+v", tool.Name, name, p)
			}
		}
		if len(tool.Description) < 40 || !strings.HasSuffix(tool.Description, ".") {
			t.Errorf("%s: %q", tool.Name, tool.Description)
		}
	}
}

// TestMailTakesTheParametersOfItsContract compares the parameters with the contract; "name!"
// is required.
func TestMailTakesTheParametersOfItsContract(t *testing.T) {
	t.Parallel()
	profile := " task_description attachments_policy want_token session_id registration_token"
	requester := " register_if_missing program model task_description registration_token"
	reservations := "project_key! agent_name! paths file_reservation_ids"
	want := map[string]string{
		"health_check": "", "ensure_project": "human_key! identity_mode",
		"register_agent":        "project_key! program! model! name" + profile,
		"create_agent_identity": "project_key! program! model! name_hint" + profile,
		"whois":                 "project_key! agent_name! include_recent_commits commit_limit",
		"list_agents":           "project_key! active_within_days include_retired program limit",
		"retire_agent":          "project_key! agent_name! reason registration_token",
		"send_message": "project_key! sender_name! to! subject! body_md! cc bcc attachment_paths importance ack_required thread_id topic broadcast " +
			"auto_contact_if_blocked idempotency_key registration_token",
		"reply_message":        "project_key! message_id! sender_name! body_md! to cc bcc subject_prefix attachment_paths idempotency_key registration_token",
		"fetch_inbox":          "project_key! agent_name! limit unread_only urgent_only include_bodies since_ts topic at registration_token",
		"mark_message_read":    "project_key! agent_name! message_id! registration_token",
		"acknowledge_message":  "project_key! agent_name! message_id! registration_token",
		"get_delivery_receipt": "project_key! message_id! agent_name! registration_token",
		"search_messages":      "project_key! query! limit offset ranking sender importance thread_id date_start date_end",
		"summarize_thread":     "project_key! thread_id! include_examples per_thread_limit",
		"request_contact":      "project_key! from_agent! to_agent! to_project reason ttl_seconds" + requester,
		"respond_contact":      "project_key! to_agent! from_agent! accept! ttl_seconds from_project registration_token",
		"create_contact":       "project_key! agent_name! contact! contact_project ttl_seconds reason registration_token",
		"list_contacts":        "project_key! agent_name! direction registration_token",
		"set_contact_policy":   "project_key! agent_name! policy! registration_token",
		"file_reservation_paths": "project_key! agent_name! paths! ttl_seconds exclusive advisory reason idempotency_key " +
			"registration_token",
		"check_file_reservation_conflicts": "project_key! paths! agent_name exclusive",
		"release_file_reservations":        reservations + " registration_token",
		"renew_file_reservations":          reservations + " extend_seconds until_ts idempotency_key registration_token",
		"force_release_file_reservation":   "project_key! agent_name! file_reservation_id! notify_previous note registration_token",
		"install_precommit_guard":          "project_key! code_repo_path!", "uninstall_precommit_guard": "code_repo_path!",
		"macro_start_session": "human_key! program! model! task_description agent_name file_reservation_paths file_reservation_reason " +
			"file_reservation_ttl_seconds inbox_limit session_id registration_token",
		"macro_prepare_thread": "project_key! thread_id! program! model! agent_name task_description register_if_missing include_examples " +
			"inbox_limit include_inbox_bodies registration_token",
		"macro_file_reservation_cycle": "project_key! agent_name! paths! ttl_seconds exclusive reason auto_release registration_token",
		"macro_contact_handshake": "project_key! requester! target! to_project reason ttl_seconds auto_accept welcome_subject welcome_body thread_id" +
			requester,
	}
	for _, tool := range mcp.MailTools(cairn.Mail{}, mcp.MailOptions{}) {
		data, err := tool.Schema()
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(data, &schema); err != nil {
			t.Fatal(err)
		}
		var got []string
		for name := range schema.Properties {
			if slices.Contains(schema.Required, name) {
				name += "!"
			}
			got = append(got, name)
		}
		expected, ok := want[tool.Name]
		fields := strings.Fields(expected)
		slices.Sort(got)
		slices.Sort(fields)
		if !ok || !slices.Equal(got, fields) {
			t.Errorf("%s takes %v, want %v", tool.Name, got, fields)
		}
		delete(want, tool.Name)
	}
	if len(want) > 0 {
		t.Errorf("there are no %v", slices.Collect(maps.Keys(want)))
	}
}

// TestNoFieldOfAResultHidesAnother checks for fields hidden by an outer field of the same Go
// name. With another JSON name such a field is in the JSON, but not in the schema.
func TestNoFieldOfAResultHidesAnother(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			look(of.Elem())
		case reflect.Struct:
			if seen[of] {
				return
			}
			seen[of] = true
			for i := range of.NumField() {
				field := of.Field(i)
				for inner := range embedded(field) {
					if outer, _ := of.FieldByName(inner.Name); len(outer.Index) == 1 && outer.Tag.Get("json") != inner.Tag.Get("json") {
						t.Errorf("%v.%s hides %v.%s", of, outer.Name, field.Type, inner.Name)
					}
				}
				look(field.Type)
			}
		}
	}
	for _, tool := range append(toolsOf(groups(opened(t))), mcp.ReachTools(nil)...) {
		for _, result := range tool.Result {
			look(result)
		}
		if len(tool.Result) == 0 && tool.Name != "call_tool" {
			t.Errorf("the result of %s is not described", tool.Name)
		}
	}
}

// embedded yields the fields of an embedded struct.
func embedded(field reflect.StructField) iter.Seq[reflect.StructField] {
	return func(yield func(reflect.StructField) bool) {
		if !field.Anonymous || field.Type.Kind() != reflect.Struct {
			return
		}
		for i := range field.Type.NumField() {
			if !yield(field.Type.Field(i)) {
				return
			}
		}
	}
}
