package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// surfaceOf lists the tools that a server with these arguments offers. It fails if the
// instructions name a missing tool that call_tool does not reach.
func (h *home) surfaceOf(args ...string) (names []string, bytes int) {
	h.t.Helper()
	c := h.dialTo(h.command(append([]string{"serve"}, args...)...), "", nil)
	defer c.leave()
	if c.InitializeResult().Instructions == "" {
		h.t.Errorf("%v: no instructions", args)
	}
	defer func() {
		if slices.Contains(names, "call_tool") {
			return
		}
		for _, word := range regexp.MustCompile(`[a-z]+(_[a-z]+)+`).FindAllString(c.InitializeResult().Instructions, -1) {
			if word != "project_id" && word != "memory_id" && word != "session_id" && word != "project_key" && !slices.Contains(names, word) {
				h.t.Errorf("%v: the instructions name %s", args, word)
			}
		}
	}()
	listed, err := c.ListTools(h.t.Context(), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
		data, err := json.Marshal(tool)
		if err != nil {
			h.t.Fatal(err)
		}
		bytes += len(data)
	}
	return names, bytes
}

func TestServersOfferWhatTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	all, _ := h.surfaceOf()
	if len(all) != 1+len(observationTools())+19+31+16 || !slices.Contains(all, "recall") || slices.Contains(all, "call_tool") {
		t.Errorf("%d tools", len(all))
	}
	records, _ := h.surfaceOf("--toolsets", "records")
	if len(records) != 1+19 || !slices.Contains(records, "recall") || slices.Contains(records, "search") {
		t.Errorf("records: %v", records)
	}
	if observations, _ := h.surfaceOf("--toolsets", "observations"); len(observations) != 1+6 {
		t.Errorf("observations: %v", observations)
	}
	if memories, _ := h.surfaceOf("--toolsets", "memories"); len(memories) != 1+16 {
		t.Errorf("memories: %v", memories)
	}
	if both, _ := h.surfaceOf("--toolsets", "records,mail,observations,memories"); len(both) != len(all) {
		t.Errorf("all by name: %v", both)
	}
	for profile, has := range map[string][]string{
		"core":      {"search", "create_record", "fetch_inbox", "macro_start_session", "file_reservation_paths"},
		"messaging": {"search", "create_record", "fetch_inbox", "request_contact"},
		"minimal":   {"search", "health_check", "create_record", "fetch_inbox", "register_agent"},
	} {
		some, _ := h.surfaceOf("--profile", profile)
		if len(some) >= len(all) || slices.ContainsFunc(has, func(name string) bool { return !slices.Contains(some, name) }) {
			t.Errorf("%s: %v", profile, some)
		}
	}
	if mail, _ := h.surfaceOf("--toolsets", "mail"); len(mail) != 1+31 || slices.Contains(mail, "search") {
		t.Errorf("mail: %v", mail)
	}
	if single, _ := h.surfaceOf("--tools", "recall,add_entry"); !slices.Equal(slices.Sorted(slices.Values(single)), []string{"add_entry", "recall"}) {
		t.Errorf("single tools: %v", single)
	}
	if reaching, _ := h.surfaceOf("--tools", "recall,find_tool,call_tool"); len(reaching) != 3 {
		t.Errorf("three tools: %v", reaching)
	}
}

// TestTheLeanSurfaceCostsLittle measures the bytes that a client is sent.
func TestTheLeanSurfaceCostsLittle(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	lean, bytes := h.surfaceOf("--profile", "lean")
	if len(lean) > 14 || (bytes+3)/4 > 1200 {
		t.Errorf("%d tools, %d bytes", len(lean), bytes)
	}
	for _, name := range []string{"recall", "macro_start_session", "fetch_inbox", "file_reservation_paths", "create_record", "add_entry", "find_tool", "call_tool"} {
		if !slices.Contains(lean, name) {
			t.Errorf("no %s in %v", name, lean)
		}
	}
	if some, _ := h.surfaceOf("--profile", "lean", "--toolsets", "records"); len(some) != 7 {
		t.Errorf("records alone: %v", some)
	}
}

// TestLeanToolsTakeEveryArgument uses an argument that the lean definition omits, and calls
// tools that the lean list omits.
func TestLeanToolsTakeEveryArgument(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	c := h.dialTo(h.command("serve", "--profile", "lean"), "", nil)
	h.t.Cleanup(c.leave)
	r := c.created(fields{"title": "t", "state": "LATER"})
	if r.State != "LATER" {
		t.Errorf("created: %+v", r)
	}
	for _, call := range []struct {
		tool string
		args fields
	}{
		{"call_tool", fields{"name": "get_record_ref", "arguments": fields{"id": r.ID}}}, {"get_record_ref", fields{"id": r.ID}},
	} {
		text, isError, err := c.answer(call.tool, call.args)
		if err != nil || isError || !strings.Contains(text, `"state":"LATER"`) {
			t.Errorf("%s: %s, %v", call.tool, text, err)
		}
	}
}

// TestTheMirrorHasWhatCallToolReaches also checks that the mirror does not have call_tool,
// since a path already names a tool.
func TestTheMirrorHasWhatCallToolReaches(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	for want, args := range map[int][]string{
		73: {"--profile", "lean"}, 20: {"--profile", "lean", "--toolsets", "records"}, 2: {"--tools", "recall,list_vaults"},
		1: {"--tools", "recall,find_tool"},
	} {
		w := newHome(t).listen(args...)
		var listed struct {
			Tools []struct{ Name, Path string }
		}
		if err := json.Unmarshal([]byte(w.do(http.MethodGet, "/v1/tools", "").body), &listed); err != nil || len(listed.Tools) != want {
			t.Errorf("%v: %d tools, want %d, %v", args, len(listed.Tools), want, err)
		}
		if r := w.do(http.MethodPost, "/v1/projects/*/others/call_tool", `{"name":"recall"}`); r.status != http.StatusNotFound {
			t.Errorf("%v: call_tool: %d %s", args, r.status, r.body)
		}
	}
	w := newHome(t).listen("--tools", "recall,find_tool,call_tool")
	if r := w.do(http.MethodGet, "/v1/projects/*/memories/list_vaults", ""); r.status != http.StatusOK {
		t.Errorf("a tool that call_tool reaches: %d %s", r.status, r.body)
	}
	c := w.connect("/mcp", "", nil)
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "call_tool", Arguments: fields{"name": "list_vaults", "arguments": fields{}}})
	if err != nil || r.IsError {
		t.Errorf("over HTTP: %v, %v", r, err)
	}
}
