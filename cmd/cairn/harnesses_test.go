package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// jsonLines encodes values as lines of JSON.
func jsonLines(t *testing.T, values ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, v := range values {
		if err := json.NewEncoder(&b).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// put writes a file below the home directory.
func (h *home) put(path string, content []byte) {
	h.t.Helper()
	path = filepath.Join(h.dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// imports imports the agents' transcripts and expects want new rows.
func (h *home) imports(want int) {
	h.t.Helper()
	report := h.cairn("import", "--json")
	if n := added(h.t, report); n != want {
		h.t.Errorf("import added %d rows, want %d: %s\n%s", n, want, report, strings.Join(h.rows(storyRows), "\n"))
	}
}

const storyRows = `SELECT obs_type, project_id, ifnull(path_key, ''), content FROM observations ORDER BY timestamp, id`

// geminiTalk contains the files that Gemini CLI keeps of a session: the lines of the first turn,
// those of a second turn, and the log of prompts. The session began, and its first turn ended, at
// given Unix seconds.
type geminiTalk struct {
	lines, more []any
	logs        []byte
}

const (
	geminiShell  = "run_shell_command"
	geminiFailed = "Output: FAIL\nExit Code: 1\nProcess Group PGID: 4"
)

func newGeminiTalk(h *home, began, ended int64) geminiTalk {
	at := func(second int64) string { return time.Unix(second, 120e6).UTC().Format(time.RFC3339Nano) }
	done := func(id, tool string, second int64, args fields, said string) fields {
		return fields{"id": id, "name": tool, "args": args, "status": "success", "timestamp": at(second),
			"result": []fields{{"functionResponse": fields{"id": id, "name": tool, "response": fields{"output": said}}}}}
	}
	return geminiTalk{
		lines: []any{
			fields{"sessionId": "g1", "projectHash": strings.Repeat("0", 64), "startTime": at(began), "kind": "main"},
			fields{"id": "m1", "type": "user", "timestamp": at(began), "content": []fields{{"text": "make the refund test pass"}}},
			fields{"id": "m2", "type": "gemini", "timestamp": at(began), "content": "I run it.", "toolCalls": []fields{
				done("c1", geminiShell, ended, fields{"command": "go test"}, geminiFailed),
				done("c2", "read_file", ended, fields{"file_path": filepath.Join(h.repo, "a.go")}, "x"),
			}},
			fields{"id": "m3", "type": "gemini", "timestamp": at(ended), "content": "", "toolCalls": []fields{
				done("c3", "replace", ended, fields{"file_path": "a.go"}, "Successfully modified"),
				done("c4", geminiShell, ended, fields{"command": "go test"}, "Output: ok"),
				done("c5", "mcp_cairn_search", ended, fields{"query": "x"}, "[]"),
			}},
			fields{"id": "m4", "type": "gemini", "timestamp": at(ended), "content": "It passes."},
		},
		more: []any{
			fields{"$set": fields{"lastUpdated": at(ended + 9)}},
			fields{"id": "m5", "type": "user", "timestamp": at(ended + 30), "content": "again"},
			fields{"id": "m6", "type": "gemini", "timestamp": at(ended + 31), "content": "", "toolCalls": []fields{
				done("c6", geminiShell, ended+31, fields{"command": "go test"}, "Output: ok"),
			}},
			fields{"id": "m7", "type": "gemini", "timestamp": at(ended + 32), "content": "Still."},
		},
		logs: jsonLines(h.t, []fields{
			{"sessionId": "g1", "messageId": 0, "type": "user", "message": "make the refund test pass", "timestamp": at(began)},
			{"sessionId": "g0", "messageId": 0, "type": "user", "message": "a session whose file is gone", "timestamp": at(began - 9999)},
		}),
	}
}

// keeps writes lines to the file in which Gemini CLI keeps a session.
func (h *home) keeps(lines ...any) {
	h.t.Helper()
	h.put(".gemini/tmp/shop/.project_root", []byte(h.repo))
	h.put(".gemini/tmp/shop/chats/session-2026-01-01T00-00-g1.jsonl", jsonLines(h.t, lines...))
}

func TestGeminiSessionsAreNotImportedAfterTheirHooks(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	hook := func(event string, f fields) {
		f["session_id"] = "g1"
		h.recorded(h.payload(event, f))
	}
	hook("BeforeAgent", fields{"prompt": "make the refund test pass"})
	hook("AfterTool", fields{"tool_name": geminiShell, "tool_input": fields{"command": "go test"}, "tool_response": fields{"llmContent": geminiFailed}})
	hook("AfterTool", fields{"tool_name": "read_file", "tool_input": fields{"file_path": "a.go"}, "tool_response": fields{"llmContent": "x"}})
	hook("AfterTool", fields{"tool_name": "replace", "tool_input": fields{"file_path": "a.go"}, "tool_response": fields{"llmContent": "ok"}})
	hook("AfterTool", fields{"tool_name": geminiShell, "tool_input": fields{"command": "go test"}, "tool_response": fields{"llmContent": "Output: ok"}})
	hook("AfterAgent", fields{"prompt_response": "I run it.\nIt passes."})
	var began, ended int64
	if _, err := fmt.Sscan(strings.Join(h.rows(`SELECT timestamp FROM observations
WHERE obs_type IN ('user_prompt', 'agent_message') ORDER BY id`), " "), &began, &ended); err != nil {
		t.Fatal(err)
	}
	talk := newGeminiTalk(h, began, ended)
	h.keeps(talk.lines...)
	h.imports(0)
	h.keeps(append(talk.lines, talk.more...)...)
	h.imports(3)
	h.put(".gemini/tmp/shop/logs.json", talk.logs)
	h.imports(1)
	h.imports(0)
	h.check()
}

func TestGeminiSessionsAreImportedOnce(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	talk := newGeminiTalk(h, 1_767_000_000, 1_767_000_001)
	h.put(".gemini/tmp/shop/logs.json", talk.logs)
	h.keeps(talk.lines[:4]...)
	h.imports(6) // both files contain the session's prompt; the message is not the last of its turn
	h.keeps(append(talk.lines, talk.more...)...)
	h.imports(4)
	// The document that an earlier version would have written contains nothing new.
	document := talk.lines[0].(fields)
	document["messages"] = talk.lines[1:]
	pretty, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	h.put(".gemini/tmp/shop/chats/session-2026-01-01T00-00-g1.json", pretty)
	h.imports(0)
	wantLines(t, "rows", strings.Join(h.rows(storyRows), "\n")+"\n", `user_prompt|shop||a session whose file is gone
user_prompt|shop||make the refund test pass
command_error|shop||go test
FAIL
file_read|shop|a.go|`+filepath.Join(h.repo, "a.go")+`
file_edit|shop|a.go|a.go
command|shop||go test
agent_message|shop||It passes.
user_prompt|shop||again
command|shop||go test
agent_message|shop||Still.
`)
	h.check()
}

func TestCursorSessionsAreImportedOnceAlsoAfterTheirHooks(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	text := func(s string) fields { return fields{"type": "text", "text": s} }
	use := func(tool string, input fields) fields {
		return fields{"type": "tool_use", "name": tool, "input": input}
	}
	line := func(role string, blocks ...fields) fields {
		return fields{"role": role, "message": fields{"content": blocks}}
	}
	user := func(s string) fields {
		return line("user", text("<timestamp>Friday, Jan 2, 2026, 3:04 PM (UTC+1)</timestamp>\n<user_query>\n"+s+"\n</user_query>"))
	}
	ended := fields{"type": "turn_ended", "status": "success"}
	talk := []any{
		user("make the refund test pass"),
		line("assistant", text("I run it."), use("Shell", fields{"command": "go test"}), use("Read", fields{"path": "a.go"})),
		line("assistant", use("StrReplace", fields{"path": "a.go"}), use("Shell", fields{"command": "go test"}), use("CallMcpTool", fields{"server": "user-kiln", "toolName": "fire", "arguments": fields{"cone": 6}})),
		line("assistant", text("It passes.")),
		ended,
	}
	more := []any{user("again"), line("assistant", use("Shell", fields{"command": "go test"})), line("assistant", text("Still.")), ended}
	place := func(h *home, lines ...any) {
		trusted, err := json.Marshal(fields{"workspacePath": h.repo})
		if err != nil {
			t.Fatal(err)
		}
		h.put(".cursor/projects/shop/.workspace-trusted", trusted)
		h.put(".cursor/projects/shop/agent-transcripts/c1/c1.jsonl", jsonLines(t, lines...))
	}
	for name, hooks := range map[string][]fields{
		"after-events first": {
			{"hook_event_name": "afterShellExecution", "command": "go test", "output": "FAIL"},
			{"hook_event_name": "afterFileEdit", "file_path": "a.go", "edits": []fields{}},
			{"hook_event_name": "afterShellExecution", "command": "go test", "output": "ok"},
			{"hook_event_name": "afterMCPExecution", "tool_name": "fire", "mcp_server_name": "kiln", "tool_input": `{"cone":6}`},
		},
		"tool events first": {
			{"hook_event_name": "postToolUseFailure", "tool_use_id": "u1", "tool_name": "Shell", "tool_input": fields{"command": "go test"}, "error_message": "FAIL"},
			{"hook_event_name": "postToolUse", "tool_use_id": "u2", "tool_name": "Write", "tool_input": fields{"path": "a.go"}},
			{"hook_event_name": "postToolUse", "tool_use_id": "u3", "tool_name": "Shell", "tool_input": fields{"command": "go test"}},
			{"hook_event_name": "postToolUse", "tool_use_id": "u4", "tool_name": "CallMcpTool", "tool_input": fields{"server": "user-kiln", "toolName": "fire", "arguments": fields{"cone": 6}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			hook := func(f fields) {
				f["conversation_id"], f["generation_id"] = "c1", "g1"
				h.recorded(h.payload("", f))
			}
			hook(fields{"hook_event_name": "beforeSubmitPrompt", "prompt": "make the refund test pass"})
			hook(fields{"hook_event_name": "postToolUse", "tool_use_id": "u0", "tool_name": "Read", "tool_input": fields{"path": "a.go"}})
			for _, f := range hooks {
				hook(f)
			}
			hook(fields{"hook_event_name": "afterAgentResponse", "text": "It passes."})
			hook(fields{"hook_event_name": "stop", "status": "completed"})
			place(h, talk...)
			h.imports(0)
			place(h, append(append([]any{}, talk...), more...)...)
			h.imports(3)
			h.imports(0)
			h.check()
		})
	}
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		h := newHome(t)
		place(h, talk[:3]...)
		h.imports(3) // the call in the last line may not have run
		place(h, append(append([]any{}, talk...), more...)...)
		h.imports(7)
		h.imports(0)
		wantLines(t, "rows", strings.Join(h.rows(storyRows), "\n")+"\n", `user_prompt|shop||make the refund test pass
command|shop||go test
file_read|shop|a.go|a.go
file_edit|shop|a.go|a.go
command|shop||go test
mcp_call|shop||kiln.fire {"cone":6}
agent_message|shop||It passes.
user_prompt|shop||again
command|shop||go test
agent_message|shop||Still.
`)
		if got := h.rows(`SELECT DISTINCT datetime(timestamp, 'unixepoch') FROM observations`); len(got) != 1 || got[0] != "2026-01-02 14:04:00" {
			t.Errorf("times %q", got)
		}
		h.check()
	})
}
