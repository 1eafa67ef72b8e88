package harnesses_test

import (
	"strings"
	"testing"

	"cairn/internal/harness/lazyjson"
	"cairn/internal/harness/readtest"
)

func FuzzHook(f *testing.F) {
	for _, seed := range []string{
		``, `[]`, `{`, `{"a":"\ud800"}`, lazyjson.ByteOrderMark + `{}`, strings.Repeat(`{"a":[`, 600),
		`{"session_id":"s","cwd":"/k","hook_event_name":"UserPromptSubmit","prompt":"<bash-x>\u0000</bash-x> [Request interrupted by user] y"}`,
		`{"session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"x"},"tool_response":{"stdout":"\udfff","exit_code":1e3}}`,
		`{"session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"a__b","tool_input":{"q":{"z":[1 , "` + "\xff" + `"]},"\u0061":"\u0000"}}`,
		`{"session_id":"s","cwd":"/k","hook_event_name":"PostToolUseFailure","tool_name":"Edit","tool_input":{"edits":[{}]},"error":{"message":"m"}}`,
		`{"session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"AskUserQuestion","tool_input":{"questions":[["a"]]},"tool_response":"Error: Exit code -4"}`,
		`{"session_id":"s","cwd":"/k","hook_event_name":"Stop","last_assistant_message":["a",{"text":"b"}]}`,
		`{"turn_id":"t","session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"apply_patch","tool_input":{"command":["apply_patch","*** Begin Patch\n*** Update File: a\n*** Move to: b\n"]}}`,
		`{"turn_id":"t","session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"bash -lc 'cd \"x\" && apply_patch <<EOF\n*** Begin Patch\n*** Add File: a\n*** End Patch\nEOF'"},"tool_response":"{\"output\":\"x\",\"metadata\":{\"exit_code\":-1}}"}`,
		`{"turn_id":null,"session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"shell","tool_input":{"command":["sh","-c","\ud800"]},"tool_response":[{"text":"Exit code: 1\nWall time: NaN seconds\nOutput:\n"}]}`,
		`{"turn_id":1,"session_id":"s","cwd":"/k","hook_event_name":"UserPromptSubmit","prompt":"<user_instructions>\n# AGENTS.md instructions"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		e, ok := readtest.HookTwice(t, payload, "auto", "")
		if !ok {
			return
		}
		for i, c := range e.Calls {
			if c.Part != i {
				t.Errorf("part %d is %d", i, c.Part)
			}
		}
	})
}
