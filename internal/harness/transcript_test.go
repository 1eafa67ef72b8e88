package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"cairn/internal/fault"
	"cairn/internal/observation"
)

var update = flag.Bool("update", false, "rewrite golden files")

func readAll(t testing.TB, r io.Reader, o TranscriptOptions) ([]observation.Event, TranscriptReport) {
	t.Helper()
	var events []observation.Event
	report, err := ReadTranscript(t.Context(), r, o, func(e observation.Event) error {
		events = append(events, e)
		return nil
	})
	if err != nil {
		t.Fatalf("ReadTranscript: %v", err)
	}
	return events, report
}

// golden returns an event as one line of JSON without its empty fields.
func golden(t *testing.T, e observation.Event) string {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	b, err = json.Marshal(withoutZeros(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value = withoutZeros(value); value == nil || value == "" || value == false || value == 0.0 && name != "NumFiles" {
				delete(v, name)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutZeros(v[i])
		}
	}
	return v
}

// samples returns invented transcripts of every harness. The expected events are next to them
// (.golden).
func samples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	return files
}

func TestReadTranscriptGolden(t *testing.T) {
	t.Parallel()
	for _, path := range samples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			compareGolden(t, path)
		})
	}
}

func compareGolden(t *testing.T, path string) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	events, report := readAll(t, bytes.NewReader(file), TranscriptOptions{Path: path})
	var got strings.Builder
	for _, e := range events {
		fmt.Fprintln(&got, golden(t, e))
	}
	fmt.Fprintf(&got, "\n%d lines, %d bytes\n", report.Lines, report.Bytes)
	for _, reason := range slices.Sorted(maps.Keys(report.Skipped)) {
		fmt.Fprintf(&got, "%d %s\n", report.Skipped[reason], reason)
	}
	rest, _, _ := bytes.Cut(file[report.Resume:], []byte("\n"))
	fmt.Fprintf(&got, "resume at %s\n", rest)
	sameAsGolden(t, strings.TrimSuffix(path, filepath.Ext(path))+".golden", got.String())
}

// sameAsGolden compares a text with a golden file, or writes the file.
func sameAsGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("run with -update and look at the difference:\n%s", got)
	}
}

// A file may be imported at any time while it grows. Wherever it was cut, the events read then and
// the events read from Resume on are complete.
func TestReadTranscriptResumesWithoutLoss(t *testing.T) {
	t.Parallel()
	for _, path := range samples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			resumeEverywhere(t, file)
		})
	}
}

