package harness

import (
	"reflect"
	"slices"
	"testing"

	"cairn/internal/observation"
)

// withoutPieces returns calls without their written passages.
func withoutPieces(calls []observation.Call) []observation.Call {
	out := slices.Clone(calls)
	for i := range out {
		out[i].Pieces, out[i].Whole, out[i].Partial = nil, false, false
	}
	return out
}

func TestEveryHarnessReportsThePassagesThatItsEditsWrote(t *testing.T) {
	t.Parallel()
	piece := func(before, after string) []observation.Piece { return []observation.Piece{{Old: before, New: after}} }
	patch := "*** Begin Patch\n*** Update File: a.go\n@@ func a\n a\n-b\n+c\n*** End Patch"
	for name, c := range map[string]struct {
		event string
		more  object
		want  observation.Call
	}{
		"claude, edit": {"PostToolUse", object{"tool_name": "Edit", "tool_input": object{"file_path": "a", "old_string": "a", "new_string": "b"}},
			observation.Call{Pieces: piece("a", "b"), Partial: true}},
		"claude, edits": {"PostToolUse", object{"tool_name": "MultiEdit", "tool_input": object{"file_path": "a", "edits": []any{object{"old_string": "a", "new_string": "b"}}}},
			observation.Call{Pieces: piece("a", "b"), Partial: true}},
		"claude, patch": {"PostToolUse", object{
			"tool_name": "Edit", "tool_input": object{"file_path": "a", "old_string": "b", "new_string": "c"},
			"tool_response": object{"structuredPatch": []any{object{"lines": []any{" a", "-b", "+c", `\ No newline at end of file`}}}},
		}, observation.Call{Pieces: piece("a\nb\n", "a\nc\n")}},
		"claude, write": {"PostToolUse", object{
			"tool_name": "Write", "tool_input": object{"file_path": "a", "content": "x"}, "tool_response": object{"type": "create", "structuredPatch": []any{}},
		}, observation.Call{Pieces: piece("", "x"), Whole: true}},
		"claude, cell": {"PostToolUse", object{"tool_name": "NotebookEdit", "tool_input": object{"notebook_path": "a", "new_source": "x"}},
			observation.Call{Pieces: piece("", "x")}},
		"claude, failed": {"PostToolUseFailure", object{"tool_name": "Edit", "error": "no", "tool_input": object{"file_path": "a", "old_string": "a", "new_string": "b"}},
			observation.Call{}},
		"claude, announced": {"PreToolUse", object{"tool_name": "Edit", "tool_input": object{"file_path": "a", "old_string": "a", "new_string": "b"}},
			observation.Call{}},
		"codex": {"PostToolUse", object{"turn_id": "t", "tool_name": "apply_patch", "tool_input": object{"command": patch}},
			observation.Call{Pieces: piece("a\nb\n", "a\nc\n")}},
		"gemini, replace": {"AfterTool", object{"tool_name": "replace", "tool_input": object{"file_path": "a", "old_string": "a", "new_string": "b"}},
			observation.Call{Pieces: piece("a", "b"), Partial: true}},
		"gemini, diff": {"AfterTool", object{
			"tool_name": "write_file", "tool_input": object{"file_path": "a", "content": "a\nc\n"},
			"tool_response": object{"llmContent": "ok", "returnDisplay": object{"fileDiff": "--- a\n+++ a\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"}},
		}, observation.Call{Pieces: piece("a\nb\n", "a\nc\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := mustHookFrom(t, payload(t, c.event, c.more), "auto")
			got := observation.Call{Pieces: e.Calls[0].Pieces, Whole: e.Calls[0].Whole, Partial: e.Calls[0].Partial}
			if len(e.Calls) != 1 || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}
