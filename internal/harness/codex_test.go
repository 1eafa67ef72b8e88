package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/observation"
)

// codexHook reads a payload of Codex, whose harness is found out.
func codexHook(t *testing.T, event string, more object) observation.Event {
	t.Helper()
	all := object{"turn_id": "turn-1", "model": "m-9"}
	maps.Copy(all, more)
	e, err := Hook(payload(t, event, all), "auto", "")
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
		more  object
		want  func(*observation.Event)
	}{
		"start": {"SessionStart", object{"source": "resume"}, func(e *observation.Event) {
			e.Kind, e.Text, e.Model = observation.SessionStart, "resume", "m-9"
		}},
		"prompt": {"UserPromptSubmit", object{"prompt": "glaze the pots"}, func(e *observation.Event) {
			e.Kind, e.Text = observation.Prompt, "glaze the pots"
		}},
		"prompt of the editor": {"UserPromptSubmit", object{"prompt": "# Context from my IDE setup:\n\n## Open tabs:\n- a.go\n\n## My request for Codex:\nglaze\n"}, func(e *observation.Event) {
			e.Kind, e.Text = observation.Prompt, "glaze"
		}},
		"stop": {"Stop", object{"last_assistant_message": "done", "stop_hook_active": false}, func(e *observation.Event) {
			e.Kind, e.Role, e.Text, e.TurnEnds = observation.Message, "turn", "done", true
		}},
		"stop of an agent": {"SubagentStop", object{"last_assistant_message": "done", "agent_id": "a"}, func(e *observation.Event) {
			e.Kind, e.Role, e.Text, e.AgentID = observation.Message, "subagent", "done", "a"
		}},
		"stop without words": {"Stop", object{"last_assistant_message": nil}, func(e *observation.Event) {
			e.Kind, e.Role, e.TurnEnds = observation.Message, "turn", true
		}},
		"tool without name": {"PostToolUse", object{"tool_input": object{}}, func(*observation.Event) {}},
		"before a tool": {"PreToolUse", object{"tool_name": "Bash", "tool_use_id": "c", "tool_input": object{"command": "ls"}}, func(e *observation.Event) {
			e.Kind, e.Calls = observation.Touch, []observation.Call{{ID: "c", Tool: "Bash", Action: observation.Shell, Command: "ls"}}
		}},
		"of cairn itself": {"PostToolUse", object{"tool_name": "mcp__cairn__search", "tool_use_id": "c"}, func(e *observation.Event) {
			e.Kind, e.Calls = observation.Touch, []observation.Call{newCall("c", "mcp__cairn__search", nil)}
		}},
		"compaction to come":  {"PreCompact", object{"trigger": "auto"}, func(e *observation.Event) { e.Kind = observation.Touch }},
		"permission asked":    {"PermissionRequest", object{"tool_name": "Bash"}, func(*observation.Event) {}},
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
		body := payload(t, "Stop", object{"turn_id": "t", field: nil})
		if _, err := Hook(body, "codex", ""); !fault.HasCode(err, "missing_field") || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for from, want := range map[string]string{"claude": "claude", "codex": "codex", "auto": "claude"} {
		e, err := Hook(payload(t, "Stop", nil), from, "")
		if err != nil || e.Harness != want {
			t.Errorf("--from %s: %q, %v", from, e.Harness, err)
		}
	}
}

