package harnesses_test

import (
	"strings"
	"testing"

	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/harnesstest"
)

// BenchmarkHook reads the payload of an ordinary shell call, 2 KB.
func BenchmarkHook(b *testing.B) {
	in := harnesstest.Payload(b, "PostToolUse", harnesstest.Object{
		"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": harnesstest.Object{"command": "go test ./...", "description": "Run the tests"},
		"tool_response": harnesstest.Object{"stdout": strings.Repeat("ok  \tkiln/glaze\t0.01s\n", 70), "stderr": "", "interrupted": false, "isImage": false},
	})
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := harnesses.Hook(in, "claude", ""); err != nil {
			b.Fatal(err)
		}
	}
}
