package harness

import (
	"testing"

	"cairn/internal/observation"
)

// A tool call_tool of another server and a call without a name remain unchanged.
func TestOnlyCairnsOwnCallToolIsUnwrapped(t *testing.T) {
	t.Parallel()
	named := []observation.Arg{{Name: "name", Value: "x"}}
	for _, c := range []observation.Call{
		{Action: observation.MCP, Server: "other", Method: "call_tool", Args: named},
		{Action: observation.MCP, Server: "cairn", Method: "call_tool"},
		{Action: observation.MCP, Server: "cairn", Method: "recall", Args: named},
	} {
		method := c.Method
		if UnwrapOwn(&c); c.Method != method {
			t.Errorf("%+v", c)
		}
	}
}
