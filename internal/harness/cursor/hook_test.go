package cursor_test

import (
	"reflect"
	"testing"

	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/readtest"
	"cairn/internal/observation"
)

// cursorPayload returns a payload as Cursor sends it. A nil value removes a common member.
func cursorPayload(t testing.TB, event string, more harnesstest.Object) []byte {
	t.Helper()
	return harnesstest.Merged(t, harnesstest.Object{
		"conversation_id": "c-1", "generation_id": "g-1", "model": "auto", "hook_event_name": event, "cursor_version": "3.18.25",
		"workspace_roots": []string{"/home/ada/kiln", "/home/ada/pots"}, "user_email": nil, "transcript_path": nil,
	}, more)
}

func TestCursorEventsAreMapped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event string
		more  harnesstest.Object
		want  observation.Event
	}{
		"start": {"sessionStart", harnesstest.Object{"session_id": "c-1", "composer_mode": "agent", "model": "m-9"},
			observation.Event{Kind: observation.SessionStart, Source: "SessionStart", Text: "startup", Model: "m-9"}},
		"end": {"sessionEnd", harnesstest.Object{"reason": "window_close", "duration_ms": 4}, observation.Event{Kind: observation.SessionEnd, Source: "SessionEnd", Text: "window_close"}},
		"prompt": {"beforeSubmitPrompt", harnesstest.Object{"prompt": "glaze the <my_pot> now \n", "attachments": []any{}},
			observation.Event{Kind: observation.Prompt, Source: "UserPromptSubmit", Text: "glaze the <my_pot> now"}},
		"answer": {"afterAgentResponse", harnesstest.Object{"text": "Done.\n\n[REDACTED]\n"},
			observation.Event{Kind: observation.Message, Source: "Stop", Role: "turn", Text: "Done.", TurnEnds: true}},
		"stop":              {"stop", harnesstest.Object{"status": "completed", "loop_count": 0}, observation.Event{Kind: observation.Message, Source: "Stop", Role: "turn", TurnEnds: true}},
		"before compaction": {"preCompact", harnesstest.Object{"trigger": "auto"}, observation.Event{Kind: observation.Touch, Source: "preCompact"}},
		"before a shell":    {"beforeShellExecution", harnesstest.Object{"command": "ls"}, observation.Event{Kind: observation.Touch, Source: "PreToolUse"}},
		"before MCP":        {"beforeMCPExecution", harnesstest.Object{"tool_name": "x"}, observation.Event{Kind: observation.Touch, Source: "PreToolUse"}},
		"before reading":    {"beforeReadFile", harnesstest.Object{"file_path": "/k/a.go", "content": "x"}, observation.Event{Kind: observation.Touch, Source: "PreToolUse"}},
		"before a tool": {"preToolUse", harnesstest.Object{"tool_name": "Read", "tool_use_id": "u1", "tool_input": harnesstest.Object{"path": "/k/a.go"}},
			observation.Event{Kind: observation.Touch, Source: "PreToolUse", Calls: []observation.Call{{ID: "u1", Tool: "Read", Action: observation.Read, Path: "/k/a.go"}}}},
		"denied": {"postToolUseFailure", harnesstest.Object{"tool_name": "Read", "tool_input": harnesstest.Object{"path": "/k/a.go"}, "failure_type": "permission_denied", "error_message": "no"},
			observation.Event{Kind: observation.Touch, Source: "PostToolUseFailure", Calls: []observation.Call{{Tool: "Read", Action: observation.Read, Path: "/k/a.go"}}}},
		"own tool": {"afterMCPExecution", harnesstest.Object{"tool_name": "search", "mcp_server_name": "user-cairn", "tool_input": "{}", "result_json": "{}"},
			observation.Event{Kind: observation.Touch, Source: "PostToolUse", Calls: []observation.Call{{Tool: "search", Action: observation.MCP, Server: "cairn", Method: "search", Result: "{}"}}}},
		"tool without a name": {"postToolUse", harnesstest.Object{"tool_input": harnesstest.Object{}}, observation.Event{Source: "PostToolUse"}},
		"thought":             {"afterAgentThought", harnesstest.Object{"text": "hm"}, observation.Event{Source: "afterAgentThought"}},
		"completion":          {"afterTabFileEdit", harnesstest.Object{"file_path": "/k/a.go"}, observation.Event{Source: "afterTabFileEdit"}},
		"subagent":            {"subagentStop", harnesstest.Object{"summary": "x"}, observation.Event{Source: "subagentStop"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.want.Harness, c.want.Session, c.want.Cwd, c.want.PromptID = "cursor", "c-1", "/home/ada/kiln", "g-1"
			for _, from := range []string{"cursor", "auto"} {
				if got := readtest.MustHookFrom(t, cursorPayload(t, c.event, c.more), from); !reflect.DeepEqual(got, c.want) {
					t.Errorf("--from %s: got  %+v\nwant %+v", from, got, c.want)
				}
			}
		})
	}
}

func TestCursorWorksInTheFirstFolderThatIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more harnesstest.Object
		want string
	}{
		"own":                {harnesstest.Object{"cwd": "/srv/kiln"}, "/srv/kiln"},
		"own is blank":       {harnesstest.Object{"cwd": " "}, "/home/ada/kiln"},
		"own is a number":    {harnesstest.Object{"cwd": 4}, "/home/ada/kiln"},
		"first root blank":   {harnesstest.Object{"workspace_roots": []any{"", 3, "/srv"}}, "/srv"},
		"no root":            {harnesstest.Object{"workspace_roots": []any{}}, "/home/ada"},
		"none":               {harnesstest.Object{"workspace_roots": nil}, "/home/ada"},
		"roots are a text":   {harnesstest.Object{"workspace_roots": "/srv"}, "/home/ada"},
		"drive with a slash": {harnesstest.Object{"workspace_roots": []any{"/c:/Users/ada/kiln"}}, "c:/Users/ada/kiln"},
	} {
		if e := readtest.MustHookFrom(t, cursorPayload(t, "stop", c.more), "auto"); e.Cwd != c.want {
			t.Errorf("%s: %q, want %q", name, e.Cwd, c.want)
		}
	}
	if e := readtest.MustHookFrom(t, cursorPayload(t, "stop", harnesstest.Object{"conversation_id": nil, "session_id": "c-2"}), "cursor"); e.Session != "c-2" {
		t.Errorf("session %q", e.Session)
	}
}

