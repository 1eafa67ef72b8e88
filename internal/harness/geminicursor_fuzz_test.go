package harness

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
)

// fuzzHook checks properties of all payloads of a harness.
func fuzzHook(t *testing.T, payload []byte, from string) {
	t.Helper()
	e, ok := hookTwice(t, payload, from, "/home/ada")
	if !ok {
		return
	}
	if e.Harness != from {
		t.Errorf("%+v", e)
	}
	said, err := HookOutput(e, "# cairn context", GuardDecision{})
	if err != nil || said != "" && said[0] != '{' {
		t.Errorf("injection %q, %v", said, err)
	}
}

func FuzzGeminiHook(f *testing.F) {
	for _, more := range []string{
		`"SessionStart","source":"startup"`, `"BeforeAgent","prompt":"a<hook_context>\ud800"`,
		`"BeforeAgent","prompt":[{"text":"x"},"--- Content from referenced files ---\u0000"]`, `"AfterAgent","prompt_response":{"text":"y"}`,
		`"AfterTool","tool_name":"run_shell_command","tool_input":{"command":"x"},"tool_response":{"llmContent":"Output: a\nError: b\nExit Code: 2\nSignal: 9","error":{}}`,
		`"AfterTool","tool_name":"run_shell_command","tool_response":"Command: a\nStdout: \nStderr: \nExit Code: -"`,
		`"AfterTool","tool_name":"read_many_files","tool_input":{"include":["a","` + "\xff" + `*"]},"tool_response":[{"functionResponse":{"response":{"output":"x"}}}]`,
		`"AfterTool","tool_name":"web_fetch","tool_input":{"prompt":"see https://"}`, `"BeforeTool","tool_name":"mcp_a_b_c","mcp_context":{"server_name":1}`,
		`"AfterTool","tool_name":"glob","tool_response":{"llmContent":"Found -3 file(s)"}`,
	} {
		f.Add([]byte(`{"session_id":"s","cwd":"/k","hook_event_name":` + more + `}`))
	}
	f.Fuzz(func(t *testing.T, payload []byte) { fuzzHook(t, payload, gemini) })
}

func FuzzCursorHook(f *testing.F) {
	for _, more := range []string{
		`"sessionStart"`, `"beforeSubmitPrompt","prompt":"x"`, `"afterAgentResponse","text":"a [REDACTED]"`, `"stop","workspace_roots":["/c:"]`,
		`"afterShellExecution","command":"ls","output":{},"duration":1e9,"exit_code":3`, `"afterFileEdit","file_path":"` + "\xff" + `","edits":[[]]`,
		`"afterMCPExecution","tool_name":"t","tool_input":"{\"a\":\"\\ud800\"}","result_json":"[1]"`,
		`"postToolUse","tool_name":"ApplyPatch","tool_input":"*** Add File: a\n*** Add File: b"`,
		`"postToolUse","tool_name":"CallMcpTool","tool_input":"{\"server\":\"user-\"}","tool_output":"{\"isError\":true}"`,
		`"postToolUseFailure","tool_name":"Shell","error_message":["x"],"failure_type":"timeout"`, `"preToolUse","tool_name":"MCP: "`,
	} {
		f.Add([]byte(`{"conversation_id":"c","hook_event_name":` + more + `}`))
	}
	f.Fuzz(func(t *testing.T, payload []byte) { fuzzHook(t, payload, cursor) })
}

// fuzzTranscript checks properties of all files of a harness, whatever follows a valid beginning.
func fuzzTranscript(t *testing.T, file []byte, path, writer string) {
	t.Helper()
	o := TranscriptOptions{Path: path, ModTime: someday, Roots: []string{"/k"}}
	events, report := readAll(t, bytes.NewReader(file), o)
	again, _ := readAll(t, bytes.NewReader(file), o)
	if !reflect.DeepEqual(events, again) {
		t.Error("a second reading differs")
	}
	if report.Bytes != int64(len(file)) || report.Resume != 0 && report.Harness == writer {
		t.Errorf("%+v for %d bytes", report, len(file))
	}
	for _, e := range events {
		if strings.TrimSpace(e.Session) == "" || e.Cwd == "" || e.At.IsZero() || !e.Imported {
			t.Errorf("%+v", e)
		}
		checkTexts(t, reflect.ValueOf(e))
	}
}

func FuzzGeminiTranscript(f *testing.F) {
	for _, name := range []string{"gemini.jsonl", "gemini.json", "gemini-logs.json"} {
		file, err := os.ReadFile("testdata/placed/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
		first, _, _ := bytes.Cut(file, []byte("\n"))
		for line := range bytes.Lines(file) {
			f.Add(append(append(bytes.Clone(first), '\n'), line...))
		}
	}
	f.Add([]byte(`{"sessionId":"s","projectHash":"` + strings.Repeat("0", 64) + `","directories":["` + "\xff" + `",1],"messages":[{"type":"user","content":[["x"],{"text":"\u0000"}]},1]}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		fuzzTranscript(t, file, "/h/.gemini/tmp/\xff/chats/p\xff/a.jsonl", gemini)
	})
}

func FuzzCursorTranscript(f *testing.F) {
	file, err := os.ReadFile("testdata/placed/cursor.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	for line := range bytes.Lines(file) {
		f.Add(line)
	}
	f.Add([]byte(`{"role":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"ApplyPatch","input":"*** Add File: a\n*** Add File: b"}]}}
{"role":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"{\"isError\":true}"},{"type":"text","text":"<timestamp>Monday, Jan 2, 2006, 3:04 PM (UTC-)"}]}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		fuzzTranscript(t, file, "/h/.cursor/projects/\xff/agent-transcripts/s\xff/s\xff.jsonl", cursor)
	})
}
