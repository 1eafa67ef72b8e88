package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestLongAnswersAreCompactUnlessAskedForInFull checks MCP results and JSON over HTTP.
func TestLongAnswersAreCompactUnlessAskedForInFull(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	prompt := strings.Repeat("make the refund add up ", 60)
	for p := range 4 {
		id := fmt.Sprint("p", p)
		h.recorded(h.payload("UserPromptSubmit", fields{"prompt": fmt.Sprint(p, " ", prompt), "prompt_id": id}))
		for i := range 12 {
			file := filepath.Join(h.repo, "src", fmt.Sprintf("part%d.go", i))
			h.recorded(h.payload("PostToolUse", fields{
				"tool_name": "Edit", "tool_use_id": fmt.Sprint("e", p, "-", i), "prompt_id": id,
				"tool_input": fields{"file_path": file, "old_string": "a", "new_string": "b"},
			}))
		}
		h.recorded(h.payload("PostToolUseFailure", fields{
			"tool_name": "Edit", "tool_use_id": fmt.Sprint("f", p), "prompt_id": id, "error": "String to replace not found in file.",
			"tool_input": fields{"file_path": filepath.Join(h.repo, "src", "part0.go"), "old_string": "a", "new_string": "b"},
		}))
	}
	size := func(s string) int { return (len(s) + 3) / 4 }
	questions := map[string]fields{
		"session_trace": {"session_id": "s1"}, "recent_context": {"limit": 40},
		"file_history": {"file_path": "src/part0.go", "limit": 50},
	}
	w := h.listen()
	c := h.connect(revisions()[0], nil)
	for tool, args := range questions {
		compact, isError, err := c.answer(tool, args)
		if err != nil || isError {
			t.Fatalf("%s: %v, %s", tool, err, compact)
		}
		args["detail"] = "full"
		full, isError, err := c.answer(tool, args)
		if err != nil || isError {
			t.Fatalf("%s: %v, %s", tool, err, full)
		}
		if size(compact) > 2000 || size(full) <= 2000 {
			t.Errorf("%s: %d tokens in short, %d in full", tool, size(compact), size(full))
		}
		if tool != "recent_context" && !strings.Contains(compact, `"failed":true`) {
			t.Errorf("%s does not mark the failed edit: %s", tool, compact)
		}
		delete(args, "detail")
		if r := w.post("/v1/projects/shop/observations/"+tool, args); size(r.body) > 2100 {
			t.Errorf("%s over HTTP: %d tokens", tool, size(r.body))
		}
		args["detail"] = "full"
		if r := w.post("/v1/projects/shop/observations/"+tool, args); size(r.body) <= 2000 {
			t.Errorf("%s in full over HTTP: %d tokens", tool, size(r.body))
		}
		args["detail"] = "tiny"
		if said, isError, err := c.answer(tool, args); err != nil || !isError || !strings.Contains(said, "detail") {
			t.Errorf("%s with an unknown detail: %v, %s", tool, err, said)
		}
	}
}
