package harnesses_test

import (
	"strconv"
	"testing"

	"cairn/internal/harness/harnesses"
)

// A tool called through call_tool is stored with its own name and arguments, whatever format of
// tool names the host uses.
func TestAToolCalledByCallToolIsThatTool(t *testing.T) {
	t.Parallel()
	const input = `{"name":"register_agent","arguments":{"project_key":"/home/ana/kiln","name":"BlueLake","task":{"a":[1]}}}`
	for from, payload := range map[string]string{
		"claude": `{"session_id":"s","cwd":"/home/ana/kiln","hook_event_name":"PostToolUse","tool_name":"mcp__cairn__call_tool","tool_use_id":"t","tool_input":` + input + `,"tool_response":{"content":[{"type":"text","text":"{}"}]}}`,
		"cursor": `{"conversation_id":"s","workspace_roots":["/home/ana/kiln"],"hook_event_name":"afterMCPExecution","tool_name":"call_tool","mcp_server_name":"user-cairn","tool_input":` + strconv.Quote(input) + `,"result_json":"{}"}`,
		"gemini": `{"session_id":"s","cwd":"/home/ana/kiln","hook_event_name":"AfterTool","tool_name":"mcp_cairn_call_tool","tool_input":` + input + `,"tool_response":{"llmContent":"{}"},"mcp_context":{"server_name":"cairn","tool_name":"call_tool"}}`,
	} {
		e, err := harnesses.Hook([]byte(payload), from, "/home/ana")
		if err != nil || len(e.Calls) != 1 {
			t.Errorf("%s: %+v, %v", from, e, err)
			continue
		}
		c := e.Calls[0]
		got := map[string]string{}
		for _, a := range c.Args {
			got[a.Name] = a.Value
		}
		if c.Method != "register_agent" || got["name"] != "BlueLake" || got["project_key"] != "/home/ana/kiln" || got["task"] != `{"a":[1]}` {
			t.Errorf("%s: %q %v", from, c.Method, c.Args)
		}
	}
}
