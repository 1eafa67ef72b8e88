package claude_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/harness/readtest"
	"cairn/internal/observation"
)

func FuzzTranscript(f *testing.F) {
	file, err := os.ReadFile("../harnesses/testdata/session.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	for line := range bytes.Lines(file) {
		f.Add(line)
	}
	f.Add([]byte(new(talk).user("a").says("b").calls("t").result("t", `,"content":["x"],"is_error":true`).user("[Request interrupted").String()))
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, e := range readtest.ReadTwice(t, file, harness.TranscriptOptions{Path: "agent-\xff.txt"}) {
			if e.Harness == "claude" && e.AgentID == "" {
				t.Errorf("%+v", e)
			}
		}
	})
}

// talk creates lines of a session from short notes.
type talk struct {
	strings.Builder
	n int
}

func (w *talk) line(kind, members string) *talk {
	w.n++
	fmt.Fprintf(w, `{"type":%q,"uuid":"u%d","sessionId":"s","cwd":"/k","timestamp":"2026-03-02T09:00:%02d.5Z",%s}`+"\n", kind, w.n, w.n%60, members)
	return w
}

func (w *talk) user(text string) *talk {
	return w.line("user", fmt.Sprintf(`"message":{"content":%q}`, text))
}

func (w *talk) says(text string) *talk {
	return w.line("assistant", fmt.Sprintf(`"message":{"content":[{"type":"text","text":%q}]}`, text))
}

func (w *talk) calls(id string) *talk {
	return w.line("assistant", fmt.Sprintf(`"message":{"content":[{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"make"}}]}`, id))
}

func (w *talk) result(id, more string) *talk {
	return w.line("user", fmt.Sprintf(`"message":{"content":[{"type":"tool_result","tool_use_id":%q%s}]}`, id, more))
}

func (w *talk) read(t *testing.T, o harness.TranscriptOptions) ([]string, harness.TranscriptReport) {
	t.Helper()
	events, report := readtest.ReadAll(t, strings.NewReader(w.String()), o)
	var short []string
	for _, e := range events {
		short = append(short, strings.TrimSpace(e.Source+" "+e.AgentID)+": "+harnesstest.Told(e))
	}
	return short, report
}

func TestReadTranscriptEndsTurns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		talk *talk
		want []string
		lost map[string]int
	}{
		"with the last text": {new(talk).user("a").says("one").calls("t").result("t", "").says("two").user("b"),
			[]string{"UserPromptSubmit: a", "PostToolUse: t", "Stop: two", "UserPromptSubmit: b"}, nil},
		"by the next prompt, even after a call": {new(talk).user("a").says("one").calls("t").result("t", "").user("b"),
			[]string{"UserPromptSubmit: a", "PostToolUse: t", "Stop: one", "UserPromptSubmit: b"}, nil},
		"by the end of the file": {new(talk).user("a").says("one"),
			[]string{"UserPromptSubmit: a", "Stop: one"}, nil},
		"not yet, a call is open": {new(talk).user("a").says("one").calls("t"),
			[]string{"UserPromptSubmit: a"}, map[string]int{harness.NoResult: 1}},
		"not yet, a call was the last": {new(talk).user("a").says("one").calls("t").result("t", ""),
			[]string{"UserPromptSubmit: a", "PostToolUse: t"}, nil},
		"without a message when stopped": {new(talk).user("a").says("one").user("[Request interrupted by user]").user("b").says("two"),
			[]string{"UserPromptSubmit: a", "UserPromptSubmit: b", "Stop: two"}, map[string]int{harness.MachinePrompt: 1, harness.TurnStopped: 1}},
		"by what the machine says": {new(talk).user("a").says("one").user("<task-notification>x</task-notification>").says("two"),
			[]string{"UserPromptSubmit: a", "Stop: one", "Stop: two"}, map[string]int{harness.MachinePrompt: 1}},
		"not yet, a call is coming": {new(talk).user("a").line("assistant", `"message":{"stop_reason":"tool_use","content":[{"type":"text","text":"one"}]}`),
			[]string{"UserPromptSubmit: a"}, nil},
		"without a word": {new(talk).user("a").says(" ").user("b"),
			[]string{"UserPromptSubmit: a", "UserPromptSubmit: b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, report := c.talk.read(t, harness.TranscriptOptions{})
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if !maps.Equal(report.Skipped, c.lost) {
				t.Errorf("skipped %v, want %v", report.Skipped, c.lost)
			}
		})
	}
}

