package copilot_test

import (
	"testing"

	"cairn/internal/harness/readtest"
)

func FuzzCopilotHook(f *testing.F) {
	readtest.FuzzPayloads(f, "copilot", `"PostToolUse","tool_name":"bash","tool_input":"{","tool_result":{"text_result_for_llm":"x<shellId: completed with exit code -"}`,
		`"PreToolUse","tool_name":"a-b-","tool_input":{"path":1}`, `"PostToolUseFailure","tool_name":"-","error":["\ud800"]`)
}

func FuzzCopilotTranscript(f *testing.F) {
	readtest.FuzzLines(f, readtest.Sent(f, "copilot", "transcript.jsonl"), "/h/.copilot/session-state/s/events.jsonl", "copilot")
}
