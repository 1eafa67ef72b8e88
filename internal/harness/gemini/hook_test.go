package gemini_test

import (
	"reflect"
	"testing"

	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/readtest"
	"cairn/internal/observation"
)

func TestGeminiEventsAreMapped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event string
		more  harnesstest.Object
		want  observation.Event
	}{
		"start": {"SessionStart", harnesstest.Object{"source": "resume", "transcript_path": "/home/ada/.gemini/tmp/kiln/chats/s.jsonl"},
			observation.Event{Kind: observation.SessionStart, Source: "SessionStart", Text: "resume"}},
		"end": {"SessionEnd", harnesstest.Object{"reason": "exit", "transcript_path": `C:\Users\ada\.gemini\tmp\kiln\chats\s.jsonl`},
			observation.Event{Kind: observation.SessionEnd, Source: "SessionEnd", Text: "exit"}},
		"prompt": {"BeforeAgent", harnesstest.Object{"prompt": "glaze the pot"},
			observation.Event{Kind: observation.Prompt, Source: "UserPromptSubmit", Text: "glaze the pot"}},
		"prompt with files and cairn's own context": {"BeforeAgent", harnesstest.Object{
			"prompt": "<hook_context># cairn context\nx</hook_context>\n\nglaze @pot.go\n--- Content from referenced files ---\nContent from @pot.go:\npackage pot\n--- End of content ---"},
			observation.Event{Kind: observation.Prompt, Source: "UserPromptSubmit", Text: "glaze @pot.go"}},
		"prompt of parts": {"BeforeAgent", harnesstest.Object{"prompt": []any{harnesstest.Object{"text": "glaze "}, harnesstest.Object{"text": "it"}, harnesstest.Object{"inlineData": harnesstest.Object{}}, "!"}},
			observation.Event{Kind: observation.Prompt, Source: "UserPromptSubmit", Text: "glaze it!"}},
		"prompt of the machine": {"BeforeAgent", harnesstest.Object{"prompt": "I ran the following shell command:\n```sh\nls\n```"},
			observation.Event{Kind: observation.Prompt, Source: "UserPromptSubmit"}},
		"answer": {"AfterAgent", harnesstest.Object{"prompt": "glaze", "prompt_response": "Done.", "stop_hook_active": false},
			observation.Event{Kind: observation.Message, Source: "Stop", Role: "turn", Text: "Done.", TurnEnds: true}},
		"answer without words": {"AfterAgent", harnesstest.Object{"prompt_response": "[no response text]"},
			observation.Event{Kind: observation.Message, Source: "Stop", Role: "turn", TurnEnds: true}},
		"before a tool": {"BeforeTool", harnesstest.Object{"tool_name": "read_file", "tool_input": harnesstest.Object{"file_path": "a.go"}},
			observation.Event{Kind: observation.Touch, Source: "PreToolUse", Calls: []observation.Call{{Tool: "read_file", Action: observation.Read, Path: "a.go"}}}},
		"before compression": {"PreCompress", harnesstest.Object{"trigger": "auto"}, observation.Event{Kind: observation.Touch, Source: "PreCompress"}},
		"notification": {"Notification", harnesstest.Object{"notification_type": "ToolPermission", "transcript_path": "/x/.gemini/tmp/k/chats/s.json"},
			observation.Event{Kind: observation.Touch, Source: "Notification"}},
		"around the model":       {"AfterModel", harnesstest.Object{"llm_request": harnesstest.Object{}}, observation.Event{Source: "AfterModel"}},
		"choice of tools":        {"BeforeToolSelection", nil, observation.Event{Source: "BeforeToolSelection"}},
		"a tool without a name":  {"AfterTool", harnesstest.Object{"tool_input": harnesstest.Object{}}, observation.Event{Source: "PostToolUse"}},
		"own tool, by context":   {"AfterTool", harnesstest.Object{"tool_name": "search", "mcp_context": harnesstest.Object{"server_name": "cairn", "tool_name": "search"}}, observation.Event{Kind: observation.Touch, Source: "PostToolUse", Calls: []observation.Call{{Tool: "search", Action: observation.MCP, Server: "cairn", Method: "search"}}}},
		"own tool, marked":       {"AfterTool", harnesstest.Object{"tool_name": "mcp_cairn_whois", "tool_response": harnesstest.Object{"llmContent": []any{harnesstest.Object{"text": "<untrusted_context>\n{\"name\":\"BlueLake\"}\n</untrusted_context>"}}}}, observation.Event{Kind: observation.Touch, Source: "PostToolUse", Calls: []observation.Call{{Tool: "mcp_cairn_whois", Action: observation.MCP, Server: "cairn", Method: "whois", Result: `{"name":"BlueLake"}`}}}},
		"own tool, by its name":  {"AfterTool", harnesstest.Object{"tool_name": "mcp_cairn_search"}, observation.Event{Kind: observation.Touch, Source: "PostToolUse", Calls: []observation.Call{{Tool: "mcp_cairn_search", Action: observation.MCP, Server: "cairn", Method: "search"}}}},
		"own tool, by old names": {"AfterTool", harnesstest.Object{"tool_name": "cairn__search"}, observation.Event{Kind: observation.Touch, Source: "PostToolUse", Calls: []observation.Call{{Tool: "cairn__search", Action: observation.MCP, Server: "cairn", Method: "search"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.want.Harness, c.want.Session, c.want.Cwd = "gemini", "s-1", "/home/ada/kiln"
			for _, from := range []string{"gemini", "auto"} {
				if got := readtest.MustHookFrom(t, harnesstest.Payload(t, c.event, c.more), from); !reflect.DeepEqual(got, c.want) {
					t.Errorf("--from %s: got  %+v\nwant %+v", from, got, c.want)
				}
			}
		})
	}
}

func TestGeminiToolsAreMapped(t *testing.T) {
	t.Parallel()
	three, zero := 3, 0
	for name, c := range map[string]struct {
		tool     string
		input    harnesstest.Object
		response any
		want     observation.Call
	}{
		"shell": {"run_shell_command", harnesstest.Object{"command": "go vet ./...", "description": "Vet", "dir_path": "kiln", "is_background": true},
			harnesstest.Object{"llmContent": "Output: fine\nProcess Group PGID: 71", "returnDisplay": "fine"},
			observation.Call{Action: observation.Shell, Command: "go vet ./...", Description: "Vet", Background: true, Stdout: "fine", Stderr: "fine"}},
		"read":               {"read_file", harnesstest.Object{"file_path": "/k/a.go"}, harnesstest.Object{"llmContent": "package a"}, observation.Call{Action: observation.Read, Path: "/k/a.go"}},
		"read, old":          {"read_file", harnesstest.Object{"absolute_path": "/k/a.go"}, nil, observation.Call{Action: observation.Read, Path: "/k/a.go"}},
		"read of a list":     {"read_file", harnesstest.Object{"path": "a.go"}, []any{"x"}, observation.Call{Action: observation.Read, Path: "a.go"}},
		"many files":         {"read_many_files", harnesstest.Object{"include": []string{"*.go", "docs/**"}}, nil, observation.Call{Action: observation.Search, Pattern: "*.go, docs/**"}},
		"many files, one":    {"read_many_files", harnesstest.Object{"paths": []string{"a.go"}}, nil, observation.Call{Action: observation.Read, Path: "a.go"}},
		"many files, none":   {"read_many_files", harnesstest.Object{"include": 3}, nil, observation.Call{Action: observation.Search}},
		"write":              {"write_file", harnesstest.Object{"file_path": "a.go", "content": "x"}, harnesstest.Object{"llmContent": "Successfully created and wrote to new file: /k/a.go."}, observation.Call{Action: observation.Write, Path: "a.go", Created: true}},
		"write, told a diff": {"write_file", harnesstest.Object{"file_path": "a.go"}, harnesstest.Object{"llmContent": "", "returnDisplay": harnesstest.Object{"fileDiff": "+x", "isNewFile": true}}, observation.Call{Action: observation.Write, Path: "a.go", Created: true}},
		"overwrite":          {"write_file", harnesstest.Object{"file_path": "a.go"}, harnesstest.Object{"llmContent": "Successfully overwrote file: /k/a.go."}, observation.Call{Action: observation.Write, Path: "a.go"}},
		"replace":            {"replace", harnesstest.Object{"file_path": "a.go", "old_string": "x", "allow_multiple": true}, nil, observation.Call{Action: observation.Edit, Path: "a.go", ReplaceAll: true}},
		"replace, old":       {"replace", harnesstest.Object{"file_path": "a.go", "expected_replacements": 4}, nil, observation.Call{Action: observation.Edit, Path: "a.go", ReplaceAll: true}},
		"replace once":       {"replace", harnesstest.Object{"file_path": "a.go", "expected_replacements": 1}, nil, observation.Call{Action: observation.Edit, Path: "a.go"}},
		"glob":               {"glob", harnesstest.Object{"pattern": "**/*.go", "dir_path": "kiln"}, harnesstest.Object{"llmContent": "Found 3 file(s) matching \"**/*.go\""}, observation.Call{Action: observation.Search, Pattern: "**/*.go", Path: "kiln", NumFiles: &three}},
		"glob, none":         {"glob", harnesstest.Object{"pattern": "*.x"}, harnesstest.Object{"llmContent": "No files found matching pattern"}, observation.Call{Action: observation.Search, Pattern: "*.x", NumFiles: &zero}},
		"grep, old":          {"search_file_content", harnesstest.Object{"pattern": "cone", "path": "kiln"}, harnesstest.Object{"llmContent": "Found 3 matches"}, observation.Call{Action: observation.Search, Pattern: "cone", Path: "kiln"}},
		"grep":               {"grep_search", harnesstest.Object{"pattern": "cone", "dir_path": "kiln"}, nil, observation.Call{Action: observation.Search, Pattern: "cone", Path: "kiln"}},
		"list":               {"list_directory", harnesstest.Object{"dir_path": "/k"}, nil, observation.Call{Action: observation.Search, Path: "/k"}},
		"fetch":              {"web_fetch", harnesstest.Object{"prompt": "Summarise https://kiln.example/cones, please"}, nil, observation.Call{Action: observation.Fetch, URL: "https://kiln.example/cones"}},
		"fetch of an url":    {"web_fetch", harnesstest.Object{"url": "http://kiln.example"}, nil, observation.Call{Action: observation.Fetch, URL: "http://kiln.example"}},
		"fetch of nothing":   {"web_fetch", harnesstest.Object{"prompt": "the page"}, nil, observation.Call{Action: observation.Fetch, URL: "the page"}},
		"web search":         {"google_web_search", harnesstest.Object{"query": "cone 6"}, nil, observation.Call{Action: observation.WebSearch, Query: "cone 6"}},
		"question":           {"ask_user", harnesstest.Object{"questions": []any{harnesstest.Object{"question": "Which glaze?"}}}, nil, observation.Call{Action: observation.Ask, Question: "Which glaze?"}},
		"skill":              {"activate_skill", harnesstest.Object{"name": "throwing"}, nil, observation.Call{Action: observation.Skill, SkillName: "throwing"}},
		"MCP":                {"mcp_kiln_set_cone", harnesstest.Object{"cone": 6}, nil, observation.Call{Action: observation.MCP, Server: "kiln", Method: "set_cone", Args: []observation.Arg{{Name: "cone", Value: "6"}}}},
		"MCP, old":           {"mcp__kiln__set", nil, nil, observation.Call{Action: observation.MCP, Server: "kiln", Method: "set"}},
		"no MCP":             {"mcp_kiln", nil, nil, observation.Call{}},
		"another":            {"write_todos", harnesstest.Object{"todos": []any{}}, nil, observation.Call{}},
		"input of no use":    {"run_shell_command", nil, 7, observation.Call{Action: observation.Shell}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more := harnesstest.Object{"tool_name": c.tool, "tool_response": c.response}
			if c.input != nil {
				more["tool_input"] = c.input
			}
			e := readtest.MustHookFrom(t, harnesstest.Payload(t, "AfterTool", more), "auto")
			c.want.Tool = c.tool
			if e.Kind != observation.Tool || e.Source != "PostToolUse" || !reflect.DeepEqual(harnesstest.WithoutPieces(e.Calls), []observation.Call{c.want}) {
				t.Errorf("got  %+v\nwant %+v", e, c.want)
			}
		})
	}
}

