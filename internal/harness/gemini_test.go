package harness

import (
	"reflect"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/observation"
)

func mustHookFrom(t *testing.T, payload []byte, from string) observation.Event {
	t.Helper()
	e, err := Hook(payload, from, "/home/ada")
	if err != nil {
		t.Fatalf("Hook: %v", err)
	}
	return e
}

func TestGeminiEventsAreMapped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event string
		more  object
		want  observation.Event
	}{
		"start": {"SessionStart", object{"source": "resume", "transcript_path": "/home/ada/.gemini/tmp/kiln/chats/s.jsonl"},
			observation.Event{Kind: observation.SessionStart, Source: "SessionStart", Text: "resume"}},
		"end": {"SessionEnd", object{"reason": "exit", "transcript_path": `C:\Users\ada\.gemini\tmp\kiln\chats\s.jsonl`},
			observation.Event{Kind: observation.SessionEnd, Source: "SessionEnd", Text: "exit"}},
		"prompt": {"BeforeAgent", object{"prompt": "glaze the pot"},
			observation.Event{Kind: observation.Prompt, Source: "UserPromptSubmit", Text: "glaze the pot"}},
		"prompt with files and cairn's own context": {"BeforeAgent", object{
			"prompt": "<hook_context># cairn context\nx</hook_context>\n\nglaze @pot.go\n--- Content from referenced files ---\nContent from @pot.go:\npackage pot\n--- End of content ---"},
			observation.Event{Kind: observation.Prompt, Source: "UserPromptSubmit", Text: "glaze @pot.go"}},
		"prompt of parts": {"BeforeAgent", object{"prompt": []any{object{"text": "glaze "}, object{"text": "it"}, object{"inlineData": object{}}, "!"}},
			observation.Event{Kind: observation.Prompt, Source: "UserPromptSubmit", Text: "glaze it!"}},
		"prompt of the machine": {"BeforeAgent", object{"prompt": "I ran the following shell command:\n```sh\nls\n```"},
			observation.Event{Kind: observation.Prompt, Source: "UserPromptSubmit"}},
		"answer": {"AfterAgent", object{"prompt": "glaze", "prompt_response": "Done.", "stop_hook_active": false},
			observation.Event{Kind: observation.Message, Source: "Stop", Role: "turn", Text: "Done.", TurnEnds: true}},
		"answer without words": {"AfterAgent", object{"prompt_response": "[no response text]"},
			observation.Event{Kind: observation.Message, Source: "Stop", Role: "turn", TurnEnds: true}},
		"before a tool": {"BeforeTool", object{"tool_name": "read_file", "tool_input": object{"file_path": "a.go"}},
			observation.Event{Kind: observation.Touch, Source: "PreToolUse", Calls: []observation.Call{{Tool: "read_file", Action: observation.Read, Path: "a.go"}}}},
		"before compression": {"PreCompress", object{"trigger": "auto"}, observation.Event{Kind: observation.Touch, Source: "PreCompress"}},
		"notification": {"Notification", object{"notification_type": "ToolPermission", "transcript_path": "/x/.gemini/tmp/k/chats/s.json"},
			observation.Event{Kind: observation.Touch, Source: "Notification"}},
		"around the model":       {"AfterModel", object{"llm_request": object{}}, observation.Event{Source: "AfterModel"}},
		"choice of tools":        {"BeforeToolSelection", nil, observation.Event{Source: "BeforeToolSelection"}},
		"a tool without a name":  {"AfterTool", object{"tool_input": object{}}, observation.Event{Source: "PostToolUse"}},
		"own tool, by context":   {"AfterTool", object{"tool_name": "search", "mcp_context": object{"server_name": "cairn", "tool_name": "search"}}, observation.Event{Kind: observation.Touch, Source: "PostToolUse", Calls: []observation.Call{{Tool: "search", Action: observation.MCP, Server: "cairn", Method: "search"}}}},
		"own tool, marked":       {"AfterTool", object{"tool_name": "mcp_cairn_whois", "tool_response": object{"llmContent": []any{object{"text": "<untrusted_context>\n{\"name\":\"BlueLake\"}\n</untrusted_context>"}}}}, observation.Event{Kind: observation.Touch, Source: "PostToolUse", Calls: []observation.Call{{Tool: "mcp_cairn_whois", Action: observation.MCP, Server: "cairn", Method: "whois", Result: `{"name":"BlueLake"}`}}}},
		"own tool, by its name":  {"AfterTool", object{"tool_name": "mcp_cairn_search"}, observation.Event{Kind: observation.Touch, Source: "PostToolUse", Calls: []observation.Call{{Tool: "mcp_cairn_search", Action: observation.MCP, Server: "cairn", Method: "search"}}}},
		"own tool, by old names": {"AfterTool", object{"tool_name": "cairn__search"}, observation.Event{Kind: observation.Touch, Source: "PostToolUse", Calls: []observation.Call{{Tool: "cairn__search", Action: observation.MCP, Server: "cairn", Method: "search"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.want.Harness, c.want.Session, c.want.Cwd = "gemini", "s-1", "/home/ada/kiln"
			for _, from := range []string{"gemini", "auto"} {
				if got := mustHookFrom(t, payload(t, c.event, c.more), from); !reflect.DeepEqual(got, c.want) {
					t.Errorf("--from %s: got  %+v\nwant %+v", from, got, c.want)
				}
			}
		})
	}
}

func TestAutoFindsOutWhoSent(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		`"conversation_id":"c","hook_event_name":"BeforeAgent","turn_id":"t"`:                           "cursor",
		`"conversation_id":null,"hook_event_name":"Stop"`:                                               "claude",
		`"hook_event_name":"AfterTool","turn_id":"t"`:                                                   "gemini",
		`"hook_event_name":"SessionStart","transcript_path":"/h/.gemini/tmp/k/chats/s.jsonl"`:           "gemini",
		`"hook_event_name":"SessionStart","transcript_path":"/h/.codex/sessions/r.jsonl","turn_id":"t"`: "codex",
		`"hook_event_name":"SessionStart","transcript_path":"/h/.claude/projects/p/s.jsonl"`:            "claude",
		`"hook_event_name":"PostToolUse","transcript_path":"/h/.gemini/x"`:                              "claude",
		`"hook_event_name":["AfterTool"]`:                                                               "",
	} {
		e, err := Hook([]byte(`{"session_id":"s","cwd":"/k",`+more+`}`), "auto", "")
		if e.Harness != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", more, e.Harness, err)
		}
	}
}

