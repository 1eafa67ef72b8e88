package cursor_test

import (
	"strings"
	"testing"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/readtest"
	"cairn/internal/observation"
)

func TestCursorSubagentsBelongToTheirSession(t *testing.T) {
	t.Parallel()
	in := `{"role":"user","message":{"content":"find the heat"}}
{"role":"assistant","message":{"content":[{"type":"tool_use","name":"Glob","input":{"glob_pattern":"*"}}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"At the top."}]}}
`
	events, _ := readtest.ReadAll(t, strings.NewReader(in), harness.TranscriptOptions{
		Path: "/h/.cursor/projects/none/agent-transcripts/c-1/subagents/a-9.jsonl", ModTime: harnesstest.Someday,
	})
	if len(events) != 2 || events[0].Kind != observation.Tool || events[1].Role != "subagent" {
		t.Fatalf("%+v", events)
	}
	for _, e := range events {
		if e.Session != "c-1" || e.AgentID != "a-9" || !e.At.Equal(harnesstest.Someday) {
			t.Errorf("%+v", e)
		}
	}
}