func resumeEverywhere(t *testing.T, file []byte) {
	t.Helper()
	key := func(e observation.Event) string {
		id := ""
		if e.Kind == observation.Tool {
			id = e.Calls[0].ID
		}
		return fmt.Sprint(e.Kind, e.LineID, id, e.Text)
	}
	whole, wholeReport := readAll(t, bytes.NewReader(file), TranscriptOptions{})
	step := 97
	if raced {
		step = 1009
	}
	for cut := range file {
		if cut%step != 0 && file[cut] != '\n' {
			continue
		}
		first, report := readAll(t, bytes.NewReader(file[:cut]), TranscriptOptions{})
		if report.Resume > int64(cut) || report.Resume > 0 && file[report.Resume-1] != '\n' {
			t.Fatalf("cut at %d: resume at %d", cut, report.Resume)
		}
		o := TranscriptOptions{Offset: report.Resume}
		if o.Offset > 0 {
			o.Head = bytes.NewReader(file[:o.Offset])
		}
		second, report := readAll(t, bytes.NewReader(file[o.Offset:]), o)
		if report.Resume != wholeReport.Resume {
			t.Fatalf("cut at %d: resume at %d, at once at %d", cut, report.Resume, wholeReport.Resume)
		}
		found := map[string]observation.Event{}
		for _, e := range append(first, second...) {
			found[key(e)] = e
		}
		for _, e := range whole {
			if got, ok := found[key(e)]; !ok || !reflect.DeepEqual(got, e) {
				t.Fatalf("cut at %d: got %+v, want %+v", cut, got, e)
			}
		}
	}
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

// told returns the text of an event, or the id of its first call.
func told(e observation.Event) string {
	if e.Kind == observation.Tool {
		return e.Calls[0].ID
	}
	return e.Text
}

func (w *talk) read(t *testing.T, o TranscriptOptions) ([]string, TranscriptReport) {
	t.Helper()
	events, report := readAll(t, strings.NewReader(w.String()), o)
	var short []string
	for _, e := range events {
		short = append(short, strings.TrimSpace(e.Source+" "+e.AgentID)+": "+told(e))
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
			[]string{"UserPromptSubmit: a"}, map[string]int{noResult: 1}},
		"not yet, a call was the last": {new(talk).user("a").says("one").calls("t").result("t", ""),
			[]string{"UserPromptSubmit: a", "PostToolUse: t"}, nil},
		"without a message when stopped": {new(talk).user("a").says("one").user("[Request interrupted by user]").user("b").says("two"),
			[]string{"UserPromptSubmit: a", "UserPromptSubmit: b", "Stop: two"}, map[string]int{machinePrompt: 1, turnStopped: 1}},
		"by what the machine says": {new(talk).user("a").says("one").user("<task-notification>x</task-notification>").says("two"),
			[]string{"UserPromptSubmit: a", "Stop: one", "Stop: two"}, map[string]int{machinePrompt: 1}},
		"not yet, a call is coming": {new(talk).user("a").line("assistant", `"message":{"stop_reason":"tool_use","content":[{"type":"text","text":"one"}]}`),
			[]string{"UserPromptSubmit: a"}, nil},
		"without a word": {new(talk).user("a").says(" ").user("b"),
			[]string{"UserPromptSubmit: a", "UserPromptSubmit: b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, report := c.talk.read(t, TranscriptOptions{})
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
	got, report := w.read(t, TranscriptOptions{Path: "/k/s/subagents/agent-a5f.jsonl"})
	want := []string{"PostToolUse a5f: t", "SubagentStop a5f: done", "SubagentStop a5f: more done"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if rest := w.String()[report.Resume:]; !strings.Contains(rest[:strings.IndexByte(rest, '\n')], "More.") {
		t.Errorf("resume at %.80s", rest)
	}
	if got, _ := w.read(t, TranscriptOptions{Path: "agent-acompact-9.jsonl"}); len(got) > 0 {
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
		"rejected":                    {`,"content":"The user doesn't want to proceed with this tool use. Stop.","is_error":true`, ``, rejected, false},
		"not now":                     {`,"content":"The user doesn't want to take this action right now.","is_error":true`, ``, rejected, false},
		"rejected plan":               {`,"content":"The agent proposed a plan that was rejected by the user. ","is_error":true`, ``, rejected, false},
		"rejected in the old form":    {`,"content":"no","is_error":true`, `,"toolUseResult":"User rejected tool use"`, rejected, false},
		"rejected by kind":            {`,"content":"no","is_error":true`, `,"toolDenialKind":"user-rejected"`, rejected, false},
		"cancelled by kind":           {`,"content":"no","is_error":true`, `,"toolDenialKind":"cancelled"`, stopped, false},
		"denied by kind":              {`,"content":"no"`, `,"toolDenialKind":"automode-blocked"`, denied, false},
		"stopped":                     {`,"content":"[Request interrupted by user for tool use]","is_error":true`, ``, stopped, false},
		"invalid":                     {`,"content":"<tool_use_error>File has not been read yet.</tool_use_error>","is_error":true`, ``, invalidCall, false},
		"invalid in blocks":           {`,"content":[{"type":"text","text":"<tool_use_error>No.</tool_use_error>"}],"is_error":true`, ``, invalidCall, false},
		"unknown tool":                {`,"is_error":true`, `,"toolUseResult":"Error: No such tool available: Fire"`, invalidCall, false},
		"denied":                      {`,"content":"Permission to use Bash with command rm has been denied.","is_error":true`, ``, denied, false},
		"denied by a classifier":      {`,"content":"Permission for this action was denied by the auto mode.","is_error":true`, ``, denied, false},
		"never granted":               {`,"content":"Claude requested permissions to use Bash, but you haven't granted it yet.","is_error":true`, ``, denied, false},
		"needs approval":              {`,"content":"This command requires approval","is_error":true`, ``, denied, false},
		"outside":                     {`,"content":"cd in '/x' was blocked. For security, Claude Code may only stay.","is_error":true`, ``, denied, false},
		"blocked by a hook":           {`,"content":"PreToolUse:Bash hook error: [guard.sh]: no","is_error":true`, ``, blocked, false},
		"denied by a hook":            {`,"content":"Hook PreToolUse:Bash denied this tool","is_error":true`, ``, blocked, false},
		"blocked by a hook of old":    {`,"content":"Bash operation blocked by hook:\n- no","is_error":true`, ``, blocked, false},
		"result lost":                 {`,"content":"[Tool result missing due to internal error]","is_error":true`, ``, resultLost, false},
		"talking of blocking at last": {`,"content":"` + strings.Repeat("x", 600) + ` operation blocked by hook:","is_error":true`, ``, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := new(talk).calls("t")
			w.line("user", `"message":{"content":[{"type":"tool_result","tool_use_id":"t"`+c.result+`}]}`+c.line)
			events, report := readAll(t, strings.NewReader(w.String()), TranscriptOptions{})
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
			event, rest := "PostToolUse", object{"tool_response": json.RawMessage(c.response)}
			result, line := `,"content":"y"`, `,"toolUseResult":`+c.response
			if c.failure != "" {
				event, rest = "PostToolUseFailure", object{"error": c.failure}
				result, line = fmt.Sprintf(`,"content":%q,"is_error":true`, c.failure), fmt.Sprintf(`,"toolUseResult":%q`, "Error: "+c.failure)
			}
			if c.response == "null" {
				result = ""
			}
			maps.Copy(rest, object{"tool_name": c.tool, "tool_use_id": "t", "tool_input": json.RawMessage(c.input)})
			live := mustHook(t, payload(t, event, rest))
			w := new(talk).line("assistant", fmt.Sprintf(`"message":{"content":[{"type":"tool_use","id":"t","name":%q,"input":%s}]}`, c.tool, c.input))
			w.line("user", `"message":{"content":[{"type":"tool_result","tool_use_id":"t"`+result+`}]}`+line)
			events, _ := readAll(t, strings.NewReader(w.String()), TranscriptOptions{})
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
	events, report := readAll(t, strings.NewReader(byteOrderMark+in), TranscriptOptions{})
	if len(events) != 3 || report.Skipped[homelessLine] != 1 {
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
	if testing.Short() || raced {
		t.Skip("reads 200 MB of filling")
	}
	filler := func(n int64) io.Reader { return io.LimitReader(endless('x'), n) }
	head := `{"type":"user","uuid":"h","message":{"content":"`
	in := io.MultiReader(
		strings.NewReader(new(talk).user("before").String()),
		strings.NewReader(head), filler(66<<20), strings.NewReader("\"}}\n"),
		filler(maxLine), strings.NewReader("\n"), // just short enough, but not JSON
		filler(maxLine+1), strings.NewReader("\n"),
		strings.NewReader(new(talk).says("after").String()),
	)
	events, report := readAll(t, in, TranscriptOptions{})
	if len(events) != 1 || events[0].Text != "before" {
		t.Errorf("%d events", len(events)) // the second line repeats the id of the first
	}
	want := map[string]int{hugeLine: 2, badLine: 1, repeatedLine: 1}
	if !maps.Equal(report.Skipped, want) || report.Lines != 5 {
		t.Errorf("%d lines, skipped %v", report.Lines, report.Skipped)
	}
}

type endless byte

func (c endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c)
	}
	return len(p), nil
}

func TestReadTranscriptTakesALastLineWithoutNewline(t *testing.T) {
	t.Parallel()
	whole := strings.TrimSpace(new(talk).user("a").String())
	if events, _ := readAll(t, strings.NewReader(whole), TranscriptOptions{}); len(events) != 1 {
		t.Errorf("whole: %d events", len(events))
	}
	events, report := readAll(t, strings.NewReader(whole[:len(whole)-1]), TranscriptOptions{})
	if len(events) != 0 || report.Skipped[tornLine] != 1 || report.Resume != 0 {
		t.Errorf("torn: %d events, %+v", len(events), report)
	}
}

func TestReadTranscriptStops(t *testing.T) {
	t.Parallel()
	in := new(talk).user("a").says("b").user("c").String()
	quit := errors.New("enough")
	n := 0
	report, err := ReadTranscript(t.Context(), strings.NewReader(in), TranscriptOptions{}, func(observation.Event) error {
		n++
		return quit
	})
	if err != quit || n != 1 || report.Resume != 0 || report.Lines != 1 {
		t.Errorf("%d events, %+v, %v", n, report, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadTranscript(ctx, strings.NewReader(in), TranscriptOptions{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	broken := iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(in)))
	_, err = ReadTranscript(t.Context(), broken, TranscriptOptions{}, nil)
	if !fault.HasCode(err, "unreadable_transcript") || !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("broken reader: %v", err)
	}
}
