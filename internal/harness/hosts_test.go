package harness

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/observation"
)

// sent returns payloads that a real program sent, recorded for the end-to-end tests.
func sent(t testing.TB, host, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../cmd/cairn/testdata/hosts", host, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEveryHarnessIsCompleteAndItsNamesAreItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, h := range Harnesses() {
		for _, name := range append([]string{h.Name}, h.Aliases...) {
			if other := seen[name]; other != "" {
				t.Errorf("%s is a name of %s and %s", name, other, h.Name)
			}
			seen[name] = h.Name
			if found, ok := Of(name); !ok || found.Name != h.Name {
				t.Errorf("%s: %+v", name, found)
			}
		}
		homes := Homes{User: filepath.FromSlash("/home/ana")}
		files := h.Files(homes)
		if h.Title == "" || h.Program == "" || h.answer == nil || h.event == nil || h.transcript == nil || h.writes == nil || len(files) == 0 {
			t.Errorf("%s lacks something", h.Name)
		}
		if (h.Transcripts == nil) != (h.read == nil) {
			t.Errorf("%s: transcripts that nobody reads", h.Name)
		}
		for _, f := range files {
			if !strings.HasPrefix(f.Path, homes.User) || (f.Format == Block || f.Format == Script) != (f.Text != "") {
				t.Errorf("%s: %+v", h.Name, f)
			}
		}
		for _, w := range h.Hooks.Wanted {
			if w.Helps && !h.Helped {
				t.Errorf("%s: %s asks for help that the harness does not take", h.Name, w.Event)
			}
		}
	}
}

// Without --from, the payload's content identifies the host. For the hosts below this applies at
// least to payloads at the end of a turn or with a call's result.
func TestPayloadsOfNewHostsAreToldByWhatTheyHold(t *testing.T) {
	t.Parallel()
	for host, marks := range map[string][]string{
		copilot: {`"tool_result"`, `"transcript_path"`, `"initial_prompt"`}, qwen: {`"session_id"`},
	} {
		n := 0
		for payload := range bytes.Lines(sent(t, host, "payloads.jsonl")) {
			if !slices.ContainsFunc(marks, func(m string) bool { return bytes.Contains(payload, []byte(m)) }) {
				continue
			}
			n++
			payload = bytes.ReplaceAll(payload, []byte("@HOME@"), []byte("/home/ana"))
			if e, err := Hook(bytes.TrimSpace(payload), "auto", ""); err != nil || e.Harness != host {
				t.Errorf("%s is taken for %s's, %v", payload, e.Harness, err)
			}
		}
		if n < 3 {
			t.Errorf("%s: %d payloads", host, n)
		}
	}
}

func TestOnlyHarnessesThatTakeItGetHelpAndOnlyTheFirstPromptOfQwenBringsTheContext(t *testing.T) {
	t.Parallel()
	var helped, late []string
	for _, h := range Harnesses() {
		e := observation.Event{Kind: observation.Prompt, Source: onPrompt, Harness: h.Name}
		if TakesHelp(e) {
			helped = append(helped, h.Name)
		}
		if StartsLate(e) {
			late = append(late, h.Name)
		}
		e.Kind, e.Source = observation.Touch, onBeforeTool
		if StartsLate(e) {
			t.Errorf("%s starts with a call", h.Name)
		}
		if RefusesByTwo(e, GuardDecision{Decision: Deny}) != (h.Name == windsurf) || RefusesByTwo(e, GuardDecision{Decision: Ask}) {
			t.Errorf("%s: refusal by exit code", h.Name)
		}
	}
	if want := []string{claude, codex, openCode, copilot, qwen}; !slices.Equal(helped, want) || !slices.Equal(late, []string{qwen}) {
		t.Errorf("helped %v, late %v", helped, late)
	}
}

func TestTheConversationOfClineGolden(t *testing.T) {
	t.Parallel()
	const path = "testdata/placed/cline/1795402384206_e6cby/1795402384206_e6cby.messages.json"
	in, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	events, report := readAll(t, bytes.NewReader(in), TranscriptOptions{Path: path, ModTime: someday})
	var got strings.Builder
	for _, e := range events {
		fmt.Fprintln(&got, golden(t, e))
	}
	fmt.Fprintf(&got, "\n%s: %d lines, resume at %d\n", report.Harness, report.Lines, report.Resume)
	for _, reason := range slices.Sorted(maps.Keys(report.Skipped)) {
		fmt.Fprintf(&got, "%d %s\n", report.Skipped[reason], reason)
	}
	sameAsGolden(t, "testdata/placed/cline.golden", got.String())
}