func TestGeminiMCPContextNamesTheServer(t *testing.T) {
	t.Parallel()
	e := readtest.MustHookFrom(t, harnesstest.Payload(t, "AfterTool", harnesstest.Object{
		"tool_name": "set", "mcp_context": harnesstest.Object{"server_name": "kiln_one", "tool_name": "set_cone"}, "tool_input": harnesstest.Object{"a": "b"},
	}), "gemini")
	want := []observation.Call{{Tool: "set", Action: observation.MCP, Server: "kiln_one", Method: "set_cone", Args: []observation.Arg{{Name: "a", Value: "b"}}}}
	if !reflect.DeepEqual(e.Calls, want) {
		t.Errorf("%+v", e.Calls)
	}
}

func TestGeminiFailuresAreJudged(t *testing.T) {
	t.Parallel()
	code := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		tool     string
		response any
		source   string
		want     observation.Call
	}{
		"error object": {"read_file", harnesstest.Object{"llmContent": "File not found: a.go", "returnDisplay": "File not found.", "error": harnesstest.Object{"message": "no such file: a.go", "type": "file_not_found"}},
			"PostToolUseFailure", observation.Call{Action: observation.Read, Failed: true, Error: "no such file: a.go"}},
		"error text":             {"read_file", harnesstest.Object{"error": "gone"}, "PostToolUseFailure", observation.Call{Action: observation.Read, Failed: true, Error: "gone"}},
		"error without a word":   {"read_file", harnesstest.Object{"llmContent": []any{harnesstest.Object{"text": "it broke"}}, "error": harnesstest.Object{"type": 3}}, "PostToolUseFailure", observation.Call{Action: observation.Read, Failed: true, Error: "it broke"}},
		"error only shown":       {"read_file", harnesstest.Object{"returnDisplay": "it broke", "error": true}, "PostToolUseFailure", observation.Call{Action: observation.Read, Failed: true, Error: "it broke"}},
		"no error":               {"read_file", harnesstest.Object{"llmContent": "x", "error": nil}, "PostToolUse", observation.Call{Action: observation.Read}},
		"exit code":              {"run_shell_command", harnesstest.Object{"llmContent": "Output: FAIL kiln\nExit Code: 1\nProcess Group PGID: 9"}, "PostToolUse", observation.Call{Action: observation.Shell, Failed: true, ExitCode: code(1), Error: "FAIL kiln", Stdout: "FAIL kiln", Stderr: "FAIL kiln"}},
		"exit code, marked text": {"run_shell_command", harnesstest.Object{"llmContent": "<untrusted_context>\nOutput: FAIL\nExit Code: 2\n</untrusted_context>"}, "PostToolUse", observation.Call{Action: observation.Shell, Failed: true, ExitCode: code(2), Error: "FAIL", Stdout: "FAIL", Stderr: "FAIL"}},
		"exit code, old form": {"run_shell_command", harnesstest.Object{"llmContent": "Command: go vet\nDirectory: (root)\nStdout: a\nStderr: b\nError: (none)\nExit Code: 3\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 12"},
			"PostToolUse", observation.Call{Action: observation.Shell, Failed: true, ExitCode: code(3), Error: "a\nb", Stdout: "a\nb", Stderr: "a\nb"}},
		"exit code 0, old form": {"run_shell_command", harnesstest.Object{"llmContent": "Command: true\nDirectory: (root)\nStdout: (empty)\nStderr: (empty)\nError: (none)\nExit Code: 0\nSignal: (none)"},
			"PostToolUse", observation.Call{Action: observation.Shell, ExitCode: code(0)}},
		"a code in the output":  {"run_shell_command", harnesstest.Object{"llmContent": "Output: Exit Code: 9\nall fine"}, "PostToolUse", observation.Call{Action: observation.Shell, Stdout: "Exit Code: 9\nall fine", Stderr: "Exit Code: 9\nall fine"}},
		"could not start":       {"run_shell_command", harnesstest.Object{"llmContent": "Output: (empty)\nError: spawn ENOENT", "error": harnesstest.Object{"message": "spawn ENOENT"}}, "PostToolUseFailure", observation.Call{Action: observation.Shell, Failed: true, Error: "spawn ENOENT", Stdout: "spawn ENOENT", Stderr: "spawn ENOENT"}},
		"cancelled":             {"run_shell_command", harnesstest.Object{"llmContent": "Command was cancelled by user before it could complete."}, "PostToolUse", observation.Call{Action: observation.Shell, Interrupted: true, Stdout: "Command was cancelled by user before it could complete.", Stderr: "Command was cancelled by user before it could complete."}},
		"response that is text": {"run_shell_command", "Output: x\nExit Code: 4", "PostToolUse", observation.Call{Action: observation.Shell, Failed: true, ExitCode: code(4), Error: "x", Stdout: "x", Stderr: "x"}},
		"only facts":            {"run_shell_command", "Exit Code: 5", "PostToolUse", observation.Call{Action: observation.Shell, Failed: true, ExitCode: code(5), Error: "Exit Code: 5"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := readtest.MustHookFrom(t, harnesstest.Payload(t, "AfterTool", harnesstest.Object{"tool_name": c.tool, "tool_use_id": "u1", "duration_ms": 12, "tool_response": c.response}), "gemini")
			c.want.Tool, c.want.ID, c.want.DurationMS = c.tool, "u1", 12
			if e.Source != c.source || !reflect.DeepEqual(harnesstest.WithoutPieces(e.Calls), []observation.Call{c.want}) {
				t.Errorf("got  %s %+v\nwant %s %+v", e.Source, e.Calls, c.source, c.want)
			}
		})
	}
}