func TestGeminiToolsAreMapped(t *testing.T) {
	t.Parallel()
	three, zero := 3, 0
	for name, c := range map[string]struct {
		tool     string
		input    object
		response any
		want     observation.Call
	}{
		"shell": {"run_shell_command", object{"command": "go vet ./...", "description": "Vet", "dir_path": "kiln", "is_background": true},
			object{"llmContent": "Output: fine\nProcess Group PGID: 71", "returnDisplay": "fine"},
			observation.Call{Action: observation.Shell, Command: "go vet ./...", Description: "Vet", Background: true, Stdout: "fine", Stderr: "fine"}},
		"read":               {"read_file", object{"file_path": "/k/a.go"}, object{"llmContent": "package a"}, observation.Call{Action: observation.Read, Path: "/k/a.go"}},
		"read, old":          {"read_file", object{"absolute_path": "/k/a.go"}, nil, observation.Call{Action: observation.Read, Path: "/k/a.go"}},
		"read of a list":     {"read_file", object{"path": "a.go"}, []any{"x"}, observation.Call{Action: observation.Read, Path: "a.go"}},
		"many files":         {"read_many_files", object{"include": []string{"*.go", "docs/**"}}, nil, observation.Call{Action: observation.Search, Pattern: "*.go, docs/**"}},
		"many files, one":    {"read_many_files", object{"paths": []string{"a.go"}}, nil, observation.Call{Action: observation.Read, Path: "a.go"}},
		"many files, none":   {"read_many_files", object{"include": 3}, nil, observation.Call{Action: observation.Search}},
		"write":              {"write_file", object{"file_path": "a.go", "content": "x"}, object{"llmContent": "Successfully created and wrote to new file: /k/a.go."}, observation.Call{Action: observation.Write, Path: "a.go", Created: true}},
		"write, told a diff": {"write_file", object{"file_path": "a.go"}, object{"llmContent": "", "returnDisplay": object{"fileDiff": "+x", "isNewFile": true}}, observation.Call{Action: observation.Write, Path: "a.go", Created: true}},
		"overwrite":          {"write_file", object{"file_path": "a.go"}, object{"llmContent": "Successfully overwrote file: /k/a.go."}, observation.Call{Action: observation.Write, Path: "a.go"}},
		"replace":            {"replace", object{"file_path": "a.go", "old_string": "x", "allow_multiple": true}, nil, observation.Call{Action: observation.Edit, Path: "a.go", ReplaceAll: true}},
		"replace, old":       {"replace", object{"file_path": "a.go", "expected_replacements": 4}, nil, observation.Call{Action: observation.Edit, Path: "a.go", ReplaceAll: true}},
		"replace once":       {"replace", object{"file_path": "a.go", "expected_replacements": 1}, nil, observation.Call{Action: observation.Edit, Path: "a.go"}},
		"glob":               {"glob", object{"pattern": "**/*.go", "dir_path": "kiln"}, object{"llmContent": "Found 3 file(s) matching \"**/*.go\""}, observation.Call{Action: observation.Search, Pattern: "**/*.go", Path: "kiln", NumFiles: &three}},
		"glob, none":         {"glob", object{"pattern": "*.x"}, object{"llmContent": "No files found matching pattern"}, observation.Call{Action: observation.Search, Pattern: "*.x", NumFiles: &zero}},
		"grep, old":          {"search_file_content", object{"pattern": "cone", "path": "kiln"}, object{"llmContent": "Found 3 matches"}, observation.Call{Action: observation.Search, Pattern: "cone", Path: "kiln"}},
		"grep":               {"grep_search", object{"pattern": "cone", "dir_path": "kiln"}, nil, observation.Call{Action: observation.Search, Pattern: "cone", Path: "kiln"}},
		"list":               {"list_directory", object{"dir_path": "/k"}, nil, observation.Call{Action: observation.Search, Path: "/k"}},
		"fetch":              {"web_fetch", object{"prompt": "Summarise https://kiln.example/cones, please"}, nil, observation.Call{Action: observation.Fetch, URL: "https://kiln.example/cones"}},
		"fetch of an url":    {"web_fetch", object{"url": "http://kiln.example"}, nil, observation.Call{Action: observation.Fetch, URL: "http://kiln.example"}},
		"fetch of nothing":   {"web_fetch", object{"prompt": "the page"}, nil, observation.Call{Action: observation.Fetch, URL: "the page"}},
		"web search":         {"google_web_search", object{"query": "cone 6"}, nil, observation.Call{Action: observation.WebSearch, Query: "cone 6"}},
		"question":           {"ask_user", object{"questions": []any{object{"question": "Which glaze?"}}}, nil, observation.Call{Action: observation.Ask, Question: "Which glaze?"}},
		"skill":              {"activate_skill", object{"name": "throwing"}, nil, observation.Call{Action: observation.Skill, SkillName: "throwing"}},
		"MCP":                {"mcp_kiln_set_cone", object{"cone": 6}, nil, observation.Call{Action: observation.MCP, Server: "kiln", Method: "set_cone", Args: []observation.Arg{{Name: "cone", Value: "6"}}}},
		"MCP, old":           {"mcp__kiln__set", nil, nil, observation.Call{Action: observation.MCP, Server: "kiln", Method: "set"}},
		"no MCP":             {"mcp_kiln", nil, nil, observation.Call{}},
		"another":            {"write_todos", object{"todos": []any{}}, nil, observation.Call{}},
		"input of no use":    {"run_shell_command", nil, 7, observation.Call{Action: observation.Shell}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more := object{"tool_name": c.tool, "tool_response": c.response}
			if c.input != nil {
				more["tool_input"] = c.input
			}
			e := mustHookFrom(t, payload(t, "AfterTool", more), "auto")
			c.want.Tool = c.tool
			if e.Kind != observation.Tool || e.Source != "PostToolUse" || !reflect.DeepEqual(withoutPieces(e.Calls), []observation.Call{c.want}) {
				t.Errorf("got  %+v\nwant %+v", e, c.want)
			}
		})
	}
}

