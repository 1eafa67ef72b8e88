package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// seenCall is a finished call of a cairn tool, with the server's response.
type seenCall struct {
	tool   string
	input  fields
	result string
}

// calls calls a tool; the call must succeed.
func (c *client) calls(tool string, input fields) seenCall {
	c.t.Helper()
	text, isError, err := c.answer(tool, input)
	if err != nil || isError {
		c.t.Fatalf("%s: %s, %v", tool, text, err)
	}
	return seenCall{tool, input, text}
}

// asText returns JSON encoded as a string, as some harnesses send it.
func asText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// payloads returns a finished call in the forms in which the harnesses report it.
func (s seenCall) payloads(h *home) map[string]fields {
	blocks := []fields{{"type": "text", "text": s.result}}
	whole := fields{"content": blocks, "isError": false}
	return map[string]fields{
		"claude":  {"hook_event_name": "PostToolUse", "tool_name": "mcp__cairn__" + s.tool, "tool_input": s.input, "tool_response": blocks},
		"plugin":  {"hook_event_name": "PostToolUse", "tool_name": "mcp__plugin_cairn_cairn__" + s.tool, "tool_input": s.input, "tool_response": s.result},
		"codex":   {"hook_event_name": "PostToolUse", "turn_id": "t", "tool_name": "mcp__cairn__" + s.tool, "tool_input": s.input, "tool_response": whole},
		"gemini":  {"hook_event_name": "AfterTool", "tool_name": "mcp_cairn_" + s.tool, "tool_input": s.input, "tool_response": fields{"llmContent": blocks, "returnDisplay": s.result}},
		"gemini2": {"hook_event_name": "AfterTool", "tool_name": "x", "mcp_context": fields{"server_name": "cairn", "tool_name": s.tool}, "tool_input": s.input, "tool_response": fields{"llmContent": s.result}},
		"cursor":  {"hook_event_name": "afterMCPExecution", "workspace_roots": []string{h.repo}, "tool_name": s.tool, "mcp_server_name": "user-cairn", "tool_input": asText(s.input), "result_json": asText(whole)},
		"cursor2": {"hook_event_name": "postToolUse", "workspace_roots": []string{h.repo}, "tool_name": "mcp__cairn__" + s.tool, "tool_input": s.input, "tool_output": s.result},
	}
}

// sees runs the hook for a session with a call in one of the forms.
func (h *home) sees(session, form string, s seenCall, more fields) string {
	h.t.Helper()
	f := s.payloads(h)[form]
	f["session_id"] = session
	if strings.HasPrefix(form, "cursor") {
		f["conversation_id"] = session
	}
	maps.Copy(f, more)
	return h.recorded(h.payload("", f))
}

const bonds = `SELECT s.id, a.name, b.source FROM mail_sessions b JOIN sessions s ON s.key = b.session_key JOIN mail_agents a ON a.id = b.agent_id WHERE b.source = 'call' ORDER BY 1, 2`

// TestTheHookBindsASessionToTheAgentOfItsCall calls the server before it can know the sessions.
// Only the hook can report to which session a call belongs.
func TestTheHookBindsASessionToTheAgentOfItsCall(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := h.connect("", nil)
	names := map[string]string{
		"claude": "RedFox", "plugin": "BlueDog", "codex": "GreenLake", "gemini": "GoldBear", "gemini2": "PinkDeer", "cursor": "GrayOwl", "cursor2": "WhiteWolf",
	}
	registered := map[string]seenCall{}
	for form, name := range names {
		registered[form] = c.calls("register_agent", fields{"project_key": h.repo, "program": "p", "model": "m", "name": name})
	}
	coerced := c.calls("register_agent", fields{"project_key": h.repo, "program": "p", "model": "m", "name": "the cart helper"})
	sent := c.calls("send_message", fields{"project_key": h.repo, "sender_name": "RedFox", "to": []string{"BlueDog"}, "subject": "s", "body_md": "b"})
	started := c.calls("macro_start_session", fields{"human_key": h.repo, "program": "p", "model": "m", "agent_name": "AmberHawk"})
	for form, s := range registered {
		h.sees("s-"+form, form, s, nil)
	}
	h.sees("s-coerced", "claude", coerced, nil)
	h.sees("s-sent", "claude", sent, nil)
	h.sees("s-started", "codex", started, nil)
	h.sees("s-sub", "claude", sent, fields{"agent_id": "sub"})
	var made struct{ Name string }
	if err := json.Unmarshal([]byte(coerced.result), &made); err != nil || made.Name == "" {
		t.Fatal(coerced.result, err)
	}
	h.wantRows(bonds, "s-claude|RedFox|call", "s-codex|GreenLake|call", "s-coerced|"+made.Name+"|call", "s-cursor|GrayOwl|call", "s-cursor2|WhiteWolf|call",
		"s-gemini|GoldBear|call", "s-gemini2|PinkDeer|call", "s-plugin|BlueDog|call", "s-sent|RedFox|call", "s-started|AmberHawk|call", "s-sub|RedFox|call")

	c.calls("send_message", fields{"project_key": h.repo, "sender_name": "AmberHawk", "to": []string{"GreenLake"}, "subject": "About the cart", "body_md": "b"})
	prompt := fields{"session_id": "s-codex", "turn_id": "t2", "prompt": "what now?"}
	if said := h.recorded(h.payload("UserPromptSubmit", prompt)); !strings.Contains(said, "cairn mail for GreenLake: 1 unread") || !strings.Contains(said, "About the cart") {
		t.Errorf("the next prompt is told %q", said)
	}
	if said := h.recorded(h.payload("UserPromptSubmit", prompt)); said != "" {
		t.Errorf("and the one after it %q", said)
	}
	if rows := h.rows(`SELECT tool_name FROM observations WHERE tool_name NOTNULL`); len(rows) > 0 {
		t.Errorf("calls of our own make rows: %q", rows)
	}
}

