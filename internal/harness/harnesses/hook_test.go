package harnesses_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/harness/readtest"
	"cairn/internal/observation"
)

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
		e, err := harnesses.Hook([]byte(`{"session_id":"s","cwd":"/k",`+more+`}`), "auto", "")
		if e.Harness != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", more, e.Harness, err)
		}
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
		e, err := harnesses.Hook([]byte(body), from, "")
		if !fault.HasCode(err, "missing_field") || err.Error() != want+" is missing, blank or not a text" || !reflect.ValueOf(e).IsZero() {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestHookTranslatesEveryEvent(t *testing.T) {
	t.Parallel()
	common := observation.Event{Harness: "claude", Session: "s-1", Cwd: "/home/ada/kiln"}
	for name, c := range map[string]struct {
		event string
		more  harnesstest.Object
		want  func(*observation.Event)
	}{
		"start": {"SessionStart", harnesstest.Object{"source": "startup", "model": "m-9"}, func(e *observation.Event) {
			e.Kind, e.Text, e.Model = observation.SessionStart, "startup", "m-9"
		}},
		"start after compaction": {"SessionStart", harnesstest.Object{"source": "compact"}, func(e *observation.Event) {
			e.Kind, e.Text = observation.SessionStart, "compact"
		}},
		"start without source": {"SessionStart", harnesstest.Object{"source": 4, "model": harnesstest.Object{"id": "x"}}, func(e *observation.Event) {
			e.Kind = observation.SessionStart
		}},
		"end": {"SessionEnd", harnesstest.Object{"reason": "logout"}, func(e *observation.Event) {
			e.Kind, e.Text = observation.SessionEnd, "logout"
		}},
		"prompt": {"UserPromptSubmit", harnesstest.Object{"prompt": "glaze the <b>blue</b> pot", "prompt_id": "p-7"}, func(e *observation.Event) {
			e.Kind, e.Text, e.PromptID = observation.Prompt, "glaze the <b>blue</b> pot", "p-7"
		}},
		"slash command": {"UserPromptSubmit", harnesstest.Object{"prompt": "/fire 1200"}, func(e *observation.Event) {
			e.Kind, e.Text = observation.Prompt, "/fire 1200"
		}},
		"prompt of the machine": {"UserPromptSubmit", harnesstest.Object{"prompt": "<task-notification>done</task-notification>"}, func(e *observation.Event) {
			e.Kind = observation.Prompt
		}},
		"prompt of a wrong type": {"UserPromptSubmit", harnesstest.Object{"prompt": 12}, func(e *observation.Event) {
			e.Kind = observation.Prompt
		}},
		"prompt in blocks": {"UserPromptSubmit", harnesstest.Object{"prompt": []any{harnesstest.Object{"type": "text", "text": "a"}, 1, harnesstest.Object{"type": "image"}, "b"}}, func(e *observation.Event) {
			e.Kind, e.Text = observation.Prompt, "a\nb"
		}},
		"stop": {"Stop", harnesstest.Object{"last_assistant_message": "fired", "stop_hook_active": false}, func(e *observation.Event) {
			e.Kind, e.Role, e.Text, e.TurnEnds = observation.Message, "turn", "fired", true
		}},
		"stop without a word": {"Stop", nil, func(e *observation.Event) {
			e.Kind, e.Role, e.TurnEnds = observation.Message, "turn", true
		}},
		"subagent of the program's own": {"SubagentStop", harnesstest.Object{"last_assistant_message": "a summary", "agent_id": "a1", "agent_type": ""}, func(e *observation.Event) {
			e.Kind, e.AgentID = observation.Touch, "a1"
		}},
		"subagent": {"SubagentStop", harnesstest.Object{"last_assistant_message": "cooled", "agent_id": "a1", "agent_type": "Explore"}, func(e *observation.Event) {
			e.Kind, e.Role, e.Text, e.AgentID = observation.Message, "subagent", "cooled", "a1"
		}},
		"compaction": {"PostCompact", harnesstest.Object{"compact_summary": "we made pots", "trigger": "auto"}, func(e *observation.Event) {
			e.Kind, e.Role, e.Text = observation.Message, "compact_summary", "we made pots"
		}},
		"before a tool": {"PreToolUse", harnesstest.Object{"tool_name": "Read", "tool_input": harnesstest.Object{"file_path": "/k/a.go"}}, func(e *observation.Event) {
			e.Kind, e.Calls = observation.Touch, []observation.Call{{Tool: "Read", Action: observation.Read, Path: "/k/a.go"}}
		}},
		"before compaction":    {"PreCompact", nil, func(e *observation.Event) { e.Kind = observation.Touch }},
		"notification":         {"Notification", harnesstest.Object{"message": "hi"}, func(e *observation.Event) { e.Kind = observation.Touch }},
		"start of a subagent":  {"SubagentStart", nil, func(*observation.Event) {}},
		"an event of tomorrow": {"KilnOpened", nil, func(*observation.Event) {}},
		"tool without a name":  {"PostToolUse", harnesstest.Object{"tool_input": harnesstest.Object{}}, func(*observation.Event) {}},
		"tool with a number":   {"PostToolUse", harnesstest.Object{"tool_name": 5}, func(*observation.Event) {}},
		"own tool": {"PostToolUse", harnesstest.Object{"tool_name": "mcp__cairn__search", "tool_input": harnesstest.Object{"ids": []int{4}}}, func(e *observation.Event) {
			e.Kind, e.Calls = observation.Touch, []observation.Call{{
				Tool: "mcp__cairn__search", Action: observation.MCP, Server: "cairn", Method: "search", Args: []observation.Arg{{Name: "ids", Value: "[4]"}},
			}}
		}},
		"own tool in a plugin": {"PostToolUse", harnesstest.Object{"tool_name": "mcp__plugin_kit_cairn__search", "tool_input": harnesstest.Object{"ids": []int{4}}}, func(e *observation.Event) {
			e.Kind, e.Calls = observation.Touch, []observation.Call{{
				Tool: "mcp__plugin_kit_cairn__search", Action: observation.MCP, Server: "plugin_kit_cairn", Method: "search", Args: []observation.Arg{{Name: "ids", Value: "[4]"}},
			}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := common
			want.Source = c.event
			c.want(&want)
			if got := readtest.MustHook(t, harnesstest.Payload(t, c.event, c.more)); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestHookDescribesEveryTool(t *testing.T) {
	t.Parallel()
	one, three := 1, 3
	for name, c := range map[string]struct {
		tool            string
		input, response any
		more            harnesstest.Object
		want            observation.Call
	}{
		"shell": {"Bash", harnesstest.Object{"command": "make kiln", "description": "Build"},
			harnesstest.Object{"stdout": "built", "stderr": "warm", "interrupted": false, "isImage": false, "returnCodeInterpretation": "No matches found"}, harnesstest.Object{"duration_ms": 12},
			observation.Call{Action: observation.Shell, Command: "make kiln", Description: "Build", Stdout: "built", Stderr: "warm", Note: "No matches found", DurationMS: 12}},
		"shell in the background": {"Bash", harnesstest.Object{"command": "sleep 9"}, harnesstest.Object{"stdout": "", "backgroundTaskId": "b1", "interrupted": true}, nil,
			observation.Call{Action: observation.Shell, Command: "sleep 9", Background: true, Interrupted: true}},
		"shell asked into the background": {"PowerShell", harnesstest.Object{"command": "dir", "run_in_background": true}, nil, nil,
			observation.Call{Action: observation.Shell, Command: "dir", Background: true}},
		"shell answering with a text": {"Bash", harnesstest.Object{"command": "ls"}, "a\nb", nil,
			observation.Call{Action: observation.Shell, Command: "ls", Stdout: "a\nb", Stderr: "a\nb"}},
		"read": {"Read", harnesstest.Object{"file_path": "/k/a.go"}, harnesstest.Object{"type": "text", "file": harnesstest.Object{"filePath": "/k/a.go"}}, nil,
			observation.Call{Action: observation.Read, Path: "/k/a.go"}},
		"read told by its response only": {"Read", "lost", harnesstest.Object{"file": harnesstest.Object{"filePath": "/k/b.go"}}, nil,
			observation.Call{Action: observation.Read, Path: "/k/b.go"}},
		"write of a new file": {"Write", harnesstest.Object{"file_path": "/k/c", "content": "x"}, harnesstest.Object{"type": "create", "filePath": "/k/c"}, nil,
			observation.Call{Action: observation.Write, Path: "/k/c", Created: true}},
		"write over a file": {"Write", harnesstest.Object{"file_path": "/k/c"}, harnesstest.Object{"type": "update"}, nil,
			observation.Call{Action: observation.Write, Path: "/k/c"}},
		"edit": {"Edit", harnesstest.Object{"file_path": "/k/c", "old_string": "a", "new_string": "b", "replace_all": true}, harnesstest.Object{"filePath": "/k/c"}, nil,
			observation.Call{Action: observation.Edit, Path: "/k/c", ReplaceAll: true}},
		"several edits": {"MultiEdit", harnesstest.Object{"file_path": "/k/c", "edits": []any{harnesstest.Object{}, harnesstest.Object{"replace_all": true}}}, nil, nil,
			observation.Call{Action: observation.Edit, Path: "/k/c", ReplaceAll: true}},
		"notebook": {"NotebookEdit", harnesstest.Object{"notebook_path": "/k/n.ipynb"}, nil, nil,
			observation.Call{Action: observation.Edit, Path: "/k/n.ipynb"}},
		"grep": {"Grep", harnesstest.Object{"pattern": "glaze", "path": "/k", "output_mode": "content"}, harnesstest.Object{"mode": "content", "numFiles": 3, "filenames": []any{}}, nil,
			observation.Call{Action: observation.Search, Pattern: "glaze", Path: "/k", Mode: "content", NumFiles: &three}},
		"glob": {"Glob", harnesstest.Object{"pattern": "**/*.go"}, harnesstest.Object{"numFiles": 1, "mode": "files"}, nil,
			observation.Call{Action: observation.Search, Pattern: "**/*.go", Mode: "files", NumFiles: &one}},
		"task": {"Task", harnesstest.Object{"description": "count pots", "prompt": "Count.", "subagent_type": "Explore"}, harnesstest.Object{"status": "completed", "agentId": "a9", "content": []any{}}, nil,
			observation.Call{Action: observation.Spawn, Description: "count pots", Prompt: "Count.", SubagentType: "Explore", SpawnedID: "a9"}},
		"agent": {"Agent", harnesstest.Object{"prompt": "Count."}, harnesstest.Object{"agent_id": "a8"}, nil,
			observation.Call{Action: observation.Spawn, Prompt: "Count.", SpawnedID: "a8"}},
		"task tool that is no task": {"TaskUpdate", harnesstest.Object{"prompt": "no"}, nil, nil, observation.Call{}},
		"fetch":                     {"WebFetch", harnesstest.Object{"url": "https://clay.example/a", "prompt": "p"}, "text", nil, observation.Call{Action: observation.Fetch, URL: "https://clay.example/a", Output: "text"}},
		"search of the web":         {"WebSearch", harnesstest.Object{"query": "cone 6"}, nil, nil, observation.Call{Action: observation.WebSearch, Query: "cone 6"}},
		"mcp": {"mcp__pot_shop__get_pot", harnesstest.Object{"id": "7"}, []any{harnesstest.Object{"type": "text", "text": "Error: fine"}}, nil,
			observation.Call{Action: observation.MCP, Server: "pot_shop", Method: "get_pot", Args: []observation.Arg{{Name: "id", Value: "7"}}, Output: "Error: fine"}},
		"page told by an object": {"WebFetch", harnesstest.Object{"url": "u"}, harnesstest.Object{"bytes": 9, "result": "a page"}, nil,
			observation.Call{Action: observation.Fetch, URL: "u", Output: "a page"}},
		"hits of the web": {"WebSearch", harnesstest.Object{"query": "q"}, harnesstest.Object{"results": []any{"said", harnesstest.Object{"content": []any{harnesstest.Object{"title": "Kilns", "url": "https://k"}}}}}, nil,
			observation.Call{Action: observation.WebSearch, Query: "q", Output: "said\nKilns https://k"}},
		"report of an agent": {"Agent", harnesstest.Object{"prompt": "Count."}, harnesstest.Object{"content": []any{harnesstest.Object{"type": "text", "text": "Nine pots."}}}, nil,
			observation.Call{Action: observation.Spawn, Prompt: "Count.", Output: "Nine pots."}},
		"output of a task":     {"TaskOutput", harnesstest.Object{"task_id": "b1"}, harnesstest.Object{"task": harnesstest.Object{"output": "fired"}}, nil, observation.Call{Output: "fired"}},
		"mcp without method":   {"mcp__pots", nil, nil, nil, observation.Call{Action: observation.MCP, Server: "pots"}},
		"foreign mcp name":     {"pots__list__all", nil, nil, nil, observation.Call{Action: observation.MCP, Server: "pots", Method: "list__all"}},
		"not quite own server": {"mcp__cairns__search", nil, nil, nil, observation.Call{Action: observation.MCP, Server: "cairns", Method: "search"}},
		"question": {"AskUserQuestion", harnesstest.Object{"questions": []any{harnesstest.Object{"question": "Blue or red?"}, harnesstest.Object{"question": "When?"}}}, nil, nil,
			observation.Call{Action: observation.Ask, Question: "Blue or red?"}},
		"question in the old form": {"AskUserQuestion", harnesstest.Object{"question": "Blue?"}, nil, nil, observation.Call{Action: observation.Ask, Question: "Blue?"}},
		"skill":                    {"Skill", harnesstest.Object{"skill": "throwing"}, nil, nil, observation.Call{Action: observation.Skill, SkillName: "throwing"}},
		"skill in the old form":    {"Skill", harnesstest.Object{"command": "throwing"}, nil, nil, observation.Call{Action: observation.Skill, SkillName: "throwing"}},
		"unknown tool":             {"LSP", harnesstest.Object{"file_path": "/k/d.go"}, nil, nil, observation.Call{Path: "/k/d.go"}},
		"input and response of wrong types": {"Bash", []any{1}, 7, nil,
			observation.Call{Action: observation.Shell}},
		"fields of wrong types": {"Grep", harnesstest.Object{"pattern": 1, "path": []any{}, "file_path": nil}, harnesstest.Object{"numFiles": "3", "mode": 4}, nil,
			observation.Call{Action: observation.Search}},
		"everything null": {"Edit", json.RawMessage("null"), json.RawMessage("null"), nil, observation.Call{Action: observation.Edit}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more := harnesstest.Object{"tool_name": c.tool, "tool_use_id": "u-1", "tool_input": c.input, "tool_response": c.response}
			for k, v := range c.more {
				more[k] = v
			}
			e := readtest.MustHook(t, harnesstest.Payload(t, "PostToolUse", more))
			c.want.ID, c.want.Tool = "u-1", c.tool
			if e.Kind != observation.Tool || len(e.Calls) != 1 {
				t.Fatalf("kind %d with %d calls", e.Kind, len(e.Calls))
			}
			if !reflect.DeepEqual(harnesstest.WithoutPieces(e.Calls)[0], c.want) {
				t.Errorf("got  %+v\nwant %+v", e.Calls[0], c.want)
			}
		})
	}
}

func TestHookFindsFailures(t *testing.T) {
	t.Parallel()
	type outcome struct {
		failed bool
		said   string
		code   int // -1 for none
	}
	for name, c := range map[string]struct {
		event, tool string
		more        harnesstest.Object
		want        outcome
	}{
		"exit code in the error":           {"PostToolUseFailure", "Bash", harnesstest.Object{"error": "Exit code 2\nno clay"}, outcome{true, "Exit code 2\nno clay", 2}},
		"error in an older host":           {"PostToolUseFailure", "Bash", harnesstest.Object{"tool_response": "Error: Exit code 127\nno such tool"}, outcome{true, "Exit code 127\nno such tool", 127}},
		"error without a number":           {"PostToolUseFailure", "Bash", harnesstest.Object{"error": "Command timed out"}, outcome{true, "Command timed out", -1}},
		"error in a response object":       {"PostToolUseFailure", "Bash", harnesstest.Object{"tool_response": harnesstest.Object{"stderr": "cracked", "exit_code": 3}}, outcome{true, "cracked", 3}},
		"error as an object":               {"PostToolUseFailure", "Read", harnesstest.Object{"error": harnesstest.Object{"message": "no such pot"}}, outcome{true, "no such pot", -1}},
		"error of a wrong type":            {"PostToolUseFailure", "Read", harnesstest.Object{"error": 4}, outcome{true, "", -1}},
		"failed edit":                      {"PostToolUseFailure", "Edit", harnesstest.Object{"error": "Error: twice"}, outcome{true, "Error: twice", -1}},
		"numeric exit_code":                {"PostToolUse", "Bash", harnesstest.Object{"tool_response": harnesstest.Object{"stdout": "o", "stderr": "e", "exit_code": 1}}, outcome{true, "e", 1}},
		"numeric exitCode, no stderr":      {"PostToolUse", "Bash", harnesstest.Object{"tool_response": harnesstest.Object{"stdout": "o", "exitCode": 4}}, outcome{true, "o", 4}},
		"exit code zero":                   {"PostToolUse", "Bash", harnesstest.Object{"tool_response": harnesstest.Object{"stdout": "o", "exit_code": 0}}, outcome{false, "", 0}},
		"exit code as text":                {"PostToolUse", "Bash", harnesstest.Object{"tool_response": harnesstest.Object{"exit_code": "1"}}, outcome{false, "", -1}},
		"exit code with a fraction":        {"PostToolUse", "Bash", harnesstest.Object{"tool_response": harnesstest.Object{"exit_code": 1.5}}, outcome{false, "", -1}},
		"exit code beside the response":    {"PostToolUse", "Bash", harnesstest.Object{"exit_code": 9, "tool_response": "gone"}, outcome{true, "gone", 9}},
		"is_error in the response":         {"PostToolUse", "Bash", harnesstest.Object{"tool_response": harnesstest.Object{"is_error": true, "stderr": "e"}}, outcome{true, "e", -1}},
		"is_error beside the response":     {"PostToolUse", "Bash", harnesstest.Object{"is_error": true}, outcome{true, "", -1}},
		"text with an exit code":           {"PostToolUse", "Bash", harnesstest.Object{"tool_response": "Exit code 5\nbad"}, outcome{true, "Exit code 5\nbad", 5}},
		"text with Error and an exit code": {"PostToolUse", "PowerShell", harnesstest.Object{"tool_response": "Error: Exit code 5"}, outcome{true, "Exit code 5", 5}},
		"text that only talks about it":    {"PostToolUse", "Bash", harnesstest.Object{"tool_response": "see Exit code 5"}, outcome{false, "", -1}},
		"shell text with Error alone":      {"PostToolUse", "Bash", harnesstest.Object{"tool_response": "Error: handled"}, outcome{false, "", -1}},
		"exit codes are the shell's":       {"PostToolUse", "LSP", harnesstest.Object{"tool_response": harnesstest.Object{"exit_code": 1}}, outcome{false, "", -1}},
		"failing tool that is no shell":    {"PostToolUse", "Read", harnesstest.Object{"tool_response": "Error: no such pot"}, outcome{true, "no such pot", -1}},
		"failing mcp tool":                 {"PostToolUse", "mcp__a__b", harnesstest.Object{"tool_response": harnesstest.Object{"isError": true, "content": []any{harnesstest.Object{"type": "text", "text": "denied"}}}}, outcome{true, "denied", -1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.more["tool_name"] = c.tool
			got := readtest.MustHook(t, harnesstest.Payload(t, c.event, c.more)).Calls[0]
			o := outcome{got.Failed, got.Error, -1}
			if got.ExitCode != nil {
				o.code = *got.ExitCode
			}
			if o != c.want {
				t.Errorf("got %+v, want %+v", o, c.want)
			}
		})
	}
}

func TestHookNotesInterruptions(t *testing.T) {
	t.Parallel()
	e := readtest.MustHook(t, harnesstest.Payload(t, "PostToolUseFailure", harnesstest.Object{"tool_name": "Bash", "is_interrupt": true, "error": "x"}))
	if c := e.Calls[0]; !c.Interrupted || c.Failed || c.Error != "" {
		t.Errorf("got %+v", c)
	}
}

func TestHookBoundsMCPArguments(t *testing.T) {
	t.Parallel()
	const limit = 4 * (200 + 65_536)
	many := harnesstest.Object{}
	for i := range 1000 {
		many[strings.Repeat("n", i+1)] = i
	}
	if n := len(readtest.MustHook(t, harnesstest.Payload(t, "PostToolUse", harnesstest.Object{"tool_name": "mcp__a__b", "tool_input": many})).Calls[0].Args); n != harness.MaxArgs {
		t.Errorf("%d arguments", n)
	}
	raw := `{"session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"mcp__a__b","tool_input":` +
		`{"s":"é\n","o": { "a" : [ 1, "b c` + "\xff\xfe" + `" ] } ,"long":"` + strings.Repeat("x", 3*limit) + `","list":[` + strings.Repeat("10, ", limit) + `0]}}`
	args := readtest.MustHook(t, []byte(raw)).Calls[0].Args
	if args[0].Value != "é\n" || args[1].Value != `{"a":[1,"b c��"]}` {
		t.Errorf("got %q and %q", args[0].Value, args[1].Value)
	}
	for _, a := range args[2:] {
		if len(a.Value) != limit {
			t.Errorf("%s has %d bytes", a.Name, len(a.Value))
		}
	}
}

func TestHookRefusesBadInput(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		return `{"session_id":"s","cwd":"/k","hook_event_name":"Stop","x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	for name, c := range map[string]struct{ payload, code, message string }{
		"nothing":                {"", "invalid_json", "invalid JSON at byte 0"},
		"white space":            {" \n", "invalid_json", "invalid JSON at byte 2"},
		"no JSON":                {"kiln", "invalid_json", "invalid JSON at byte 0"},
		"half an object":         {`{"a":1`, "invalid_json", "invalid JSON at byte 6"},
		"trailing comma":         {`{"a":1,}`, "invalid_json", "invalid JSON at byte 6"},
		"control character":      {"{\"a\":\"b\nc\"}", "invalid_json", "invalid JSON at byte 7"},
		"NUL outside a string":   {"{\"a\":\x00}", "invalid_json", "invalid JSON at byte 5"},
		"bad escape":             {`{"a":"\q"}`, "invalid_json", "invalid JSON at byte 6"},
		"leading zero":           {`{"a":01}`, "invalid_json", "invalid JSON at byte 6"},
		"trailing word":          {`{} x`, "invalid_json", "invalid JSON at byte 3"},
		"second object":          {"{}\n{}", "invalid_json", "invalid JSON at byte 3"},
		"after a mark":           {lazyjson.ByteOrderMark + `{} x`, "invalid_json", "invalid JSON at byte 6"},
		"two marks":              {lazyjson.ByteOrderMark + lazyjson.ByteOrderMark + `{}`, "invalid_json", "invalid JSON at byte 3"},
		"array":                  {`[{}]`, "not_an_object", "payload must be a JSON object"},
		"text":                   {` "x" `, "not_an_object", "payload must be a JSON object"},
		"null":                   {`null`, "not_an_object", "payload must be a JSON object"},
		"too deep":               {deep(1000), "json_too_deep", "JSON nested too deeply"},
		"far too deep, unclosed": {`{"a":` + strings.Repeat(`{"a":[`, 1<<20), "json_too_deep", "JSON nested too deeply"},
		"empty object":           {`{}`, "missing_field", "session_id is missing, blank or not a text"},
		"blank session":          {`{"session_id":" \t","cwd":"/k","hook_event_name":"Stop"}`, "missing_field", "session_id is missing, blank or not a text"},
		"session is a number":    {`{"session_id":1,"hook_event_name":2}`, "missing_field", "session_id is missing, blank or not a text"},
		"no cwd":                 {`{"session_id":"s","hook_event_name":"Stop"}`, "missing_field", "cwd is missing, blank or not a text"},
		"cwd is null":            {`{"session_id":"s","cwd":null,"hook_event_name":"Stop"}`, "missing_field", "cwd is missing, blank or not a text"},
		"event is an object":     {`{"session_id":"s","cwd":"/k","hook_event_name":{}}`, "missing_field", "hook_event_name is missing, blank or not a text"},
		"repeated, last blank":   {`{"session_id":"s","cwd":"/k","hook_event_name":"Stop","cwd":""}`, "missing_field", "cwd is missing, blank or not a text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := harnesses.Hook([]byte(c.payload), "auto", "")
			if fault.KindOf(err) != fault.Invalid || !fault.HasCode(err, c.code) || err.Error() != c.message {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := harnesses.Hook([]byte(deep(999)), "auto", ""); err != nil {
		t.Errorf("1,000 levels: %v", err)
	}
}

func TestHookKnowsItsHarnesses(t *testing.T) {
	t.Parallel()
	for _, from := range append(harnesses.Names(), "auto", "claude-code", "qwen-code") {
		_, err := harnesses.Hook(harnesstest.Payload(t, "Stop", nil), from, "/home/ada")
		if from == "windsurf" || from == "cline" { // these use different names for all fields
			if !fault.HasCode(err, "missing_field") {
				t.Errorf("%s: %v", from, err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", from, err)
		}
	}
	for _, from := range []string{"", "Claude", "kiln"} {
		_, err := harnesses.Hook([]byte("not JSON"), from, "")
		if !fault.HasCode(err, "unknown_harness") || !strings.HasPrefix(err.Error(), "unknown --from value ") {
			t.Errorf("%q: %v", from, err)
		}
	}
}

func TestHookMendsBrokenText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"invalid UTF-8":          {"a\xff\xc3b", "a\uFFFD\uFFFDb"},
		"lone high surrogate":    {`a\ud83db`, "a\uFFFDb"},
		"lone low surrogate":     {`\ude00`, "\uFFFD"},
		"high before a pair":     {`\ud800\ud83d\ude00`, "\uFFFD😀"},
		"pair":                   {`\ud83d\ude00`, "😀"},
		"escaped NUL":            {`a\u0000b`, "a\uFFFDb"},
		"NUL byte":               {"a\x00b", "a\uFFFDb"},
		"NUL after a lead byte":  {"\xc2\x00", "\uFFFD\uFFFD"},
		"every other escape":     {`\"\\\/\b\f\n\r\t\u00e9`, "\"\\/\b\f\n\r\té"},
		"escape in a name":       {`x","prom\u0070t":"y`, "y"},
		"surrogate before quote": {`\ud800","z":"`, "\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := readtest.MustHook(t, []byte(lazyjson.ByteOrderMark+` {"session_id":"s","cwd":"/k","hook_event_name":"UserPromptSubmit","prompt":"`+c.in+`"}`+"\n"))
			if e.Text != c.want {
				t.Errorf("got %q, want %q", e.Text, c.want)
			}
		})
	}
}