func TestGeminiMCPContextNamesTheServer(t *testing.T) {
	t.Parallel()
	e := mustHookFrom(t, payload(t, "AfterTool", object{
		"tool_name": "set", "mcp_context": object{"server_name": "kiln_one", "tool_name": "set_cone"}, "tool_input": object{"a": "b"},
	}), "gemini")
	want := []observation.Call{{Tool: "set", Action: observation.MCP, Server: "kiln_one", Method: "set_cone", Args: []observation.Arg{{Name: "a", Value: "b"}}}}
	if !reflect.DeepEqual(e.Calls, want) {
		t.Errorf("%+v", e.Calls)
	}
}

func TestGeminiPromptsLoseWhatHooksAdded(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a<hook_context>x</hook_context> b <hook_context>y</hook_context>": "a b",
		"a <hook_context>never closed":                                     "a",
		"a </hook_context> b":                                              "a </hook_context> b",
		"<session_context>\nToday is":                                      "",
		"System: Please continue.":                                         "",
		"say <system-reminder>x</system-reminder>hello":                    "say\nhello",
		strings.Repeat("<hook_context></hook_context>", 1<<16):             "",
	} {
		if got := geminiTyped(in); got != want {
			t.Errorf("%.80q: %q, want %q", in, got, want)
		}
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
		"error object": {"read_file", object{"llmContent": "File not found: a.go", "returnDisplay": "File not found.", "error": object{"message": "no such file: a.go", "type": "file_not_found"}},
			"PostToolUseFailure", observation.Call{Action: observation.Read, Failed: true, Error: "no such file: a.go"}},
		"error text":             {"read_file", object{"error": "gone"}, "PostToolUseFailure", observation.Call{Action: observation.Read, Failed: true, Error: "gone"}},
		"error without a word":   {"read_file", object{"llmContent": []any{object{"text": "it broke"}}, "error": object{"type": 3}}, "PostToolUseFailure", observation.Call{Action: observation.Read, Failed: true, Error: "it broke"}},
		"error only shown":       {"read_file", object{"returnDisplay": "it broke", "error": true}, "PostToolUseFailure", observation.Call{Action: observation.Read, Failed: true, Error: "it broke"}},
		"no error":               {"read_file", object{"llmContent": "x", "error": nil}, "PostToolUse", observation.Call{Action: observation.Read}},
		"exit code":              {"run_shell_command", object{"llmContent": "Output: FAIL kiln\nExit Code: 1\nProcess Group PGID: 9"}, "PostToolUse", observation.Call{Action: observation.Shell, Failed: true, ExitCode: code(1), Error: "FAIL kiln", Stdout: "FAIL kiln", Stderr: "FAIL kiln"}},
		"exit code, marked text": {"run_shell_command", object{"llmContent": "<untrusted_context>\nOutput: FAIL\nExit Code: 2\n</untrusted_context>"}, "PostToolUse", observation.Call{Action: observation.Shell, Failed: true, ExitCode: code(2), Error: "FAIL", Stdout: "FAIL", Stderr: "FAIL"}},
		"exit code, old form": {"run_shell_command", object{"llmContent": "Command: go vet\nDirectory: (root)\nStdout: a\nStderr: b\nError: (none)\nExit Code: 3\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 12"},
			"PostToolUse", observation.Call{Action: observation.Shell, Failed: true, ExitCode: code(3), Error: "a\nb", Stdout: "a\nb", Stderr: "a\nb"}},
		"exit code 0, old form": {"run_shell_command", object{"llmContent": "Command: true\nDirectory: (root)\nStdout: (empty)\nStderr: (empty)\nError: (none)\nExit Code: 0\nSignal: (none)"},
			"PostToolUse", observation.Call{Action: observation.Shell, ExitCode: code(0)}},
		"a code in the output":  {"run_shell_command", object{"llmContent": "Output: Exit Code: 9\nall fine"}, "PostToolUse", observation.Call{Action: observation.Shell, Stdout: "Exit Code: 9\nall fine", Stderr: "Exit Code: 9\nall fine"}},
		"could not start":       {"run_shell_command", object{"llmContent": "Output: (empty)\nError: spawn ENOENT", "error": object{"message": "spawn ENOENT"}}, "PostToolUseFailure", observation.Call{Action: observation.Shell, Failed: true, Error: "spawn ENOENT", Stdout: "spawn ENOENT", Stderr: "spawn ENOENT"}},
		"cancelled":             {"run_shell_command", object{"llmContent": "Command was cancelled by user before it could complete."}, "PostToolUse", observation.Call{Action: observation.Shell, Interrupted: true, Stdout: "Command was cancelled by user before it could complete.", Stderr: "Command was cancelled by user before it could complete."}},
		"response that is text": {"run_shell_command", "Output: x\nExit Code: 4", "PostToolUse", observation.Call{Action: observation.Shell, Failed: true, ExitCode: code(4), Error: "x", Stdout: "x", Stderr: "x"}},
		"only facts":            {"run_shell_command", "Exit Code: 5", "PostToolUse", observation.Call{Action: observation.Shell, Failed: true, ExitCode: code(5), Error: "Exit Code: 5"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := mustHookFrom(t, payload(t, "AfterTool", object{"tool_name": c.tool, "tool_use_id": "u1", "duration_ms": 12, "tool_response": c.response}), "gemini")
			c.want.Tool, c.want.ID, c.want.DurationMS = c.tool, "u1", 12
			if e.Source != c.source || !reflect.DeepEqual(withoutPieces(e.Calls), []observation.Call{c.want}) {
				t.Errorf("got  %s %+v\nwant %s %+v", e.Source, e.Calls, c.source, c.want)
			}
		})
	}
}