func TestReadTranscriptOfASubagent(t *testing.T) {
	t.Parallel()
	w := new(talk).user("Do it.").calls("t").result("t", "").says("done").user("More.").says("more done")
	got, report := w.read(t, harness.TranscriptOptions{Path: "/k/s/subagents/agent-a5f.jsonl"})
	want := []string{"PostToolUse a5f: t", "SubagentStop a5f: done", "SubagentStop a5f: more done"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if rest := w.String()[report.Resume:]; !strings.Contains(rest[:strings.IndexByte(rest, '\n')], "More.") {
		t.Errorf("resume at %.80s", rest)
	}
	if got, _ := w.read(t, harness.TranscriptOptions{Path: "agent-acompact-9.jsonl"}); len(got) > 0 {
		t.Errorf("the summarising agent told %q", got)
	}
}

func TestReadTranscriptTellsRefusalsFromFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result string // members of the result in addition to the id
		line   string // members of the line
		reason string // "" if the call ran
		failed bool
	}{
		"success":                     {`,"content":"ok"`, ``, "", false},
		"failure":                     {`,"content":"Exit code 1\nno","is_error":true`, `,"toolUseResult":"Error: Exit code 1\nno"`, "", true},
		"killed":                      {`,"content":"Exit code 137\n[Request interrupted by user]","is_error":true`, `,"toolDenialKind":"interrupted"`, "", false},
		"quoting a refusal":           {`,"content":"The user doesn't want to proceed with this tool use"`, ``, "", false},
		"failing with odd words":      {`,"content":"spawn failed","is_error":true`, ``, "", true},
		"rejected":                    {`,"content":"The user doesn't want to proceed with this tool use. Stop.","is_error":true`, ``, harness.Rejected, false},
		"not now":                     {`,"content":"The user doesn't want to take this action right now.","is_error":true`, ``, harness.Rejected, false},
		"rejected plan":               {`,"content":"The agent proposed a plan that was rejected by the user. ","is_error":true`, ``, harness.Rejected, false},
		"rejected in the old form":    {`,"content":"no","is_error":true`, `,"toolUseResult":"User rejected tool use"`, harness.Rejected, false},
		"rejected by kind":            {`,"content":"no","is_error":true`, `,"toolDenialKind":"user-rejected"`, harness.Rejected, false},
		"cancelled by kind":           {`,"content":"no","is_error":true`, `,"toolDenialKind":"cancelled"`, harness.Stopped, false},
		"denied by kind":              {`,"content":"no"`, `,"toolDenialKind":"automode-blocked"`, harness.Denied, false},
		"stopped":                     {`,"content":"[Request interrupted by user for tool use]","is_error":true`, ``, harness.Stopped, false},
		"invalid":                     {`,"content":"<tool_use_error>File has not been read yet.</tool_use_error>","is_error":true`, ``, harness.InvalidCall, false},
		"invalid in blocks":           {`,"content":[{"type":"text","text":"<tool_use_error>No.</tool_use_error>"}],"is_error":true`, ``, harness.InvalidCall, false},
		"unknown tool":                {`,"is_error":true`, `,"toolUseResult":"Error: No such tool available: Fire"`, harness.InvalidCall, false},
		"denied":                      {`,"content":"Permission to use Bash with command rm has been denied.","is_error":true`, ``, harness.Denied, false},
		"denied by a classifier":      {`,"content":"Permission for this action was denied by the auto mode.","is_error":true`, ``, harness.Denied, false},
		"never granted":               {`,"content":"Claude requested permissions to use Bash, but you haven't granted it yet.","is_error":true`, ``, harness.Denied, false},
		"needs approval":              {`,"content":"This command requires approval","is_error":true`, ``, harness.Denied, false},
		"outside":                     {`,"content":"cd in '/x' was blocked. For security, Claude Code may only stay.","is_error":true`, ``, harness.Denied, false},
		"blocked by a hook":           {`,"content":"PreToolUse:Bash hook error: [guard.sh]: no","is_error":true`, ``, harness.Blocked, false},
		"denied by a hook":            {`,"content":"Hook PreToolUse:Bash denied this tool","is_error":true`, ``, harness.Blocked, false},
		"blocked by a hook of old":    {`,"content":"Bash operation blocked by hook:\n- no","is_error":true`, ``, harness.Blocked, false},
		"result lost":                 {`,"content":"[Tool result missing due to internal error]","is_error":true`, ``, harness.ResultLost, false},
		"talking of blocking at last": {`,"content":"` + strings.Repeat("x", 600) + ` operation blocked by hook:","is_error":true`, ``, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := new(talk).calls("t")
			w.line("user", `"message":{"content":[{"type":"tool_result","tool_use_id":"t"`+c.result+`}]}`+c.line)
			events, report := readtest.ReadAll(t, strings.NewReader(w.String()), harness.TranscriptOptions{})
			if c.reason != "" {
				if len(events) != 0 || report.Skipped[c.reason] != 1 {
					t.Errorf("%d events, skipped %v", len(events), report.Skipped)
				}
				return
			}
			if len(events) != 1 || events[0].Calls[0].Failed != c.failed {
				t.Fatalf("got %+v, skipped %v", events, report.Skipped)
			}
			if source := events[0].Source; (source == "PostToolUseFailure") != (c.failed || events[0].Calls[0].Interrupted) {
				t.Errorf("source %s", source)
			}
		})
	}
}

