package codex_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/readtest"
)

// BenchmarkReadCodexTranscript reads a session of 200 turns in which most bytes are patches and
// outputs of commands.
func BenchmarkReadCodexTranscript(b *testing.B) {
	source := strings.Repeat("+if glaze := pot.Glaze(); glaze != nil {\n+\treturn \"fired\"\n+}\n", 60)
	w := new(rollout).meta(nil)
	for i := range 200 {
		id := fmt.Sprint("t", i)
		w.event("task_started", harnesstest.Object{"turn_id": id}).prompt("Why does the kiln overshoot at cone 6?")
		w.item("reasoning", harnesstest.Object{"encrypted_content": source[:3000]}).event("token_count", harnesstest.Object{"info": source[:500]})
		w.item("custom_tool_call", harnesstest.Object{"call_id": "p" + id, "name": "apply_patch", "input": "*** Begin Patch\n*** Add File: a.go\n" + source + "*** End Patch"})
		w.item("custom_tool_call_output", harnesstest.Object{"call_id": "p" + id, "output": "Success."})
		w.calls(id).output(id, "Exit code: 0\nWall time: 1 seconds\nOutput:\n"+source)
		w.says("assistant", strings.Repeat("The gain was too high. ", 40)).event("task_complete", harnesstest.Object{"turn_id": id})
	}
	readtest.BenchmarkReading(b, w.String(), 800)
}

// BenchmarkSettled reads the part of a rollout that a Codex hook reads at the end of a turn. The
// part of a 10 MB rollout must not be larger than that of a 2 MB rollout.
func BenchmarkSettled(b *testing.B) {
	const session = "0a1b2c3d-0000-7000-8000-00000000c0de"
	output := strings.Repeat("ok  \tkiln/glaze\t0.01s\n", 100)
	for _, size := range []int{10 << 10, 2 << 20, 10 << 20} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			w := new(rollout).meta(nil).event("task_started", harnesstest.Object{"turn_id": "t"})
			for i := 0; w.Len() < size; i++ {
				w.event("item_completed", harnesstest.Object{"item": harnesstest.Object{
					"type": "CommandExecution", "id": fmt.Sprint("exec-", i), "command": []string{"/bin/bash", "-lc", "go test ./..."},
					"status": "completed", "aggregated_output": output, "exit_code": 0,
				}})
			}
			path := filepath.Join(b.TempDir(), "rollout-2026-03-02T09-00-00-"+session+".jsonl")
			if err := os.WriteFile(path, []byte(w.String()), 0o600); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if events, err := harnesses.Settled(b.Context(), path, session, false); err != nil || len(events) == 0 {
					b.Fatal(len(events), err)
				}
			}
		})
	}
}
