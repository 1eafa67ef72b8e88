package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// step is a call of a record tool, by session one unless the step names another session.
type step struct {
	tool string
	args fields
	get  string // the same call as a query, for read-only tools
}

// recordSteps returns calls of every record command, some of which fail.
func recordSteps() []step {
	return []step{
		{"create_project", fields{"id": "shop", "name": "Shop <&>"}, ""},
		{"create_project", fields{"id": "shop", "name": "again"}, ""},
		{"list_projects", nil, "?"},
		{"get_project", fields{"id": "shop"}, "?"},
		{"create_record", fields{"type": "question", "title": "Where <do> refunds & expire?", "summary": "s", "body": "a\nb\n", "metadata": fields{"k": "<é>"}}, ""},
		{"create_record", fields{"parent_id": "R1", "type": "note", "title": "below", "summary": "", "body": "", "related": []string{"R1"}, "state": "LATER"}, ""},
		{"create_record", fields{"type": 7}, ""},
		{"activate", fields{"id": "r1", "session_id": "two"}, ""},
		{"activate", fields{"id": "R9"}, ""},
		{"update_record", fields{"id": "R1", "body": "A\nb\n"}, ""},
		{"update_record", fields{"id": "R1", "body": "a\nB\n", "session_id": "two"}, ""},
		{"update_record", fields{"id": "R2", "title": "x", "session_id": "two"}, ""},
		{"transition", fields{"id": "R1", "to_state": "RESOLVED", "resolved_by": "R2"}, ""},
		{"transition", fields{"id": "R1", "to_state": "gone"}, ""},
		{"get_project_overview", nil, "?"},
		{"get_project_overview", fields{"at": "tick:1"}, "?at=tick:1"},
		{"search_records", fields{"query": "refunds below", "limit": 5, "states": []string{"RESOLVED", "LATER"}}, "?query=refunds+below&limit=5&states=RESOLVED&states=LATER"},
		{"search_records", fields{"query": " "}, "?query=%20"},
		{"list_records", fields{"parent_id": nil, "depth": 2, "types": []string{"question", "note"}}, "?parent_id=null&depth=2&types=question&types=note"},
		{"list_records", fields{"parent_id": "R1", "zeta": nil}, "?parent_id=R1&zeta=1"},
		{"get_record_ref", fields{"id": "R1", "at": "tick:2"}, "?id=R1&at=tick:2"},
		{"get_record_ref", nil, "?"},
		{"get_record_history", fields{"id": "R1", "limit": 2}, "?id=R1&limit=2"},
		{"get_record_diff", fields{"id": "R1", "from": "v1", "to": "v2"}, "?id=R1&from=v1&to=v2"},
		{"get_active_sessions", fields{"record_id": "R1"}, "?record_id=R1"},
		{"get_recent_activity", fields{"limit": 4, "types": []string{"record_created"}}, "?limit=4&types=record_created"},
		{"sync_session", fields{"session_id": "two"}, ""},
		{"save_session", fields{"summary": "done"}, ""},
		{"close_session", nil, ""},
		{"close_session", fields{"session_id": "nobody"}, ""},
		{"why", fields{"file": "nothing.go"}, "?file=nothing.go"},
	}
}