// In Copilot CLI only the transcript contains a turn's messages. A turn that has ended without a
// message has none, whatever earlier turns contain.
func TestTheLastWordsOfATurnOfCopilotComeFromItsTranscript(t *testing.T) {
	t.Parallel()
	const prompt, said, called = `{"type":"user.message","data":{"content":"x"}}`, `{"type":"assistant.message","data":{"content":"Done.","toolRequests":[]}}`,
		`{"type":"assistant.message","data":{"content":"Let me see.","toolRequests":[{"toolCallId":"1"}]}}`
	const earlier = `{"type":"assistant.message","timestamp":"2031-01-01T10:00:00Z","data":{"content":"Before.","toolRequests":[]}}`
	now := time.Date(2031, 1, 1, 10, 0, 3, 0, time.UTC)
	for name, c := range map[string]struct {
		lines []string
		want  string
		over  bool
	}{
		"resumed":         {[]string{earlier, `{"type":"session.shutdown","timestamp":"2031-01-01T10:00:00Z"}`}, "", false},
		"ended":           {[]string{prompt, called, said}, "Done.", true},
		"not yet written": {[]string{prompt, said, prompt, called}, "Let me see.", false},
		"a new prompt":    {[]string{said, prompt}, "", false},
		"torn":            {[]string{prompt, said, `{"type":"assis`}, "Done.", true},
	} {
		path := filepath.Join(t.TempDir(), "events.jsonl")
		if err := os.WriteFile(path, []byte(strings.Join(c.lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, over := copilotEnd(path, now); got != c.want || over != c.over {
			t.Errorf("%s: %q, %v", name, got, over)
		}
	}
	if got := copilotLastWords(filepath.Join(t.TempDir(), "elsewhere.jsonl"), "s1", now); got != "" {
		t.Errorf("a path without the session is read: %q", got)
	}
}

func TestACallThroughQwensToolForDeferredToolsIsACallOfThatTool(t *testing.T) {
	t.Parallel()
	c := qwenCall("1", "tool_call", []byte(`{"name":"mcp__kiln__fire","arguments":{"cone":6}}`))
	if c.Action != observation.MCP || c.Server != "kiln" || c.Method != "fire" || len(c.Args) != 1 || c.ID != "1" {
		t.Errorf("%+v", c)
	}
	if c := qwenCall("1", "tool_call", []byte(`{"name":"tool_call"}`)); c.Action == observation.MCP {
		t.Errorf("%+v", c)
	}
}

func fuzzPayloads(f *testing.F, host string, more ...string) {
	for _, s := range more {
		f.Add([]byte(`{"session_id":"s","cwd":"/k","hook_event_name":` + s + `}`))
	}
	for payload := range bytes.Lines(sent(f, host, "payloads.jsonl")) {
		f.Add(bytes.TrimSpace(bytes.ReplaceAll(payload, []byte("@CWD@"), []byte("/k"))))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if bytes.Contains(payload, []byte("transcript_path")) {
			return // its source may change between two readings
		}
		fuzzHook(t, payload, host)
	})
}

func FuzzOpenCodeHook(f *testing.F) {
	fuzzPayloads(f, openCode, `"PostToolUse","tool_name":"bash","tool_response":{"output":"<bash_metadata>\u0000timeout","exit":-1}`,
		`"PostToolUse","tool_name":"apply_patch","tool_input":{"patchText":"*** Begin Patch\n*** Add File: \nx\n*** End Patch"}`)
}

func FuzzCopilotHook(f *testing.F) {
	fuzzPayloads(f, copilot, `"PostToolUse","tool_name":"bash","tool_input":"{","tool_result":{"text_result_for_llm":"x<shellId: completed with exit code -"}`,
		`"PreToolUse","tool_name":"a-b-","tool_input":{"path":1}`, `"PostToolUseFailure","tool_name":"-","error":["\ud800"]`)
}

func FuzzQwenHook(f *testing.F) {
	fuzzPayloads(f, qwen, `"PostToolUseFailure","tool_name":"run_shell_command","error":"Exit Code: x\nSignal: \n"`,
		`"PostToolUse","tool_name":"mcp__a__b","tool_response":[1]`)
}

func FuzzWindsurfHook(f *testing.F) {
	for _, s := range []string{
		`"pre_user_prompt","tool_info":{"user_prompt":["x"]}`, `"post_write_code","tool_info":{"file_path":"` + "\xff" + `","edits":[{"old_string":1,"new_string":"x"}]}`,
		`"post_mcp_tool_use","tool_info":{"mcp_server_name":"cairn","mcp_result":"{\"isError\":true}"}`, `"post_cascade_response","tool_info":[]`,
	} {
		f.Add([]byte(`{"trajectory_id":"t","cwd":"/k","agent_action_name":` + s + `}`))
	}
	f.Fuzz(func(t *testing.T, payload []byte) { fuzzHook(t, payload, windsurf) })
}

func fuzzLines(f *testing.F, file []byte, path, writer string) {
	f.Add(file)
	first, _, _ := bytes.Cut(file, []byte("\n"))
	for line := range bytes.Lines(file) {
		f.Add(append(append(bytes.Clone(first), '\n'), line...))
	}
	f.Fuzz(func(t *testing.T, file []byte) { fuzzTranscript(t, file, path, writer) })
}

func FuzzCopilotTranscript(f *testing.F) {
	fuzzLines(f, sent(f, copilot, "transcript.jsonl"), "/h/.copilot/session-state/s/events.jsonl", copilot)
}

func FuzzQwenTranscript(f *testing.F) {
	fuzzLines(f, sent(f, qwen, "transcript.jsonl"), "/h/.qwen/projects/k/chats/s.jsonl", qwen)
}

func FuzzClineTranscript(f *testing.F) {
	const path = "testdata/placed/cline/1795402384206_e6cby/1795402384206_e6cby.messages.json"
	file, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add([]byte(`{"sessionId":"s","agent":"lead","origin":{},"messages":[{"role":"user","ts":1,"content":[{"type":"text","text":"<user_input>\u0000</user_input>"}]},1]}`))
	f.Fuzz(func(t *testing.T, file []byte) { fuzzTranscript(t, file, path, cline) })
}

// Whatever the columns of a message and its part contain, two readings yield the same events. The
// events contain only texts that can be stored.
func FuzzOpenCodeMessages(f *testing.F) {
	for _, s := range [][2]string{
		{`{"role":"user"}`, `{"type":"text","text":"mend it"}`},
		{`{"role":"assistant","path":{"cwd":"/k"}}`, `{"type":"tool","tool":"bash","callID":"c","state":{"status":"error","input":{"command":"x"},"error":"\ud800"}}`},
		{`{"role":"assistant","summary":true}`, `{}`}, {"\xff", "{"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, message, part string) {
		tell := func() (events []observation.Event) {
			base := openCodeBase{
				sessions: map[string]openCodeSession{"s": {"s", "p", "/k"}, "p": {"p", "s", "/k"}},
				parts:    map[string][]openCodeRow{"m": {{id: "a", of: "m", session: "s", made: 1, changed: 2, data: validColumn(part)}}},
			}
			report := newReport(TranscriptOptions{})
			err := base.emit([]openCodeRow{{id: "m", session: "s", made: 1, data: validColumn(message)}}, TranscriptOptions{}, &report, func(e observation.Event) error {
				events = append(events, e)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return events
		}
		events := tell()
		if !reflect.DeepEqual(events, tell()) {
			t.Error("a second reading differs")
		}
		for _, e := range events {
			if e.Session == "" || e.Cwd == "" || e.At.IsZero() || !e.Imported {
				t.Errorf("%+v", e)
			}
			checkTexts(t, reflect.ValueOf(e))
		}
	})
}

// A file that only begins like a database of OpenCode is counted and skipped.
func TestADatabaseOfAnotherFormIsCountedAndMakesNoEvent(t *testing.T) {
	t.Parallel()
	file := append([]byte("SQLite format 3\x00"), make([]byte, 5000)...)
	report, err := ReadTranscript(context.Background(), bytes.NewReader(file), TranscriptOptions{}, func(e observation.Event) error {
		t.Errorf("%+v", e)
		return nil
	})
	if err != nil || report.Harness != openCode || report.Skipped[unknownForm] != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}
