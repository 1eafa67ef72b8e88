package gemini

import (
	"testing"

	"cairn/internal/observation"
)

func TestACallThroughQwensToolForDeferredToolsIsACallOfThatTool(t *testing.T) {
	t.Parallel()
	c := qwenCall("1", "tool_call", []byte(`{"name":"mcp__kiln__fire","arguments":{"cone":6}}`))
	if c.Action != observation.MCP || c.Server != "kiln" || c.Method != "fire" || len(c.Args) != 1 || c.ID != "1" {
		t.Errorf("%+v", c)
	}
	if c := qwenCall("1", "tool_call", []byte(`{"name":"tool_call"}`)); c.Action == observation.MCP {
		t.Errorf("%+v", c)
	}
}
