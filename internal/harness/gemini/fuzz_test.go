package gemini_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"cairn/internal/harness/readtest"
)

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
	f.Fuzz(func(t *testing.T, payload []byte) { readtest.FuzzHook(t, payload, "gemini") })
}

func FuzzGeminiTranscript(f *testing.F) {
	for _, name := range []string{"gemini.jsonl", "gemini.json", "gemini-logs.json"} {
		file, err := os.ReadFile("../harnesses/testdata/placed/" + name)
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
		readtest.FuzzTranscript(t, file, "/h/.gemini/tmp/\xff/chats/p\xff/a.jsonl", "gemini")
	})
}

func FuzzQwenHook(f *testing.F) {
	readtest.FuzzPayloads(f, "qwen", `"PostToolUseFailure","tool_name":"run_shell_command","error":"Exit Code: x\nSignal: \n"`,
		`"PostToolUse","tool_name":"mcp__a__b","tool_response":[1]`)
}

func FuzzQwenTranscript(f *testing.F) {
	readtest.FuzzLines(f, readtest.Sent(f, "qwen", "transcript.jsonl"), "/h/.qwen/projects/k/chats/s.jsonl", "qwen")
}
