package codex_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/readtest"
)

// rollout creates lines of a Codex transcript from short notes.
type rollout struct {
	strings.Builder
	n     int
	still bool // the following lines have the same second
}

func (w *rollout) atOnce(still bool) *rollout {
	w.still = still
	return w
}

func (w *rollout) line(kind string, payload harnesstest.Object) *rollout {
	if !w.still {
		w.n++
	}
	b, err := json.Marshal(harnesstest.Object{"timestamp": fmt.Sprintf("2026-03-02T09:%02d:%02dZ", w.n/60, w.n%60), "type": kind, "payload": payload})
	if err != nil {
		panic(err)
	}
	w.Write(append(b, '\n'))
	return w
}

func (w *rollout) meta(more harnesstest.Object) *rollout {
	all := harnesstest.Object{"id": "s", "cwd": "/k", "source": "cli"}
	maps.Copy(all, more)
	return w.line("session_meta", all)
}

func (w *rollout) event(kind string, more harnesstest.Object) *rollout {
	all := harnesstest.Object{"type": kind}
	maps.Copy(all, more)
	return w.line("event_msg", all)
}

func (w *rollout) item(kind string, more harnesstest.Object) *rollout {
	all := harnesstest.Object{"type": kind}
	maps.Copy(all, more)
	return w.line("response_item", all)
}

func (w *rollout) says(role, text string) *rollout {
	return w.item("message", harnesstest.Object{"role": role, "content": []harnesstest.Object{{"type": "input_text", "text": text}}})
}

// prompt writes a prompt twice, as Codex does.
func (w *rollout) prompt(text string) *rollout {
	return w.says("user", text).event("user_message", harnesstest.Object{"message": text})
}

func (w *rollout) calls(id string) *rollout {
	return w.item("function_call", harnesstest.Object{"name": "shell", "call_id": id, "arguments": `{"command":["make"]}`})
}

func (w *rollout) output(id, said string) *rollout {
	return w.item("function_call_output", harnesstest.Object{"call_id": id, "output": said})
}

func (w *rollout) read(t *testing.T, o harness.TranscriptOptions) ([]string, harness.TranscriptReport) {
	t.Helper()
	events, report := readtest.ReadAll(t, strings.NewReader(w.String()), o)
	var short []string
	for _, e := range events {
		short = append(short, strings.Join(strings.Fields(e.Source+" "+e.AgentID+" "+e.PromptID), " ")+": "+harnesstest.Told(e))
	}
	return short, report
}

func TestCodexTranscriptsTellTheBranchOfTheirSession(t *testing.T) {
	t.Parallel()
	for branch, git := range map[string]any{
		"ada/refunds": harnesstest.Object{"commit_hash": "1234567", "branch": "ada/refunds", "repository_url": "x"},
		"":            harnesstest.Object{"branch": []int{1}},
	} {
		whole := new(rollout).meta(harnesstest.Object{"git": git}).prompt("a").says("assistant", "x").prompt("b").String()
		n := strings.IndexByte(whole, '\n') + 1
		rest := harness.TranscriptOptions{Offset: int64(n), Head: strings.NewReader(whole[:n])}
		for start, o := range map[int]harness.TranscriptOptions{0: {}, n: rest} {
			events, _ := readtest.ReadAll(t, strings.NewReader(whole[start:]), o)
			if len(events) != 3 {
				t.Errorf("from %d: %d events", start, len(events))
			}
			for _, e := range events {
				if e.Branch != branch {
					t.Errorf("from %d: %s on branch %q, want %q", start, e.Text, e.Branch, branch)
				}
			}
		}
	}
}