// TestTheHookTakesNothingAtItsWord sends calls that did not happen or happened elsewhere.
func TestTheHookTakesNothingAtItsWord(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	other := h.repository(filepath.Join(h.dir, "other"))
	c := h.connect("", nil)
	c.calls("register_agent", fields{"project_key": h.repo, "program": "p", "model": "m", "name": "RedFox"})
	there := c.calls("register_agent", fields{"project_key": other, "program": "p", "model": "m", "name": "RedFox"})
	input := fields{"project_key": h.repo, "program": "p", "model": "m", "name": "BlueDog", "want_token": true}
	guarded := c.calls("register_agent", input)
	var issued struct {
		Token string `json:"registration_token"`
	}
	if err := json.Unmarshal([]byte(guarded.result), &issued); err != nil || issued.Token == "" {
		t.Fatal(guarded.result, err)
	}
	acting := func(name string, more fields) seenCall {
		input := fields{"project_key": h.repo, "sender_name": name, "agent_name": name, "to": []string{"RedFox"}}
		maps.Copy(input, more)
		return seenCall{"send_message", input, `{"count":1}`}
	}
	refused := acting("RedFox", nil)
	refused.result = `{"error":{"code":"NOT_FOUND","message":"no","details":{}}}`
	broken := acting("RedFox", nil)
	broken.result = "it went well"
	inbox := acting("RedFox", nil)
	inbox.tool, inbox.result = "fetch_inbox", `[]`
	whois := acting("RedFox", nil)
	whois.tool = "whois"
	for name, s := range map[string]seenCall{
		"another project":   there,
		"no such agent":     acting("GoldBear", nil),
		"no such project":   acting("RedFox", fields{"project_key": filepath.Join(h.dir, "nowhere")}),
		"no project":        acting("RedFox", fields{"project_key": ""}),
		"protected":         acting("BlueDog", nil),
		"a wrong token":     acting("BlueDog", fields{"registration_token": "guess"}),
		"the person":        acting("HumanOverseer", nil),
		"no name":           acting("", nil),
		"a call refused":    refused,
		"no result":         broken,
		"reading":           inbox,
		"asking about them": whois,
	} {
		if said := h.sees(name, "claude", s, nil); said != "" {
			t.Errorf("%s: %q", name, said)
		}
	}
	h.sees("failed", "claude", acting("RedFox", nil), fields{"hook_event_name": "PostToolUseFailure", "error": "no"})
	h.sees("flagged", "codex", acting("RedFox", nil), fields{"tool_response": fields{"content": []fields{{"type": "text", "text": "{}"}}, "isError": true}})
	h.sees("not ours", "claude", acting("RedFox", nil), fields{"tool_name": "mcp__other__send_message"})
	h.sees("elsewhere", "claude", acting("RedFox", nil), fields{"cwd": other})
	h.wantRows(bonds)
	h.wantRows(`SELECT a.name FROM mail_agents a JOIN mail_projects p ON p.id = a.project_id ORDER BY 1`, "BlueDog", "RedFox", "RedFox")

	h.sees("issued", "claude", guarded, nil)
	h.sees("shown", "claude", acting("BlueDog", fields{"registration_token": issued.Token}), nil)
	h.wantRows(bonds, "issued|BlueDog|call", "shown|BlueDog|call")
	h.nowhere(issued.Token)
}