func TestCursorToolsAreMapped(t *testing.T) {
	t.Parallel()
	code := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		event  string
		more   harnesstest.Object
		source string
		want   []observation.Call
	}{
		"shell, after": {"afterShellExecution", harnesstest.Object{"command": "go test ./...", "output": "ok kiln", "duration": 1234, "sandbox": false}, "PostToolUse",
			[]observation.Call{{Tool: "Shell", Action: observation.Shell, Command: "go test ./...", Stdout: "ok kiln", Stderr: "ok kiln", DurationMS: 1234}}},
		"shell, after, with a code": {"afterShellExecution", harnesstest.Object{"command": "go vet", "output": "bad", "exit_code": 2}, "PostToolUse",
			[]observation.Call{{Tool: "Shell", Action: observation.Shell, Command: "go vet", Stdout: "bad", Stderr: "bad", Failed: true, ExitCode: code(2), Error: "bad"}}},
		"shell": {"postToolUse", harnesstest.Object{"tool_name": "Shell", "tool_use_id": "u1", "tool_input": harnesstest.Object{"command": "ls", "description": "List"}, "tool_output": `{"exitCode":0,"stdout":"a.go"}`, "duration": 5}, "PostToolUse",
			[]observation.Call{{ID: "u1", Tool: "Shell", Action: observation.Shell, Command: "ls", Description: "List", Stdout: "a.go", ExitCode: code(0), DurationMS: 5}}},
		"shell, its output in one": {"postToolUse", harnesstest.Object{"tool_name": "Shell", "tool_input": harnesstest.Object{"command": "ls"}, "tool_output": `{"output":"no","exitCode":1}`}, "PostToolUse",
			[]observation.Call{{Tool: "Shell", Action: observation.Shell, Command: "ls", Stdout: "no", Stderr: "no", ExitCode: code(1), Failed: true}}},
		"shell failed": {"postToolUseFailure", harnesstest.Object{"tool_name": "Shell", "tool_input": harnesstest.Object{"command": "ls"}, "error_message": "Command timed out after 30s", "failure_type": "timeout", "is_interrupt": true}, "PostToolUseFailure",
			[]observation.Call{{Tool: "Shell", Action: observation.Shell, Command: "ls", Failed: true, Error: "Command timed out after 30s"}}},
		"file, after": {"afterFileEdit", harnesstest.Object{"file_path": "/k/a.go", "edits": []any{harnesstest.Object{"old_string": "a", "new_string": "b"}}}, "PostToolUse",
			[]observation.Call{{Tool: "Edit", Action: observation.Edit, Path: "/k/a.go"}}},
		"MCP, after": {"afterMCPExecution", harnesstest.Object{"tool_name": "set_cone", "tool_input": `{"cone":6}`, "mcp_server_name": "kiln", "result_json": `{"content":[{"type":"text","text":"ok"}]}`, "duration": 7}, "PostToolUse",
			[]observation.Call{{Tool: "set_cone", Action: observation.MCP, Server: "kiln", Method: "set_cone", Args: []observation.Arg{{Name: "cone", Value: "6"}}, DurationMS: 7, Output: "ok"}}},
		"MCP, after, failed": {"afterMCPExecution", harnesstest.Object{"tool_name": "MCP:set", "tool_input": "not JSON", "result_json": `{"isError":true,"content":[{"type":"text","text":"too hot"}]}`}, "PostToolUse",
			[]observation.Call{{Tool: "MCP:set", Action: observation.MCP, Method: "set", Failed: true, Error: "too hot"}}},
		"MCP": {"postToolUse", harnesstest.Object{"tool_name": "MCP:set", "tool_input": harnesstest.Object{"a": "b"}}, "PostToolUse",
			[]observation.Call{{Tool: "MCP:set", Action: observation.MCP, Method: "set", Args: []observation.Arg{{Name: "a", Value: "b"}}}}},
		"MCP, by the general tool": {"postToolUse", harnesstest.Object{"tool_name": "CallMcpTool", "tool_input": harnesstest.Object{"server": "user-kiln", "toolName": "set", "arguments": harnesstest.Object{"a": "b"}}}, "PostToolUse",
			[]observation.Call{{Tool: "CallMcpTool", Action: observation.MCP, Server: "kiln", Method: "set", Args: []observation.Arg{{Name: "a", Value: "b"}}}}},
		"MCP, by joined names": {"postToolUse", harnesstest.Object{"tool_name": "mcp__kiln__set", "tool_input": harnesstest.Object{}}, "PostToolUse",
			[]observation.Call{{Tool: "mcp__kiln__set", Action: observation.MCP, Server: "kiln", Method: "set"}}},
		"read":    {"postToolUse", harnesstest.Object{"tool_name": "Read", "tool_input": harnesstest.Object{"path": "/k/a.go"}}, "PostToolUse", []observation.Call{{Tool: "Read", Action: observation.Read, Path: "/k/a.go"}}},
		"write":   {"postToolUse", harnesstest.Object{"tool_name": "Write", "tool_input": harnesstest.Object{"path": "a.go", "contents": "x"}}, "PostToolUse", []observation.Call{{Tool: "Write", Action: observation.Write, Path: "a.go"}}},
		"replace": {"postToolUse", harnesstest.Object{"tool_name": "StrReplace", "tool_input": harnesstest.Object{"path": "a.go", "replace_all": true}}, "PostToolUse", []observation.Call{{Tool: "StrReplace", Action: observation.Edit, Path: "a.go", ReplaceAll: true}}},
		"delete":  {"postToolUse", harnesstest.Object{"tool_name": "Delete", "tool_input": harnesstest.Object{"path": "a.go"}}, "PostToolUse", []observation.Call{{Tool: "Delete", Action: observation.Edit, Path: "a.go", Deleted: true}}},
		"notebook": {"postToolUse", harnesstest.Object{"tool_name": "EditNotebook", "tool_input": harnesstest.Object{"target_notebook": "a.ipynb"}}, "PostToolUse",
			[]observation.Call{{Tool: "EditNotebook", Action: observation.Edit, Path: "a.ipynb"}}},
		"patch": {"postToolUse", harnesstest.Object{"tool_name": "ApplyPatch", "tool_use_id": "u2", "tool_input": "*** Begin Patch\n*** Add File: a.go\n+x\n*** Delete File: b.go\n*** End Patch"}, "PostToolUse",
			[]observation.Call{{ID: "u2", Tool: "ApplyPatch", Action: observation.Write, Path: "a.go", Created: true}, {ID: "u2", Part: 1, Tool: "ApplyPatch", Action: observation.Edit, Path: "b.go", Deleted: true}}},
		"patch without files": {"postToolUse", harnesstest.Object{"tool_name": "ApplyPatch", "tool_input": harnesstest.Object{"path": "a.go"}}, "PostToolUse", []observation.Call{{Tool: "ApplyPatch", Action: observation.Edit, Path: "a.go"}}},
		"grep":                {"postToolUse", harnesstest.Object{"tool_name": "Grep", "tool_input": harnesstest.Object{"pattern": "cone", "path": "/k", "output_mode": "content"}}, "PostToolUse", []observation.Call{{Tool: "Grep", Action: observation.Search, Pattern: "cone", Path: "/k", Mode: "content"}}},
		"glob":                {"postToolUse", harnesstest.Object{"tool_name": "Glob", "tool_input": harnesstest.Object{"glob_pattern": "*.go", "target_directory": "/k"}}, "PostToolUse", []observation.Call{{Tool: "Glob", Action: observation.Search, Pattern: "*.go", Path: "/k"}}},
		"meaning":             {"postToolUse", harnesstest.Object{"tool_name": "SemanticSearch", "tool_input": harnesstest.Object{"query": "where is heat", "target_directories": []string{"/k"}}}, "PostToolUse", []observation.Call{{Tool: "SemanticSearch", Action: observation.Search, Pattern: "where is heat", Path: "/k"}}},
		"web search":          {"postToolUse", harnesstest.Object{"tool_name": "WebSearch", "tool_input": harnesstest.Object{"search_term": "cone 6"}}, "PostToolUse", []observation.Call{{Tool: "WebSearch", Action: observation.WebSearch, Query: "cone 6"}}},
		"web page":            {"postToolUse", harnesstest.Object{"tool_name": "WebFetch", "tool_input": harnesstest.Object{"url": "https://kiln.example"}}, "PostToolUse", []observation.Call{{Tool: "WebFetch", Action: observation.Fetch, URL: "https://kiln.example"}}},
		"task":                {"postToolUse", harnesstest.Object{"tool_name": "Task", "tool_input": harnesstest.Object{"description": "Find heat", "prompt": "look", "subagent_type": "explore"}}, "PostToolUse", []observation.Call{{Tool: "Task", Action: observation.Spawn, Description: "Find heat", Prompt: "look", SubagentType: "explore"}}},
		"question":            {"postToolUse", harnesstest.Object{"tool_name": "AskQuestion", "tool_input": harnesstest.Object{"questions": []any{harnesstest.Object{"prompt": "Which?"}}}}, "PostToolUse", []observation.Call{{Tool: "AskQuestion", Action: observation.Ask, Question: "Which?"}}},
		"another":             {"postToolUse", harnesstest.Object{"tool_name": "TodoWrite", "tool_input": 5, "tool_output": []int{1}}, "PostToolUse", []observation.Call{{Tool: "TodoWrite"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := readtest.MustHookFrom(t, cursorPayload(t, c.event, c.more), "auto")
			if e.Kind != observation.Tool || e.Source != c.source || !reflect.DeepEqual(harnesstest.WithoutPieces(e.Calls), c.want) {
				t.Errorf("got  %s %+v\nwant %s %+v", e.Source, e.Calls, c.source, c.want)
			}
		})
	}
}