func TestCodexTranscriptTurns(t *testing.T) {
	t.Parallel()
	started := func(id string) harnesstest.Object { return harnesstest.Object{"turn_id": id} }
	for name, c := range map[string]struct {
		talk *rollout
		want []string
		lost map[string]int
	}{
		"a turn": {new(rollout).meta(nil).event("task_started", started("1")).prompt("a").says("assistant", "x").calls("c").output("c", "ok").
			says("assistant", "y").event("task_complete", harnesstest.Object{"turn_id": "1", "last_agent_message": "y"}),
			[]string{"UserPromptSubmit 1: a", "PostToolUse 1: c", "Stop 1: y"}, nil},
		"before turns were told": {new(rollout).meta(nil).prompt("a").says("assistant", "x").prompt("b").says("assistant", "y"),
			[]string{"UserPromptSubmit: a", "Stop: x", "UserPromptSubmit: b", "Stop: y"}, nil},
		"named after the prompt": {new(rollout).meta(nil).prompt("a").line("turn_context", harnesstest.Object{"turn_id": "1"}).says("assistant", "x").prompt("b").line("turn_context", harnesstest.Object{"turn_id": "2"}),
			[]string{"UserPromptSubmit 1: a", "Stop 1: x", "UserPromptSubmit 2: b"}, nil},
		"the same prompt again": {new(rollout).meta(nil).prompt("a").says("assistant", "x").prompt("a").says("assistant", "x"),
			[]string{"UserPromptSubmit: a", "Stop: x", "UserPromptSubmit: a", "Stop: x"}, nil},
		"without events": {new(rollout).meta(nil).says("user", "a").says("assistant", "x").says("user", "b").calls("c").output("c", "ok"),
			[]string{"UserPromptSubmit: a", "Stop: x", "UserPromptSubmit: b", "PostToolUse: c"}, nil},
		"text of the machine": {new(rollout).meta(nil).says("user", "<user_instructions>\nx\n</user_instructions>").says("user", "# AGENTS.md instructions for /k\n\n<INSTRUCTIONS>x</INSTRUCTIONS>").
			says("user", "something new of the machine").prompt("a"),
			[]string{"UserPromptSubmit: a"}, map[string]int{harness.MetaLine: 2}},
		"still open": {new(rollout).meta(nil).event("task_started", started("1")).prompt("a").says("assistant", "x"),
			[]string{"UserPromptSubmit 1: a"}, nil},
		"a prompt in mid turn": {new(rollout).meta(nil).event("task_started", started("1")).prompt("a").calls("c").prompt("b").output("c", "ok").event("task_complete", started("1")),
			[]string{"UserPromptSubmit 1: a", "UserPromptSubmit: b", "PostToolUse 1: c"}, nil},
		"stopped": {new(rollout).meta(nil).event("task_started", started("1")).prompt("a").says("assistant", "x").event("turn_aborted", started("1")),
			[]string{"UserPromptSubmit 1: a"}, map[string]int{harness.TurnStopped: 1}},
		"last words told by the end": {new(rollout).meta(nil).event("task_started", started("1")).prompt("a").event("task_complete", harnesstest.Object{"turn_id": "1", "last_agent_message": "z"}),
			[]string{"UserPromptSubmit 1: a", "Stop 1: z"}, nil},
		"of a subagent": {new(rollout).meta(harnesstest.Object{"id": "child", "source": harnesstest.Object{"subagent": harnesstest.Object{"thread_spawn": harnesstest.Object{"parent_thread_id": "s"}}}}).
			event("task_started", started("1")).prompt("do it").calls("c").output("c", "ok").event("task_complete", harnesstest.Object{"last_agent_message": "done"}),
			[]string{"PostToolUse child 1: c", "SubagentStop child 1: done"}, nil},
		"of the harness's own agent": {new(rollout).meta(harnesstest.Object{"source": harnesstest.Object{"subagent": "compact"}}).prompt("a").says("assistant", "x"),
			nil, map[string]int{harness.OwnAgent: 3}},
		"forked": {new(rollout).meta(harnesstest.Object{"forked_from_id": "old"}).atOnce(true).line("session_meta", harnesstest.Object{"id": "old", "cwd": "/elsewhere"}).
			prompt("copied").calls("c").output("c", "ok").atOnce(false).event("token_count", nil).event("token_count", nil).prompt("new"),
			[]string{"UserPromptSubmit: new"}, map[string]int{harness.CopiedLine: 6}},
		"resumed, which repeats its own line": {new(rollout).meta(nil).prompt("a").atOnce(true).meta(nil).prompt("b"),
			[]string{"UserPromptSubmit: a", "UserPromptSubmit: b"}, nil},
		"of the harness itself": {new(rollout).meta(harnesstest.Object{"source": harnesstest.Object{"internal": "memory_consolidation"}}).prompt("a"),
			nil, map[string]int{harness.OwnAgent: 2}},
		"forked, as the second line tells": {new(rollout).meta(nil).atOnce(true).line("session_meta", harnesstest.Object{"id": "old", "cwd": "/elsewhere"}).prompt("copied"),
			nil, map[string]int{harness.CopiedLine: 2}},
		"not placed": {new(rollout).prompt("a").meta(nil).prompt("b"), []string{"UserPromptSubmit: b"}, map[string]int{harness.HomelessLine: 2}},
		"refused": {new(rollout).meta(nil).calls("a").output("a", "exec command rejected by user").calls("b").output("b", "aborted by user after 3.0s").
			calls("c").output("c", "failed to parse function arguments: missing field").calls("d").output("d", "Exit code: 1\nOutput:\nexec command rejected by user").output("e", "x"),
			[]string{"PostToolUse: d"}, map[string]int{harness.Rejected: 1, harness.Stopped: 1, harness.InvalidCall: 1, harness.NoCall: 1}},
		"left running and ended by an event": {new(rollout).meta(nil).calls("a").output("a", "Process running with session ID 3\nOutput:\n").event("exec_command_end", harnesstest.Object{"call_id": "a", "exit_code": 0}),
			[]string{"PostToolUse: a"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, report := c.talk.read(t, harness.TranscriptOptions{})
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
	events, report := readtest.ReadAll(t, strings.NewReader(in), harness.TranscriptOptions{})
	if len(events) != 3 || events[0].Text != "glaze" || events[2].Text != "It fails." || report.Harness != "codex" {
		t.Fatalf("%+v, %+v", events, report)
	}
	c := events[1].Calls[0]
	if c.Command != "make" || !c.Failed || c.Error != "no" || events[1].Session != "0a1b" || events[1].Cwd != "/k" {
		t.Errorf("%+v", events[1])
	}
}

// Without access to the file's beginning, the file name contains the session.
func TestCodexTranscriptFindsItsSession(t *testing.T) {
	t.Parallel()
	const id = "0a1b2c3d-0000-7000-8000-00000000c0de"
	head := new(rollout).meta(harnesstest.Object{"id": id}).String()
	rest := new(rollout).line("turn_context", harnesstest.Object{"cwd": "/k"}).prompt("a").String()
	o := harness.TranscriptOptions{Offset: int64(len(head)), Path: "/x/rollout-2026-03-02T09-00-00-" + id + ".jsonl"}
	events, _ := readtest.ReadAll(t, strings.NewReader(rest), o)
	o.Path, o.Head = "copy.jsonl", strings.NewReader(head+rest)
	again, _ := readtest.ReadAll(t, strings.NewReader(rest), o)
	if len(events) != 1 || events[0].Session != id || !reflect.DeepEqual(events, again) {
		t.Errorf("by name %+v\nby head %+v", events, again)
	}
}

// A call captured live and imported later must be the same call.
func TestCodexTranscriptAndHookDescribeACallAlike(t *testing.T) {
	t.Parallel()
	patch := "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** Add File: c\n+z\n*** End Patch"
	function := func(name string, args harnesstest.Object) harnesstest.Object {
		b, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		return harnesstest.Object{"type": "function_call", "name": name, "arguments": string(b)}
	}
	for name, c := range map[string]struct {
		tool     string // the hook's name of the tool
		input    any
		response any
		item     harnesstest.Object
		output   any
	}{
		"shell": {"Bash", harnesstest.Object{"command": "bash -lc 'git push'"}, "To git.example:pots", function("shell", harnesstest.Object{"command": []string{"bash", "-lc", "git push"}}), "To git.example:pots"},
		"exit code": {"Bash", harnesstest.Object{"command": "make"}, "Exit code: 2\nWall time: 1.5 seconds\nOutput:\nno",
			function("shell_command", harnesstest.Object{"command": "make"}), "Exit code: 2\nWall time: 1.5 seconds\nOutput:\nno"},
		"exec":   {"Bash", harnesstest.Object{"command": "make"}, "ok", function("exec_command", harnesstest.Object{"cmd": "make"}), "ok"},
		"patch":  {"apply_patch", harnesstest.Object{"command": patch}, "Success.", harnesstest.Object{"type": "custom_tool_call", "name": "apply_patch", "input": patch}, "Success."},
		"failed": {"apply_patch", harnesstest.Object{"command": patch}, harnesstest.Object{"output": "no", "metadata": harnesstest.Object{"exit_code": 1}}, harnesstest.Object{"type": "custom_tool_call", "name": "apply_patch", "input": patch}, `{"output":"no","metadata":{"exit_code":1}}`},
		"mcp":    {"mcp__a__b", harnesstest.Object{"q": []int{1}}, harnesstest.Object{"content": []harnesstest.Object{{"type": "text", "text": "y"}}}, harnesstest.Object{"type": "function_call", "namespace": "mcp__a", "name": "b", "arguments": `{"q":[1]}`}, "y"},
		"plan":   {"update_plan", harnesstest.Object{"plan": []int{}}, "Plan updated", function("update_plan", harnesstest.Object{"plan": []int{}}), "Plan updated"},
		"agent":  {"spawn_agent", harnesstest.Object{"message": "m"}, harnesstest.Object{"agent_id": "a1"}, function("spawn_agent", harnesstest.Object{"message": "m"}), `{"agent_id":"a1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := codexHook(t, "PostToolUse", harnesstest.Object{"tool_name": c.tool, "tool_use_id": "c", "tool_input": c.input, "tool_response": c.response})
			c.item["call_id"] = "c"
			w := new(rollout).meta(nil).line("response_item", c.item)
			w.item(fmt.Sprintf("%s_output", c.item["type"]), harnesstest.Object{"call_id": "c", "output": c.output})
			events, _ := readtest.ReadAll(t, strings.NewReader(w.String()), harness.TranscriptOptions{})
			if len(events) != 1 || events[0].Source != live.Source {
				t.Fatalf("imported %+v", events)
			}
			for i := range events[0].Calls {
				events[0].Calls[i].Tool = c.tool // Codex uses other tool names in hooks
			}
			if !reflect.DeepEqual(events[0].Calls, live.Calls) {
				t.Errorf("imported %+v\nlive     %+v", events[0].Calls, live.Calls)
			}
		})
	}
}

func FuzzCodexTranscript(f *testing.F) {
	file, err := os.ReadFile("../harnesses/testdata/codex.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	meta, _, _ := bytes.Cut(file, []byte("\n"))
	for line := range bytes.Lines(file) {
		f.Add(line)
	}
	f.Add([]byte(new(rollout).prompt("a").calls("t").output("t", "Process running with session ID 1\nOutput:\n").event("turn_aborted", nil).prompt("b").String()))
	f.Add([]byte(`{"type":"message","role":"user","content":[{"text":"<environment_context><cwd>/k"}]}` + "\n" + `{"type":"local_shell_call","id":"x","action":{"command":["a"]}}`))
	for kind, item := range map[string]harnesstest.Object{
		"CommandExecution": {"command": []string{"/bin/bash", "-lc", "x"}, "status": "failed", "aggregated_output": "no", "exit_code": 1},
		"FileChange":       {"changes": harnesstest.Object{"/k/a\n*** Delete File: b": harnesstest.Object{"type": "update", "unified_diff": "@@\n-x\n+y\n", "move_path": "c"}, "d": harnesstest.Object{"type": "add", "content": "x"}}, "status": "failed"},
		"McpToolCall":      {"server": "s", "tool": "t", "arguments": nil, "result": harnesstest.Object{"Ok": harnesstest.Object{"content": []string{"x"}}}, "error": "no"},
		"UserMessage":      {"content": []harnesstest.Object{{"text": "a"}}},
		"AgentMessage":     {"content": "b"},
	} {
		item["type"], item["id"] = kind, "i"
		f.Add([]byte(new(rollout).event("task_started", harnesstest.Object{"turn_id": "t"}).event("item_completed", harnesstest.Object{"item": item}).String()))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		file := slices.Concat(meta, []byte("\n"), lines)
		readtest.ReadTwice(t, file, harness.TranscriptOptions{Path: "rollout-\xff.jsonl"})
		readtest.ReadTwice(t, lines, harness.TranscriptOptions{Path: "/x/rollout-2026-03-02T09-00-00-0a1b2c3d-0000-7000-8000-00000000c0de.jsonl"})
	})
}