// withSession adds session one to the arguments of a command that takes a session.
func (s step) withSession(takes []string) fields {
	args := fields{}
	for k, v := range s.args {
		args[k] = v
	}
	if slices.Contains(takes, s.tool) && args["session_id"] == nil {
		args["session_id"] = "one"
	}
	return args
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// TestEveryRecordCommandAnswersAlikeOverMCPAndAsJSON runs the same calls on two stores. It
// reads one store both over MCP and as JSON, by POST and by GET.
func TestEveryRecordCommandAnswersAlikeOverMCPAndAsJSON(t *testing.T) {
	t.Parallel()
	one, two := newHome(t), newHome(t)
	w, x := one.listen("--toolsets", "records"), two.listen("--toolsets", "records")
	c, both := w.connect("/mcp", "", nil), x.connect("/mcp", "", nil)
	listed, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var takesSession, takesProject, left []string
	for _, tool := range listed.Tools {
		schema, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(schema), `"session_id"`) {
			takesSession = append(takesSession, tool.Name)
		}
		if strings.Contains(string(schema), `"project_id"`) {
			takesProject = append(takesProject, tool.Name)
		}
		if tool.Name != "recall" { // it is in every surface, but is not a record command
			left = append(left, tool.Name)
		}
	}
	over := func(c *client, tool string, args fields) (string, bool, string) {
		t.Helper()
		all := args
		if slices.Contains(takesProject, tool) {
			all = fields{"project_id": "shop"}
			for k, v := range args {
				all[k] = v
			}
		}
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: all})
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		var ignored []string
		if list, ok := r.Meta["cairn/ignored"].([]any); ok {
			for _, name := range list {
				ignored = append(ignored, name.(string))
			}
		}
		return r.Content[0].(*sdk.TextContent).Text, r.IsError, strings.Join(ignored, ", ")
	}
	for _, s := range recordSteps() {
		args := s.withSession(takesSession)
		left = slices.DeleteFunc(left, func(name string) bool { return name == s.tool })
		want, isError, ignored := over(c, s.tool, args)
		body, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		path := "/v1/projects/shop/records/" + s.tool
		got := x.do(http.MethodPost, path, string(body))
		if isError {
			got.body = strings.TrimSuffix(got.body, "\n")
		}
		if times.ReplaceAllString(got.body, "T") != times.ReplaceAllString(want, "T") || (got.status == 200) == isError || got.header.Get("Cairn-Ignored") != ignored {
			t.Errorf("%s %s:\nMCP  %s (error: %v, ignored %q)\nJSON %s (%d, ignored %q)", s.tool, body, want, isError, ignored, got.body, got.status, got.header.Get("Cairn-Ignored"))
		}
		if s.get == "" {
			continue
		}
		if slices.Contains(takesSession, s.tool) {
			s.get += "&session_id=one"
		}
		get := x.do(http.MethodGet, path+s.get, "")
		same, _, _ := over(both, s.tool, args)
		if strings.TrimSuffix(get.body, "\n") != same || get.status != got.status || get.header.Get("Cairn-Ignored") != ignored {
			t.Errorf("%s%s: %d %s\nMCP  %s", s.tool, s.get, get.status, get.body, same)
		}
	}
	if len(left) > 0 {
		t.Errorf("never called: %v", left)
	}
	one.check()
	two.check()
}

// TestTheMirrorListsItsRoutes also checks that each route can be called.
func TestTheMirrorListsItsRoutes(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.worked()
	w := h.listen()
	c := w.connect("/mcp", "", nil)
	mcp, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var listed struct {
		Tools []struct {
			Toolset, Name, Path string
			Methods             []string
			ProjectArgument     string          `json:"project_argument"`
			Schema              json.RawMessage `json:"input_schema"`
		}
	}
	if err := json.Unmarshal([]byte(w.do(http.MethodGet, "/v1/tools", "").body), &listed); err != nil || len(listed.Tools) != len(mcp.Tools) {
		t.Fatalf("%d routes for %d tools, %v", len(listed.Tools), len(mcp.Tools), err)
	}
	for _, l := range listed.Tools {
		i := slices.IndexFunc(mcp.Tools, func(m *sdk.Tool) bool { return m.Name == l.Name })
		if i < 0 {
			t.Errorf("MCP has no %s", l.Name)
			continue
		}
		reads := mcp.Tools[i].Annotations != nil && mcp.Tools[i].Annotations.ReadOnlyHint
		if !slices.Contains(l.Methods, "POST") || reads && !slices.Contains(l.Methods, "GET") || !json.Valid(l.Schema) {
			t.Errorf("%+v", l)
		}
		unused := l.Toolset == "memories" && !strings.Contains(string(l.Schema), `"memory_id"`) // they accept a project anyway
		if l.ProjectArgument != "" && !unused && !strings.Contains(string(l.Schema), `"`+l.ProjectArgument+`"`) {
			t.Errorf("%s has no argument %s", l.Name, l.ProjectArgument)
		}
		r := w.do(http.MethodPost, strings.Replace(l.Path, "{key}", "shop", 1), "{}")
		if code := r.code(); r.status != http.StatusOK && (r.status >= 500 || strings.HasPrefix(code, "no envelope") || code == "not_found") {
			t.Errorf("%s: %d %s", l.Path, r.status, r.body)
		}
	}
}

