package cursor_test

import (
	"bytes"
	"os"
	"testing"

	"cairn/internal/harness/readtest"
)

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
	f.Fuzz(func(t *testing.T, payload []byte) { readtest.FuzzHook(t, payload, "cursor") })
}

func FuzzCursorTranscript(f *testing.F) {
	file, err := os.ReadFile("../harnesses/testdata/placed/cursor.jsonl")
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
		readtest.FuzzTranscript(t, file, "/h/.cursor/projects/\xff/agent-transcripts/s\xff/s\xff.jsonl", "cursor")
	})
}
