package agents

import (
	"strings"
	"testing"
)

// FuzzSeenCall checks that a failed call yields no agent, for any payload of a hook.
func FuzzSeenCall(f *testing.F) {
	f.Add("register_agent", `{"name":"RedFox"}`, "RedFox")
	f.Add("macro_start_session", `{"agent":{"name":"RedFox"}}`, "")
	f.Add("macro_start_session", `{"agent":[1]}`, "x")
	f.Add("send_message", `{"error":{"code":"NOT_FOUND"}}`, "RedFox")
	f.Add("send_message", `{"error":null}`, "RedFox")
	f.Add("send_message", `null`, "RedFox")
	f.Add("fetch_inbox", `[]`, "RedFox")
	f.Fuzz(func(t *testing.T, tool, result, argument string) {
		c := ObservedCall{Tool: tool, Result: result, Argument: func(string) string { return argument }}
		name, _ := c.actor()
		if name == "" {
			return
		}
		if !strings.HasPrefix(result, "{") {
			t.Errorf("%q names %q by %q", tool, name, result)
		}
	})
}
