package harnesses_test

import (
	"reflect"
	"testing"

	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/readtest"
	"cairn/internal/observation"
)

func TestEveryHarnessReportsThePassagesThatItsEditsWrote(t *testing.T) {
	t.Parallel()
	piece := func(before, after string) []observation.Piece { return []observation.Piece{{Old: before, New: after}} }
	patch := "*** Begin Patch\n*** Update File: a.go\n@@ func a\n a\n-b\n+c\n*** End Patch"
	for name, c := range map[string]struct {
		event string
		more  harnesstest.Object
		want  observation.Call
	}{
		"claude, edit": {"PostToolUse", harnesstest.Object{"tool_name": "Edit", "tool_input": harnesstest.Object{"file_path": "a", "old_string": "a", "new_string": "b"}},
			observation.Call{Pieces: piece("a", "b"), Partial: true}},
		"claude, edits": {"PostToolUse", harnesstest.Object{"tool_name": "MultiEdit", "tool_input": harnesstest.Object{"file_path": "a", "edits": []any{harnesstest.Object{"old_string": "a", "new_string": "b"}}}},
			observation.Call{Pieces: piece("a", "b"), Partial: true}},
		"claude, patch": {"PostToolUse", harnesstest.Object{
			"tool_name": "Edit", "tool_input": harnesstest.Object{"file_path": "a", "old_string": "b", "new_string": "c"},
			"tool_response": harnesstest.Object{"structuredPatch": []any{harnesstest.Object{"lines": []any{" a", "-b", "+c", `\ No newline at end of file`}}}},
		}, observation.Call{Pieces: piece("a\nb\n", "a\nc\n")}},
		"claude, write": {"PostToolUse", harnesstest.Object{
			"tool_name": "Write", "tool_input": harnesstest.Object{"file_path": "a", "content": "x"}, "tool_response": harnesstest.Object{"type": "create", "structuredPatch": []any{}},
		}, observation.Call{Pieces: piece("", "x"), Whole: true}},
		"claude, cell": {"PostToolUse", harnesstest.Object{"tool_name": "NotebookEdit", "tool_input": harnesstest.Object{"notebook_path": "a", "new_source": "x"}},
			observation.Call{Pieces: piece("", "x")}},
		"claude, failed": {"PostToolUseFailure", harnesstest.Object{"tool_name": "Edit", "error": "no", "tool_input": harnesstest.Object{"file_path": "a", "old_string": "a", "new_string": "b"}},
			observation.Call{}},
		"claude, announced": {"PreToolUse", harnesstest.Object{"tool_name": "Edit", "tool_input": harnesstest.Object{"file_path": "a", "old_string": "a", "new_string": "b"}},
			observation.Call{}},
		"codex": {"PostToolUse", harnesstest.Object{"turn_id": "t", "tool_name": "apply_patch", "tool_input": harnesstest.Object{"command": patch}},
			observation.Call{Pieces: piece("a\nb\n", "a\nc\n")}},
		"gemini, replace": {"AfterTool", harnesstest.Object{"tool_name": "replace", "tool_input": harnesstest.Object{"file_path": "a", "old_string": "a", "new_string": "b"}},
			observation.Call{Pieces: piece("a", "b"), Partial: true}},
		"gemini, diff": {"AfterTool", harnesstest.Object{
			"tool_name": "write_file", "tool_input": harnesstest.Object{"file_path": "a", "content": "a\nc\n"},
			"tool_response": harnesstest.Object{"llmContent": "ok", "returnDisplay": harnesstest.Object{"fileDiff": "--- a\n+++ a\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"}},
		}, observation.Call{Pieces: piece("a\nb\n", "a\nc\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := readtest.MustHookFrom(t, harnesstest.Payload(t, c.event, c.more), "auto")
			got := observation.Call{Pieces: e.Calls[0].Pieces, Whole: e.Calls[0].Whole, Partial: e.Calls[0].Partial}
			if len(e.Calls) != 1 || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}
