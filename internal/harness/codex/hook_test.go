package codex_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// codexHook reads a payload of Codex and detects the harness.
func codexHook(t *testing.T, event string, more harnesstest.Object) observation.Event {
	t.Helper()
	all := harnesstest.Object{"turn_id": "turn-1", "model": "m-9"}
	maps.Copy(all, more)
	e, err := harnesses.Hook(harnesstest.Payload(t, event, all), "auto", "")
	if err != nil {
		t.Fatalf("Hook: %v", err)
	}
	return e
}

func TestCodexEventsAreClaudesWithATurn(t *testing.T) {
	t.Parallel()
	common := observation.Event{Harness: "codex", Session: "s-1", Cwd: "/home/ada/kiln", PromptID: "turn-1"}
	for name, c := range map[string]struct {
		event string
		more  harnesstest.Object
		want  func(*observation.Event)
	}{
		"start": {"SessionStart", harnesstest.Object{"source": "resume"}, func(e *observation.Event) {
			e.Kind, e.Text, e.Model = observation.SessionStart, "resume", "m-9"
		}},
		"prompt": {"UserPromptSubmit", harnesstest.Object{"prompt": "glaze the pots"}, func(e *observation.Event) {
			e.Kind, e.Text = observation.Prompt, "glaze the pots"
		}},
		"prompt of the editor": {"UserPromptSubmit", harnesstest.Object{"prompt": "# Context from my IDE setup:\n\n## Open tabs:\n- a.go\n\n## My request for Codex:\nglaze\n"}, func(e *observation.Event) {
			e.Kind, e.Text = observation.Prompt, "glaze"
		}},
		"stop": {"Stop", harnesstest.Object{"last_assistant_message": "done", "stop_hook_active": false}, func(e *observation.Event) {
			e.Kind, e.Role, e.Text, e.TurnEnds, e.Transcript = observation.Message, "turn", "done", true, "/nowhere.jsonl"
		}},
		"stop of an agent": {"SubagentStop", harnesstest.Object{"last_assistant_message": "done", "agent_id": "a"}, func(e *observation.Event) {
			e.Kind, e.Role, e.Text, e.AgentID = observation.Message, "subagent", "done", "a"
		}},
		"stop without words": {"Stop", harnesstest.Object{"last_assistant_message": nil}, func(e *observation.Event) {
			e.Kind, e.Role, e.TurnEnds, e.Transcript = observation.Message, "turn", true, "/nowhere.jsonl"
		}},
		"tool without name": {"PostToolUse", harnesstest.Object{"tool_input": harnesstest.Object{}}, func(*observation.Event) {}},
		"before a tool": {"PreToolUse", harnesstest.Object{"tool_name": "Bash", "tool_use_id": "c", "tool_input": harnesstest.Object{"command": "ls"}}, func(e *observation.Event) {
			e.Kind, e.Calls = observation.Touch, []observation.Call{{ID: "c", Tool: "Bash", Action: observation.Shell, Command: "ls"}}
		}},
		"of cairn itself": {"PostToolUse", harnesstest.Object{"tool_name": "mcp__cairn__search", "tool_use_id": "c"}, func(e *observation.Event) {
			e.Kind, e.Calls = observation.Touch, []observation.Call{harness.NewCall("c", "mcp__cairn__search", nil)}
		}},
		"compaction to come":  {"PreCompact", harnesstest.Object{"trigger": "auto"}, func(e *observation.Event) { e.Kind = observation.Touch }},
		"permission asked":    {"PermissionRequest", harnesstest.Object{"tool_name": "Bash"}, func(*observation.Event) {}},
		"an event to come up": {"Interrupt", nil, func(*observation.Event) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := common
			want.Source = c.event
			c.want(&want)
			if got := codexHook(t, c.event, c.more); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestCodexPayloadsAreJudgedByTheirFields(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"session_id", "cwd", "hook_event_name"} {
		body := harnesstest.Payload(t, "Stop", harnesstest.Object{"turn_id": "t", field: nil})
		if _, err := harnesses.Hook(body, "codex", ""); !fault.HasCode(err, "missing_field") || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for from, want := range map[string]string{"claude": "claude", "codex": "codex", "auto": "claude"} {
		e, err := harnesses.Hook(harnesstest.Payload(t, "Stop", nil), from, "")
		if err != nil || e.Harness != want {
			t.Errorf("--from %s: %q, %v", from, e.Harness, err)
		}
	}
}

// oneCall returns the call in a payload of a Codex hook.
func oneCall(t *testing.T, tool string, input, response any) observation.Call {
	t.Helper()
	e := codexHook(t, "PostToolUse", harnesstest.Object{"tool_name": tool, "tool_use_id": "c", "tool_input": input, "tool_response": response})
	if e.Kind != observation.Tool || len(e.Calls) != 1 {
		t.Fatalf("%+v", e)
	}
	return e.Calls[0]
}

func TestCodexCommandsAreReadAsOneWouldTypeThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command any
		want    string
	}{
		"line":                   {"go test ./... | tail", "go test ./... | tail"},
		"words":                  {[]string{"git", "commit", "-m", "it's done", "", "a;b"}, `git commit -m 'it'\''s done' '' 'a;b'`},
		"script for a shell":     {[]string{"bash", "-lc", "cd a && make 'b c'"}, "cd a && make 'b c'"},
		"with its path":          {[]string{"/usr/bin/zsh", "-c", "ls"}, "ls"},
		"for PowerShell":         {[]string{`C:\Windows\powershell.exe`, "-NoProfile", "-Command", "Get-Item x"}, "Get-Item x"},
		"for cmd":                {[]string{"cmd.exe", "/c", "dir"}, "dir"},
		"joined":                 {`bash -lc 'git push origin main'`, "git push origin main"},
		"joined with quotes":     {`/bin/bash -lc "echo \"a b\" 'c' \$HOME"`, `echo "a b" 'c' $HOME`},
		"joined around a quote":  {`bash -lc 'it'"'"'s'`, "it's"},
		"a shell among others":   {`bash -lc 'ls' && make`, `bash -lc 'ls' && make`},
		"a script in a file":     {[]string{"bash", "run.sh", "-c"}, "bash run.sh -c"},
		"with arguments":         {[]string{"sh", "-c", "echo $1", "sh", "a"}, "sh -c 'echo $1' sh a"},
		"a long flag":            {[]string{"bash", "--rc", "x"}, "bash --rc x"},
		"an open quote":          {`bash -lc 'ls`, `bash -lc 'ls`},
		"a lone shell":           {"bash", "bash"},
		"a wrong type":           {harnesstest.Object{"a": 1}, ""},
		"words of a wrong type":  {[]any{"ls", 3, nil}, "ls '' ''"},
		"a backslash at the end": {`bash -lc x\`, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := oneCall(t, "shell", harnesstest.Object{"command": c.command}, "ok"); got.Command != c.want || got.Action != observation.Shell {
				t.Errorf("got  %q\nwant %q", got.Command, c.want)
			}
			if got := oneCall(t, "exec_command", harnesstest.Object{"cmd": c.command}, "ok"); got.Command != c.want {
				t.Errorf("as cmd: %q", got.Command)
			}
		})
	}
}

func TestCodexCommandsFailByTheirExitCode(t *testing.T) {
	t.Parallel()
	code := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		response any
		code     *int
		failed   bool
		said     string // the output, or the error message of a failure
		ms       int64
	}{
		"bare text":           {"all fine", nil, false, "all fine", 0},
		"head, success":       {"Exit code: 0\nWall time: 0.5 seconds\nOutput:\nfine\n", code(0), false, "fine\n", 500},
		"head, failure":       {"Exit code: 2\nWall time: 1 seconds\nTotal output lines: 3\nOutput:\nbroken\n", code(2), true, "broken\n", 1000},
		"head of newer hosts": {"Chunk ID: 0f\nWall time: 0.0100 seconds\nProcess exited with code 137\nOriginal token count: 2\nOutput:\nkilled", code(137), true, "killed", 10},
		"head without output": {"Exit code: 1\nWall time: 0 seconds", code(1), true, "Exit code: 1\nWall time: 0 seconds", 0},
		"still running":       {"Wall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\nx", nil, false, "x", 1000},
		"a head that is text": {"Exit code: none\nOutput:\n", nil, false, "Exit code: none\nOutput:\n", 0},
		"output as a word":    {"Output:\nx", nil, false, "Output:\nx", 0},
		"Claude's form":       {"Exit code 3\nno", code(3), true, "Exit code 3\nno", 0},
		"object":              {harnesstest.Object{"output": "no", "metadata": harnesstest.Object{"exit_code": 4, "duration_seconds": 0.25}}, code(4), true, "no", 250},
		"object in a text":    {`{"output":"yes","metadata":{"exit_code":0,"duration_seconds":1}}`, code(0), false, "yes", 1000},
		"another object":      {`{"a":1}`, nil, false, `{"a":1}`, 0},
		"streams":             {harnesstest.Object{"stdout": "out", "stderr": "err", "exit_code": 1}, code(1), true, "err", 0},
		"a failure flag":      {harnesstest.Object{"content": "no", "success": false}, nil, true, "no", 0},
		"blocks":              {[]harnesstest.Object{{"type": "input_text", "text": "Exit code: 5\nOutput:\nno"}}, code(5), true, "no", 0},
		"nothing":             {nil, nil, false, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := oneCall(t, "Bash", harnesstest.Object{"command": "make"}, c.response)
			said := got.Stdout
			if got.Failed {
				said = got.Error
			}
			if got.Failed != c.failed || !reflect.DeepEqual(got.ExitCode, c.code) || said != c.said || got.DurationMS != c.ms {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestCodexToolsAreToldByWhatTheyDo(t *testing.T) {
	t.Parallel()
	for tool, c := range map[string]struct {
		input harnesstest.Object
		want  observation.Call
	}{
		"view_image":         {harnesstest.Object{"path": "a.png"}, observation.Call{Action: observation.Read, Path: "a.png"}},
		"read_file":          {harnesstest.Object{"file_path": "/a"}, observation.Call{Action: observation.Read, Path: "/a"}},
		"grep_files":         {harnesstest.Object{"pattern": "x", "path": "/a"}, observation.Call{Action: observation.Search, Pattern: "x", Path: "/a"}},
		"list_dir":           {harnesstest.Object{"dir_path": "/a"}, observation.Call{Action: observation.Search, Path: "/a"}},
		"web_search":         {harnesstest.Object{"query": "cone 6"}, observation.Call{Action: observation.WebSearch, Query: "cone 6"}},
		"spawn_agent":        {harnesstest.Object{"message": "m", "agent_type": "worker"}, observation.Call{Action: observation.Spawn, Prompt: "m", SubagentType: "worker"}},
		"request_user_input": {harnesstest.Object{"questions": []harnesstest.Object{{"question": "which?"}}}, observation.Call{Action: observation.Ask, Question: "which?"}},
		"update_plan":        {harnesstest.Object{"plan": []harnesstest.Object{{"step": "x"}}}, observation.Call{Action: observation.Other}},
		"mcp__db__query":     {harnesstest.Object{"q": "x"}, observation.Call{Action: observation.MCP, Server: "db", Method: "query", Args: []observation.Arg{{Name: "q", Value: "x"}}}},
		"apply_patch":        {harnesstest.Object{"command": "no patch"}, observation.Call{Action: observation.Other}},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			c.want.ID, c.want.Tool = "c", tool
			if got := oneCall(t, tool, c.input, nil); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
	if got := oneCall(t, "mcp__db__query", harnesstest.Object{}, harnesstest.Object{"isError": true, "content": []harnesstest.Object{{"type": "text", "text": "gone"}}}); !got.Failed || got.Error != "gone" {
		t.Errorf("failed MCP call: %+v", got)
	}
}

// files returns short descriptions of the calls of a patch.
func files(calls []observation.Call) []string {
	var short []string
	for i, c := range calls {
		if c.Part != i || c.ID != "c" {
			return append(short, fmt.Sprintf("%+v", c))
		}
		kind := map[observation.Action]string{observation.Write: "write", observation.Edit: "edit"}[c.Action]
		if c.Deleted {
			kind = "delete"
		}
		short = append(short, kind+" "+c.Path)
	}
	return short
}

func TestPatchesMakeOneCallPerFile(t *testing.T) {
	t.Parallel()
	const patch = "*** Begin Patch\n*** Add File: a.go\n+*** Delete File: in text\n+x\n*** Update File: b c.go\n@@ f\n *** Add File: context\n-old\n+new\n*** Delete File: d.go\n*** End Patch"
	abc := []string{"write a.go", "edit b c.go", "delete d.go"}
	wrapped := func(s string) string { return "*** Begin Patch\n" + s + "\n*** End Patch\n" }
	for name, c := range map[string]struct {
		tool  string
		input any
		want  []string
	}{
		"command":             {"apply_patch", harnesstest.Object{"command": patch}, abc},
		"input":               {"apply_patch", harnesstest.Object{"input": patch}, abc},
		"patch":               {"apply_patch", harnesstest.Object{"patch": patch}, abc},
		"text":                {"apply_patch", patch, abc},
		"words":               {"apply_patch", harnesstest.Object{"command": []string{"apply_patch", patch}}, abc},
		"Windows lines":       {"apply_patch", harnesstest.Object{"command": strings.ReplaceAll(patch, "\n", "\r\n")}, abc},
		"without an end":      {"apply_patch", harnesstest.Object{"command": strings.TrimSuffix(patch, "\n*** End Patch")}, abc},
		"move":                {"apply_patch", harnesstest.Object{"command": wrapped("*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** Update File: c")}, []string{"delete a", "write b", "edit c"}},
		"move of nothing":     {"apply_patch", harnesstest.Object{"command": wrapped("*** Move to: b\n*** Add File: c\n*** Move to: d")}, []string{"write c"}},
		"twice the same file": {"apply_patch", harnesstest.Object{"command": wrapped("*** Update File: a\n@@\n*** Update File: a")}, []string{"edit a", "edit a"}},
		"after the end":       {"apply_patch", harnesstest.Object{"command": wrapped("*** Update File: a") + "*** Update File: b"}, []string{"edit a"}},
		"shell words":         {"shell", harnesstest.Object{"command": []string{"apply_patch", patch}}, abc},
		"here-document":       {"Bash", harnesstest.Object{"command": "apply_patch <<'EOF'\n" + patch + "\nEOF\n"}, abc},
		"in a folder":         {"shell", harnesstest.Object{"command": []string{"bash", "-lc", "cd 'sub' && applypatch <<-PATCH\n" + wrapped("*** Add File: a\n*** Add File: /b\n*** Add File: C:\\c") + "PATCH"}}, []string{"write sub/a", "write /b", `write C:\c`}},
		"quoted":              {"exec_command", harnesstest.Object{"cmd": "apply_patch '" + patch + "'"}, abc},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := codexHook(t, "PostToolUse", harnesstest.Object{"tool_name": c.tool, "tool_use_id": "c", "tool_input": c.input, "tool_response": "Success."})
			if got := files(e.Calls); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			e = codexHook(t, "PostToolUse", harnesstest.Object{"tool_name": c.tool, "tool_use_id": "c", "tool_input": c.input, "tool_response": "Exit code: 1\nOutput:\nno such line"})
			for _, call := range e.Calls {
				if !call.Failed || call.Error != "no such line" {
					t.Errorf("failed: %+v", call)
				}
			}
		})
	}
	for name, command := range map[string]string{
		"more than a patch": "apply_patch <<'EOF'\n" + patch + "\nEOF\ngo test",
		"text about it":     "cat <<'EOF'\n" + patch + "\nEOF",
		"in a pipe":         "echo x | apply_patch <<'EOF'\n" + patch + "\nEOF",
	} {
		if got := oneCall(t, "Bash", harnesstest.Object{"command": command}, ""); got.Action != observation.Shell || got.Command != command {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestCodexIsToldInPlainText(t *testing.T) {
	t.Parallel()
	for _, event := range []string{"SessionStart", "UserPromptSubmit"} {
		if said, err := harnesses.HookOutput(codexHook(t, event, nil), "# cairn context", harness.GuardDecision{}); said != "# cairn context" || err != nil {
			t.Errorf("%s: %q, %v", event, said, err)
		}
	}
}

func TestLongCodexInputIsReadInPart(t *testing.T) {
	t.Parallel()
	words := slices.Repeat([]string{"x"}, 3*4096)
	if got := oneCall(t, "shell", harnesstest.Object{"command": words}, "ok"); len(got.Command) != 2*4096-1 {
		t.Errorf("%d bytes of words", len(got.Command))
	}
	long := []string{strings.Repeat("a", lazyjson.MaxText+9), strings.Repeat("b", lazyjson.MaxText+9), "c"}
	if got := oneCall(t, "shell", harnesstest.Object{"command": long}, "ok"); len(got.Command) > lazyjson.MaxText || !strings.HasPrefix(got.Command, "aaa") {
		t.Errorf("%d bytes of long words", len(got.Command))
	}
	said := `{"output":"` + strings.Repeat("x", 32<<20) + `"}`
	if got := oneCall(t, "Bash", harnesstest.Object{"command": "ls"}, said); !strings.HasPrefix(got.Stdout, `{"output":"xxx`) || len(got.Stdout) > lazyjson.MaxText {
		t.Errorf("%d bytes of output", len(got.Stdout))
	}
}