// oneCall is the call that a hook of Codex tells.
func oneCall(t *testing.T, tool string, input, response any) observation.Call {
	t.Helper()
	e := codexHook(t, "PostToolUse", object{"tool_name": tool, "tool_use_id": "c", "tool_input": input, "tool_response": response})
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
		"a wrong type":           {object{"a": 1}, ""},
		"words of a wrong type":  {[]any{"ls", 3, nil}, "ls '' ''"},
		"a backslash at the end": {`bash -lc x\`, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := oneCall(t, "shell", object{"command": c.command}, "ok"); got.Command != c.want || got.Action != observation.Shell {
				t.Errorf("got  %q\nwant %q", got.Command, c.want)
			}
			if got := oneCall(t, "exec_command", object{"cmd": c.command}, "ok"); got.Command != c.want {
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
		said     string // the output, or of a failure what it said
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
		"object":              {object{"output": "no", "metadata": object{"exit_code": 4, "duration_seconds": 0.25}}, code(4), true, "no", 250},
		"object in a text":    {`{"output":"yes","metadata":{"exit_code":0,"duration_seconds":1}}`, code(0), false, "yes", 1000},
		"another object":      {`{"a":1}`, nil, false, `{"a":1}`, 0},
		"streams":             {object{"stdout": "out", "stderr": "err", "exit_code": 1}, code(1), true, "err", 0},
		"a failure flag":      {object{"content": "no", "success": false}, nil, true, "no", 0},
		"blocks":              {[]object{{"type": "input_text", "text": "Exit code: 5\nOutput:\nno"}}, code(5), true, "no", 0},
		"nothing":             {nil, nil, false, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := oneCall(t, "Bash", object{"command": "make"}, c.response)
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
		input object
		want  observation.Call
	}{
		"view_image":         {object{"path": "a.png"}, observation.Call{Action: observation.Read, Path: "a.png"}},
		"read_file":          {object{"file_path": "/a"}, observation.Call{Action: observation.Read, Path: "/a"}},
		"grep_files":         {object{"pattern": "x", "path": "/a"}, observation.Call{Action: observation.Search, Pattern: "x", Path: "/a"}},
		"list_dir":           {object{"dir_path": "/a"}, observation.Call{Action: observation.Search, Path: "/a"}},
		"web_search":         {object{"query": "cone 6"}, observation.Call{Action: observation.WebSearch, Query: "cone 6"}},
		"spawn_agent":        {object{"message": "m", "agent_type": "worker"}, observation.Call{Action: observation.Spawn, Prompt: "m", SubagentType: "worker"}},
		"request_user_input": {object{"questions": []object{{"question": "which?"}}}, observation.Call{Action: observation.Ask, Question: "which?"}},
		"update_plan":        {object{"plan": []object{{"step": "x"}}}, observation.Call{Action: observation.Other}},
		"mcp__db__query":     {object{"q": "x"}, observation.Call{Action: observation.MCP, Server: "db", Method: "query", Args: []observation.Arg{{Name: "q", Value: "x"}}}},
		"apply_patch":        {object{"command": "no patch"}, observation.Call{Action: observation.Other}},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			c.want.ID, c.want.Tool = "c", tool
			if got := oneCall(t, tool, c.input, nil); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
	if got := oneCall(t, "mcp__db__query", object{}, object{"isError": true, "content": []object{{"type": "text", "text": "gone"}}}); !got.Failed || got.Error != "gone" {
		t.Errorf("failed MCP call: %+v", got)
	}
}

// files tells the calls of a patch in short.
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
		"command":             {"apply_patch", object{"command": patch}, abc},
		"input":               {"apply_patch", object{"input": patch}, abc},
		"patch":               {"apply_patch", object{"patch": patch}, abc},
		"text":                {"apply_patch", patch, abc},
		"words":               {"apply_patch", object{"command": []string{"apply_patch", patch}}, abc},
		"Windows lines":       {"apply_patch", object{"command": strings.ReplaceAll(patch, "\n", "\r\n")}, abc},
		"without an end":      {"apply_patch", object{"command": strings.TrimSuffix(patch, "\n*** End Patch")}, abc},
		"move":                {"apply_patch", object{"command": wrapped("*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** Update File: c")}, []string{"delete a", "write b", "edit c"}},
		"move of nothing":     {"apply_patch", object{"command": wrapped("*** Move to: b\n*** Add File: c\n*** Move to: d")}, []string{"write c"}},
		"twice the same file": {"apply_patch", object{"command": wrapped("*** Update File: a\n@@\n*** Update File: a")}, []string{"edit a", "edit a"}},
		"after the end":       {"apply_patch", object{"command": wrapped("*** Update File: a") + "*** Update File: b"}, []string{"edit a"}},
		"shell words":         {"shell", object{"command": []string{"apply_patch", patch}}, abc},
		"here-document":       {"Bash", object{"command": "apply_patch <<'EOF'\n" + patch + "\nEOF\n"}, abc},
		"in a folder":         {"shell", object{"command": []string{"bash", "-lc", "cd 'sub' && applypatch <<-PATCH\n" + wrapped("*** Add File: a\n*** Add File: /b\n*** Add File: C:\\c") + "PATCH"}}, []string{"write sub/a", "write /b", `write C:\c`}},
		"quoted":              {"exec_command", object{"cmd": "apply_patch '" + patch + "'"}, abc},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := codexHook(t, "PostToolUse", object{"tool_name": c.tool, "tool_use_id": "c", "tool_input": c.input, "tool_response": "Success."})
			if got := files(e.Calls); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			e = codexHook(t, "PostToolUse", object{"tool_name": c.tool, "tool_use_id": "c", "tool_input": c.input, "tool_response": "Exit code: 1\nOutput:\nno such line"})
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
		if got := oneCall(t, "Bash", object{"command": command}, ""); got.Action != observation.Shell || got.Command != command {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestPatchOfManyFilesIsBounded(t *testing.T) {
	t.Parallel()
	patch := patchBegin + "\n" + strings.Repeat("*** Update File: a\n*** Move to: b\n", 3000)
	if calls := patchCalls("c", patchTool, patch, ""); len(calls) < maxPatchFiles || len(calls) > maxPatchFiles+1 {
		t.Errorf("%d calls", len(calls))
	}
}

// rollout makes lines of a Codex transcript from short notes.
type rollout struct {
	strings.Builder
	n     int
	still bool // the lines to come are written in the same second
}

func (w *rollout) atOnce(still bool) *rollout {
	w.still = still
	return w
}

func (w *rollout) line(kind string, payload object) *rollout {
	if !w.still {
		w.n++
	}
	b, err := json.Marshal(object{"timestamp": fmt.Sprintf("2026-03-02T09:%02d:%02dZ", w.n/60, w.n%60), "type": kind, "payload": payload})
	if err != nil {
		panic(err)
	}
	w.Write(append(b, '\n'))
	return w
}

func (w *rollout) meta(more object) *rollout {
	all := object{"id": "s", "cwd": "/k", "source": "cli"}
	maps.Copy(all, more)
	return w.line("session_meta", all)
}

func (w *rollout) event(kind string, more object) *rollout {
	all := object{"type": kind}
	maps.Copy(all, more)
	return w.line("event_msg", all)
}

func (w *rollout) item(kind string, more object) *rollout {
	all := object{"type": kind}
	maps.Copy(all, more)
	return w.line("response_item", all)
}

func (w *rollout) says(role, text string) *rollout {
	return w.item("message", object{"role": role, "content": []object{{"type": "input_text", "text": text}}})
}

// prompt is a prompt as Codex writes it twice.
func (w *rollout) prompt(text string) *rollout {
	return w.says("user", text).event("user_message", object{"message": text})
}

func (w *rollout) calls(id string) *rollout {
	return w.item("function_call", object{"name": "shell", "call_id": id, "arguments": `{"command":["make"]}`})
}

func (w *rollout) output(id, said string) *rollout {
	return w.item("function_call_output", object{"call_id": id, "output": said})
}

func (w *rollout) read(t *testing.T, o TranscriptOptions) ([]string, TranscriptReport) {
	t.Helper()
	events, report := readAll(t, strings.NewReader(w.String()), o)
	var short []string
	for _, e := range events {
		what := e.Text
		if e.Kind == observation.Tool {
			what = e.Calls[0].ID
		}
		short = append(short, strings.Join(strings.Fields(e.Source+" "+e.AgentID+" "+e.PromptID), " ")+": "+what)
	}
	return short, report
}

func TestCodexTranscriptTurns(t *testing.T) {
	t.Parallel()
	started := func(id string) object { return object{"turn_id": id} }
	for name, c := range map[string]struct {
		talk *rollout
		want []string
		lost map[string]int
	}{
		"a turn": {new(rollout).meta(nil).event("task_started", started("1")).prompt("a").says("assistant", "x").calls("c").output("c", "ok").
			says("assistant", "y").event("task_complete", object{"turn_id": "1", "last_agent_message": "y"}),
			[]string{"UserPromptSubmit 1: a", "PostToolUse 1: c", "Stop 1: y"}, nil},
		"before turns were told": {new(rollout).meta(nil).prompt("a").says("assistant", "x").prompt("b").says("assistant", "y"),
			[]string{"UserPromptSubmit: a", "Stop: x", "UserPromptSubmit: b", "Stop: y"}, nil},
		"named after the prompt": {new(rollout).meta(nil).prompt("a").line("turn_context", object{"turn_id": "1"}).says("assistant", "x").prompt("b").line("turn_context", object{"turn_id": "2"}),
			[]string{"UserPromptSubmit 1: a", "Stop 1: x", "UserPromptSubmit 2: b"}, nil},
		"the same prompt again": {new(rollout).meta(nil).prompt("a").says("assistant", "x").prompt("a").says("assistant", "x"),
			[]string{"UserPromptSubmit: a", "Stop: x", "UserPromptSubmit: a", "Stop: x"}, nil},
		"without events": {new(rollout).meta(nil).says("user", "a").says("assistant", "x").says("user", "b").calls("c").output("c", "ok"),
			[]string{"UserPromptSubmit: a", "Stop: x", "UserPromptSubmit: b", "PostToolUse: c"}, nil},
		"text of the machine": {new(rollout).meta(nil).says("user", "<user_instructions>\nx\n</user_instructions>").says("user", "# AGENTS.md instructions for /k\n\n<INSTRUCTIONS>x</INSTRUCTIONS>").
			says("user", "something new of the machine").prompt("a"),
			[]string{"UserPromptSubmit: a"}, map[string]int{metaLine: 2}},
		"still open": {new(rollout).meta(nil).event("task_started", started("1")).prompt("a").says("assistant", "x"),
			[]string{"UserPromptSubmit 1: a"}, nil},
		"a prompt in mid turn": {new(rollout).meta(nil).event("task_started", started("1")).prompt("a").calls("c").prompt("b").output("c", "ok").event("task_complete", started("1")),
			[]string{"UserPromptSubmit 1: a", "UserPromptSubmit: b", "PostToolUse 1: c"}, nil},
		"stopped": {new(rollout).meta(nil).event("task_started", started("1")).prompt("a").says("assistant", "x").event("turn_aborted", started("1")),
			[]string{"UserPromptSubmit 1: a"}, map[string]int{turnStopped: 1}},
		"last words told by the end": {new(rollout).meta(nil).event("task_started", started("1")).prompt("a").event("task_complete", object{"turn_id": "1", "last_agent_message": "z"}),
			[]string{"UserPromptSubmit 1: a", "Stop 1: z"}, nil},
		"of a subagent": {new(rollout).meta(object{"id": "child", "source": object{"subagent": object{"thread_spawn": object{"parent_thread_id": "s"}}}}).
			event("task_started", started("1")).prompt("do it").calls("c").output("c", "ok").event("task_complete", object{"last_agent_message": "done"}),
			[]string{"PostToolUse child 1: c", "SubagentStop child 1: done"}, nil},
		"of the harness's own agent": {new(rollout).meta(object{"source": object{"subagent": "compact"}}).prompt("a").says("assistant", "x"),
			nil, map[string]int{ownAgent: 3}},
		"forked": {new(rollout).meta(object{"forked_from_id": "old"}).atOnce(true).line("session_meta", object{"id": "old", "cwd": "/elsewhere"}).
			prompt("copied").calls("c").output("c", "ok").atOnce(false).event("token_count", nil).event("token_count", nil).prompt("new"),
			[]string{"UserPromptSubmit: new"}, map[string]int{copiedLine: 6}},
		"forked, as the second line tells": {new(rollout).meta(nil).atOnce(true).line("session_meta", object{"id": "old", "cwd": "/elsewhere"}).prompt("copied"),
			nil, map[string]int{copiedLine: 2}},
		"not placed": {new(rollout).prompt("a").meta(nil).prompt("b"), []string{"UserPromptSubmit: b"}, map[string]int{homelessLine: 2}},
		"refused": {new(rollout).meta(nil).calls("a").output("a", "exec command rejected by user").calls("b").output("b", "aborted by user after 3.0s").
			calls("c").output("c", "failed to parse function arguments: missing field").calls("d").output("d", "Exit code: 1\nOutput:\nexec command rejected by user").output("e", "x"),
			[]string{"PostToolUse: d"}, map[string]int{rejected: 1, stopped: 1, invalidCall: 1, noCall: 1}},
		"left running and ended by an event": {new(rollout).meta(nil).calls("a").output("a", "Process running with session ID 3\nOutput:\n").event("exec_command_end", object{"call_id": "a", "exit_code": 0}),
			[]string{"PostToolUse: a"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, report := c.talk.read(t, TranscriptOptions{})
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if !maps.Equal(report.Skipped, c.lost) || report.Harness != "codex" {
				t.Errorf("skipped %v, want %v; harness %s", report.Skipped, c.lost, report.Harness)
			}
		})
	}
}

func TestOldestCodexTranscriptsHaveBareLines(t *testing.T) {
	t.Parallel()
	in := `{"id":"0a1b","timestamp":"2025-06-02T10:00:00Z","instructions":null,"git":{}}
{"record_type":"state"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\nCurrent working directory: /k\nApproval policy: never\n</environment_context>"}]}
{"record_type":"state"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"glaze"}]}
{"type":"reasoning","id":"rs","summary":[]}
{"type":"local_shell_call","id":"lsc","call_id":"c1","status":"completed","action":{"type":"exec","command":["bash","-lc","make"]}}
{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"no\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":0.1}}"}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It fails."}]}
`
	events, report := readAll(t, strings.NewReader(in), TranscriptOptions{})
	if len(events) != 3 || events[0].Text != "glaze" || events[2].Text != "It fails." || report.Harness != "codex" {
		t.Fatalf("%+v, %+v", events, report)
	}
	c := events[1].Calls[0]
	if c.Command != "make" || !c.Failed || c.Error != "no" || events[1].Session != "0a1b" || events[1].Cwd != "/k" {
		t.Errorf("%+v", events[1])
	}
}

// Without a way back to the beginning, the name of the file tells the session.
func TestCodexTranscriptFindsItsSession(t *testing.T) {
	t.Parallel()
	const id = "0a1b2c3d-0000-7000-8000-00000000c0de"
	head := new(rollout).meta(object{"id": id}).String()
	rest := new(rollout).line("turn_context", object{"cwd": "/k"}).prompt("a").String()
	o := TranscriptOptions{Offset: int64(len(head)), Path: "/x/rollout-2026-03-02T09-00-00-" + id + ".jsonl"}
	events, _ := readAll(t, strings.NewReader(rest), o)
	o.Path, o.Head = "copy.jsonl", strings.NewReader(head+rest)
	again, _ := readAll(t, strings.NewReader(rest), o)
	if len(events) != 1 || events[0].Session != id || !reflect.DeepEqual(events, again) {
		t.Errorf("by name %+v\nby head %+v", events, again)
	}
}

// What was captured live and is imported later must be the same call.
func TestCodexTranscriptAndHookDescribeACallAlike(t *testing.T) {
	t.Parallel()
	patch := "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** Add File: c\n+z\n*** End Patch"
	function := func(name string, args object) object {
		b, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		return object{"type": "function_call", "name": name, "arguments": string(b)}
	}
	for name, c := range map[string]struct {
		tool     string // of the hook
		input    any
		response any
		item     object
		output   any
	}{
		"shell": {"Bash", object{"command": "bash -lc 'git push'"}, "To git.example:pots", function("shell", object{"command": []string{"bash", "-lc", "git push"}}), "To git.example:pots"},
		"exit code": {"Bash", object{"command": "make"}, "Exit code: 2\nWall time: 1.5 seconds\nOutput:\nno",
			function("shell_command", object{"command": "make"}), "Exit code: 2\nWall time: 1.5 seconds\nOutput:\nno"},
		"exec":   {"Bash", object{"command": "make"}, "ok", function("exec_command", object{"cmd": "make"}), "ok"},
		"patch":  {"apply_patch", object{"command": patch}, "Success.", object{"type": "custom_tool_call", "name": "apply_patch", "input": patch}, "Success."},
		"failed": {"apply_patch", object{"command": patch}, object{"output": "no", "metadata": object{"exit_code": 1}}, object{"type": "custom_tool_call", "name": "apply_patch", "input": patch}, `{"output":"no","metadata":{"exit_code":1}}`},
		"mcp":    {"mcp__a__b", object{"q": []int{1}}, object{"content": []object{{"type": "text", "text": "y"}}}, object{"type": "function_call", "namespace": "mcp__a", "name": "b", "arguments": `{"q":[1]}`}, "y"},
		"plan":   {"update_plan", object{"plan": []int{}}, "Plan updated", function("update_plan", object{"plan": []int{}}), "Plan updated"},
		"agent":  {"spawn_agent", object{"message": "m"}, object{"agent_id": "a1"}, function("spawn_agent", object{"message": "m"}), `{"agent_id":"a1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := codexHook(t, "PostToolUse", object{"tool_name": c.tool, "tool_use_id": "c", "tool_input": c.input, "tool_response": c.response})
			c.item["call_id"] = "c"
			w := new(rollout).meta(nil).line("response_item", c.item)
			w.item(fmt.Sprintf("%s_output", c.item["type"]), object{"call_id": "c", "output": c.output})
			events, _ := readAll(t, strings.NewReader(w.String()), TranscriptOptions{})
			if len(events) != 1 || events[0].Source != live.Source {
				t.Fatalf("imported %+v", events)
			}
			for i := range events[0].Calls {
				events[0].Calls[i].Tool = c.tool // Codex calls its tools otherwise towards hooks
			}
			if !reflect.DeepEqual(events[0].Calls, live.Calls) {
				t.Errorf("imported %+v\nlive     %+v", events[0].Calls, live.Calls)
			}
		})
	}
}

func TestRecogniseTellsHarnessesByTheirLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"Claude":               {new(talk).user("a").String(), "claude"},
		"Claude with a title":  {`{"type":"summary","summary":"x","leafUuid":"y"}` + "\n", "claude"},
		"Codex":                {"\nnot JSON\n" + new(rollout).meta(nil).String(), "codex"},
		"Codex, bare":          {`{"id":"s","timestamp":"2025-06-02T10:00:00Z","instructions":null}` + "\n", "codex"},
		"Codex, torn at first": {`"rest of a line"}` + "\n" + new(rollout).prompt("x").String(), "codex"},
		"nothing known":        {`{"a":1}` + "\n", ""},
		"nothing":              {"", ""},
	} {
		got, read, err := recognise(strings.NewReader(c.file))
		if got != c.want || err != nil || !bytes.HasPrefix([]byte(c.file), read) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