// A call captured live and imported later must be the same call.
func TestTranscriptAndHookDescribeACallAlike(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool, input string
		response    string // the hook's response and toolUseResult
		failure     string // the hook's error, instead of response
	}{
		"shell":       {"Bash", `{"command":"git push"}`, `{"stdout":"","stderr":"To git.example:pots","interrupted":false}`, ""},
		"exit code":   {"Bash", `{"command":"x","description":"d"}`, ``, "Exit code 3\nbroken"},
		"write":       {"Write", `{"file_path":"/k/a","content":"x"}`, `{"type":"create","filePath":"/k/a"}`, ""},
		"failed edit": {"Edit", `{"file_path":"/k/a"}`, ``, "EISDIR: not a file"},
		"search":      {"Grep", `{"pattern":"x"}`, `{"mode":"content","numFiles":2}`, ""},
		"agent":       {"Agent", `{"description":"d","prompt":"p"}`, `{"status":"completed","agentId":"a1"}`, ""},
		"mcp":         {"mcp__a__b", `{"q":[1]}`, `[{"type":"text","text":"y"}]`, ""},
		"failed mcp":  {"mcp__a__b", `{"q":[1]}`, ``, "not found"},
		"text":        {"Bash", `{"command":"x"}`, `"all in one"`, ""},
		"nothing":     {"Read", `{"file_path":"/k/a"}`, `null`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event, rest := "PostToolUse", harnesstest.Object{"tool_response": json.RawMessage(c.response)}
			result, line := `,"content":"y"`, `,"toolUseResult":`+c.response
			if c.failure != "" {
				event, rest = "PostToolUseFailure", harnesstest.Object{"error": c.failure}
				result, line = fmt.Sprintf(`,"content":%q,"is_error":true`, c.failure), fmt.Sprintf(`,"toolUseResult":%q`, "Error: "+c.failure)
			}
			if c.response == "null" {
				result = ""
			}
			maps.Copy(rest, harnesstest.Object{"tool_name": c.tool, "tool_use_id": "t", "tool_input": json.RawMessage(c.input)})
			live := readtest.MustHook(t, harnesstest.Payload(t, event, rest))
			w := new(talk).line("assistant", fmt.Sprintf(`"message":{"content":[{"type":"tool_use","id":"t","name":%q,"input":%s}]}`, c.tool, c.input))
			w.line("user", `"message":{"content":[{"type":"tool_result","tool_use_id":"t"`+result+`}]}`+line)
			events, _ := readtest.ReadAll(t, strings.NewReader(w.String()), harness.TranscriptOptions{})
			if len(events) != 1 || events[0].Source != live.Source || !reflect.DeepEqual(events[0].Calls, live.Calls) {
				t.Errorf("imported %+v\nlive     %+v", events, live)
			}
		})
	}
}