func TestGeminiAndCursorNameTheirOwnMissingFields(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`gemini {"cwd":"/k","hook_event_name":"AfterTool"}`:                                  "session_id",
		`gemini {"session_id":"s","cwd":" ","hook_event_name":"AfterTool"}`:                  "cwd",
		`gemini {"session_id":"s","cwd":"/k"}`:                                               "hook_event_name",
		`auto {"hook_event_name":"AfterModel"}`:                                              "session_id",
		`cursor {"hook_event_name":"stop"}`:                                                  "conversation_id",
		`auto {"conversation_id":7,"hook_event_name":"stop"}`:                                "conversation_id",
		`auto {"conversation_id":"c","workspace_roots":[],"hook_event_name":"stop"}`:         "workspace_roots",
		`auto {"conversation_id":"c","workspace_roots":["/k"],"hook_event_name":["stop"]}`:   "hook_event_name",
		`cursor {"cursor_version":"3","workspace_roots":[1],"hook_event_name":"workspaceO"}`: "conversation_id",
	} {
		from, body, _ := strings.Cut(in, " ")
		e, err := Hook([]byte(body), from, "")
		if !fault.HasCode(err, "missing_field") || err.Error() != want+" is missing, blank or not a text" || !reflect.ValueOf(e).IsZero() {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestInjectionTakesTheFormOfTheHarness(t *testing.T) {
	t.Parallel()
	const text = "# cairn context\n\"quoted\" | `x`"
	for name, c := range map[string]struct {
		e    observation.Event
		want string
	}{
		"claude":             {observation.Event{Harness: "claude", Source: "SessionStart"}, text},
		"codex":              {observation.Event{Harness: "codex", Source: "UserPromptSubmit"}, text},
		"claude, tool":       {observation.Event{Harness: "claude", Source: "PreToolUse"}, `{"hookSpecificOutput":{"additionalContext":"# cairn context\n\"quoted\" | ` + "`x`" + `","hookEventName":"PreToolUse"}}` + "\n"},
		"claude, elsewhere":  {observation.Event{Harness: "claude", Source: "Stop"}, ""},
		"gemini":             {observation.Event{Harness: "gemini", Source: "SessionStart"}, `{"hookSpecificOutput":{"additionalContext":"# cairn context\n\"quoted\" | ` + "`x`" + `","hookEventName":"SessionStart"}}` + "\n"},
		"gemini, prompt":     {observation.Event{Harness: "gemini", Source: "UserPromptSubmit"}, `{"hookSpecificOutput":{"additionalContext":"# cairn context\n\"quoted\" | ` + "`x`" + `","hookEventName":"BeforeAgent"}}` + "\n"},
		"gemini, tool":       {observation.Event{Harness: "gemini", Source: "PreToolUse"}, ""},
		"cursor":             {observation.Event{Harness: "cursor", Source: "SessionStart"}, `{"additional_context":"# cairn context\n\"quoted\" | ` + "`x`" + `"}` + "\n"},
		"cursor, prompt":     {observation.Event{Harness: "cursor", Source: "UserPromptSubmit"}, ""},
		"cursor, after tool": {observation.Event{Harness: "cursor", Source: "PostToolUse"}, ""},
	} {
		if got, err := HookOutput(c.e, text, GuardDecision{}); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if got, err := HookOutput(c.e, "", GuardDecision{}); err != nil || got != "" {
			t.Errorf("%s without text: %q, %v", name, got, err)
		}
	}
}