func TestThePathNamesTheProject(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.worked()
	w := h.listen("--project", "mail")
	search := func(key string) (n int) {
		t.Helper()
		var rows []any
		r := w.wants(http.StatusOK, "", http.MethodGet, "/v1/projects/"+key+"/observations/search?query=refund+OR+send", "")
		if err := json.Unmarshal([]byte(r.body), &rows); err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	shop, mail, all := search("shop"), search("mail"), search("*")
	if shop == 0 || mail == 0 || all != shop+mail || search("a%2Fb%20c") != 0 {
		t.Errorf("%d in one project, %d in the other, %d in all", shop, mail, all)
	}
	// An alias may contain a slash, and reaches a store that knows the alias.
	h.cairn("project", "alias", "team/shop", "shop")
	if n := search(url.PathEscape("team/shop")); n != shop {
		t.Errorf("by an alias with a slash: %d", n)
	}
	w.post("/v1/projects/mail/records/create_record", fields{"type": "q", "title": "here", "summary": "", "body": "", "project_id": "mail"})
	if r := w.post("/v1/projects/*/records/list_records", nil); !strings.Contains(r.body, "here") {
		t.Errorf("the server's project: %s", r.body)
	}
	r := w.post("/v1/projects/*/records/create_project", fields{"name": "free"})
	if !strings.Contains(r.body, `"id":"p-`) {
		t.Errorf("made without an id: %s", r.body)
	}
	w.wants(http.StatusBadRequest, "INVALID_ARGUMENT", http.MethodPost, "/v1/projects/shop/records/get_project", `{"id":"mail"}`)
	w.wants(http.StatusBadRequest, "invalid_argument", http.MethodPost, "/v1/projects/shop/observations/recent_context", `{"project":null}`)
	w.wants(http.StatusOK, "", http.MethodPost, "/v1/projects/shop/records/list_records", `{"project_id":null}`)
}

// TestMailIsTheSameAsJSON calls mail tools for a project named by its directory. It sends a
// protected agent's token in a header, and checks the HTTP statuses of mail's codes.
func TestMailIsTheSameAsJSON(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.listen()
	key := url.PathEscape(h.repository(h.dir + "/shop"))
	at := func(tool string) string { return "/v1/projects/" + key + "/mail/" + tool }
	w.wants(http.StatusNotFound, "NOT_FOUND", http.MethodGet, at("list_agents"), "")
	made := w.post(at("register_agent"), fields{"program": "claude-code", "model": "m", "name": "GreenLake", "want_token": true})
	var agent struct {
		Name  string `json:"name"`
		Token string `json:"registration_token"`
	}
	if err := json.Unmarshal([]byte(made.body), &agent); err != nil || agent.Name != "GreenLake" || agent.Token == "" {
		t.Fatalf("%v: %s", err, made.body)
	}
	w.post(at("register_agent"), fields{"program": "codex", "model": "m", "name": "BlueDog"})
	send := `{"sender_name":"BlueDog","to":"GreenLake","subject":"hi","body_md":"x"}`
	if r := w.do(http.MethodPost, at("send_message"), send); r.status != http.StatusOK {
		t.Fatalf("%d %s", r.status, r.body)
	}
	inbox := at("fetch_inbox") + "?agent_name=GreenLake"
	w.wants(http.StatusForbidden, "CAPABILITY_DENIED", http.MethodGet, inbox, "")
	if r := w.do(http.MethodGet, inbox, "", "X-Cairn-Agent-Token", agent.Token); r.status != http.StatusOK || !strings.Contains(r.body, `"subject":"hi"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	w.wants(http.StatusNotFound, "RECIPIENT_NOT_FOUND", http.MethodPost, at("send_message"), strings.Replace(send, "GreenLake", "RedFox", 1))
	w.wants(http.StatusRequestEntityTooLarge, "MESSAGE_TOO_LARGE", http.MethodPost, at("send_message"), strings.Replace(send, `"hi"`, `"`+strings.Repeat("s", 2000)+`"`, 1))
	w.wants(http.StatusBadRequest, "INVALID_LIMIT", http.MethodGet, at("fetch_inbox")+"?agent_name=BlueDog&limit=0", "")
}