func TestReadTranscriptFillsWhatLinesLeaveOut(t *testing.T) {
	t.Parallel()
	in := `{"type":"user","message":{"content":"too early"}}
{"type":"user","uuid":"1","sessionId":"s","cwd":"/k","timestamp":"2026-03-02T09:00:00+02:00","promptId":"p","message":{"content":"a"}}
{"type":"user","timestamp":"yesterday","promptId":"p","message":{"content":"b"}}
{"type":"assistant","message":{"content":"said"}}
`
	events, report := readtest.ReadAll(t, strings.NewReader(lazyjson.ByteOrderMark+in), harness.TranscriptOptions{})
	if len(events) != 3 || report.Skipped[harness.HomelessLine] != 1 {
		t.Fatalf("got %+v, skipped %v", events, report.Skipped)
	}
	at := time.Date(2026, 3, 2, 7, 0, 0, 0, time.UTC)
	for i, e := range events {
		if e.Session != "s" || e.Cwd != "/k" || !e.At.Equal(at) || !e.Imported || e.Harness != "claude" {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if events[0].PromptID != "p" || events[1].PromptID != "" || events[2].PromptID != "p" {
		t.Errorf("prompt ids %q, %q, %q: the second prompt would be taken for the first", events[0].PromptID, events[1].PromptID, events[2].PromptID)
	}
}

func TestReadTranscriptPassesOverHugeLines(t *testing.T) {
	t.Parallel()
	if testing.Short() || harnesstest.Raced {
		t.Skip("reads 200 MB of filling")
	}
	filler := func(n int64) io.Reader { return io.LimitReader(harnesstest.Endless('x'), n) }
	head := `{"type":"user","uuid":"h","message":{"content":"`
	in := io.MultiReader(
		strings.NewReader(new(talk).user("before").String()),
		strings.NewReader(head), filler(66<<20), strings.NewReader("\"}}\n"),
		filler(harness.MaxLine), strings.NewReader("\n"), // just short enough, but not JSON
		filler(harness.MaxLine+1), strings.NewReader("\n"),
		strings.NewReader(new(talk).says("after").String()),
	)
	events, report := readtest.ReadAll(t, in, harness.TranscriptOptions{})
	if len(events) != 1 || events[0].Text != "before" {
		t.Errorf("%d events", len(events)) // the second line repeats the id of the first
	}
	want := map[string]int{harness.HugeLine: 2, harness.BadLine: 1, harness.RepeatedLine: 1}
	if !maps.Equal(report.Skipped, want) || report.Lines != 5 {
		t.Errorf("%d lines, skipped %v", report.Lines, report.Skipped)
	}
}

func TestReadTranscriptTakesALastLineWithoutNewline(t *testing.T) {
	t.Parallel()
	whole := strings.TrimSpace(new(talk).user("a").String())
	if events, _ := readtest.ReadAll(t, strings.NewReader(whole), harness.TranscriptOptions{}); len(events) != 1 {
		t.Errorf("whole: %d events", len(events))
	}
	events, report := readtest.ReadAll(t, strings.NewReader(whole[:len(whole)-1]), harness.TranscriptOptions{})
	if len(events) != 0 || report.Skipped[harness.TornLine] != 1 || report.Resume != 0 {
		t.Errorf("torn: %d events, %+v", len(events), report)
	}
}

func TestReadTranscriptStops(t *testing.T) {
	t.Parallel()
	in := new(talk).user("a").says("b").user("c").String()
	quit := errors.New("enough")
	n := 0
	report, err := harnesses.ReadTranscript(t.Context(), strings.NewReader(in), harness.TranscriptOptions{}, func(observation.Event) error {
		n++
		return quit
	})
	if err != quit || n != 1 || report.Resume != 0 || report.Lines != 1 {
		t.Errorf("%d events, %+v, %v", n, report, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := harnesses.ReadTranscript(ctx, strings.NewReader(in), harness.TranscriptOptions{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	broken := iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(in)))
	_, err = harnesses.ReadTranscript(t.Context(), broken, harness.TranscriptOptions{}, nil)
	if !fault.HasCode(err, "unreadable_transcript") || !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("broken reader: %v", err)
	}
}
