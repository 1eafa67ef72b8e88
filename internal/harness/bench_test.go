package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/observation"
)

// BenchmarkHook reads the payload of an ordinary shell call, 2 KB.
func BenchmarkHook(b *testing.B) {
	in := payload(b, "PostToolUse", object{
		"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": object{"command": "go test ./...", "description": "Run the tests"},
		"tool_response": object{"stdout": strings.Repeat("ok  \tkiln/glaze\t0.01s\n", 70), "stderr": "", "interrupted": false, "isImage": false},
	})
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Hook(in, "claude", ""); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadTranscript reads a session of 200 turns with the proportions of real sessions: most
// bytes are unused file contents.
func BenchmarkReadTranscript(b *testing.B) {
	source := strings.Repeat("\tif glaze := pot.Glaze(); glaze != nil {\n\t\treturn \"fired\"\n\t}\n", 60)
	var w talk
	for i := range 200 {
		id := fmt.Sprint("t", i)
		w.user("Why does the kiln overshoot at cone 6?")
		for range 3 {
			w.line("progress", fmt.Sprintf(`"data":{"type":"bash_progress","output":%q}`, source[:500]))
		}
		w.line("assistant", fmt.Sprintf(`"message":{"content":[{"type":"tool_use","id":%q,"name":"Edit","input":{"file_path":"/k/a.go","old_string":%q,"new_string":"x"}}]}`, id, source[:300]))
		w.line("user", fmt.Sprintf(`"message":{"content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]},"toolUseResult":{"filePath":"/k/a.go","originalFile":%q}`, id, source, source))
		w.says(strings.Repeat("The gain was too high. ", 40))
	}
	benchmarkReading(b, w.String(), 600)
}

// BenchmarkReadCodexTranscript reads a session of 200 turns in which most bytes are patches and
// outputs of commands.
func BenchmarkReadCodexTranscript(b *testing.B) {
	source := strings.Repeat("+if glaze := pot.Glaze(); glaze != nil {\n+\treturn \"fired\"\n+}\n", 60)
	w := new(rollout).meta(nil)
	for i := range 200 {
		id := fmt.Sprint("t", i)
		w.event("task_started", object{"turn_id": id}).prompt("Why does the kiln overshoot at cone 6?")
		w.item("reasoning", object{"encrypted_content": source[:3000]}).event("token_count", object{"info": source[:500]})
		w.item("custom_tool_call", object{"call_id": "p" + id, "name": "apply_patch", "input": "*** Begin Patch\n*** Add File: a.go\n" + source + "*** End Patch"})
		w.item("custom_tool_call_output", object{"call_id": "p" + id, "output": "Success."})
		w.calls(id).output(id, "Exit code: 0\nWall time: 1 seconds\nOutput:\n"+source)
		w.says("assistant", strings.Repeat("The gain was too high. ", 40)).event("task_complete", object{"turn_id": id})
	}
	benchmarkReading(b, w.String(), 800)
}

// BenchmarkSettled reads the part of a rollout that a Codex hook reads at the end of a turn. The
// part of a 10 MB rollout must not be larger than that of a 2 MB rollout.
func BenchmarkSettled(b *testing.B) {
	const session = "0a1b2c3d-0000-7000-8000-00000000c0de"
	output := strings.Repeat("ok  \tkiln/glaze\t0.01s\n", 100)
	for _, size := range []int{10 << 10, 2 << 20, 10 << 20} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			w := new(rollout).meta(nil).event("task_started", object{"turn_id": "t"})
			for i := 0; w.Len() < size; i++ {
				w.event("item_completed", object{"item": object{
					"type": "CommandExecution", "id": fmt.Sprint("exec-", i), "command": []string{"/bin/bash", "-lc", "go test ./..."},
					"status": "completed", "aggregated_output": output, "exit_code": 0,
				}})
			}
			path := filepath.Join(b.TempDir(), "rollout-2026-03-02T09-00-00-"+session+".jsonl")
			if err := os.WriteFile(path, []byte(w.String()), 0o600); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if events, err := Settled(b.Context(), path, session, false); err != nil || len(events) == 0 {
					b.Fatal(len(events), err)
				}
			}
		})
	}
}

// benchmarkReading reads a transcript that produces a given number of events.
func benchmarkReading(b *testing.B, in string, want int) {
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		events := 0
		_, err := ReadTranscript(b.Context(), strings.NewReader(in), TranscriptOptions{}, func(observation.Event) error {
			events++
			return nil
		})
		if err != nil || events != want {
			b.Fatal(events, err)
		}
	}
}

// BenchmarkTyped removes the harness's part from a prompt of 4 KB.
func BenchmarkTyped(b *testing.B) {
	prompt := string(bytes.Repeat([]byte("glaze a < b [and] "), 200)) + "<system-reminder>" + strings.Repeat("x", 400) + "</system-reminder>"
	b.SetBytes(int64(len(prompt)))
	for b.Loop() {
		if typed(prompt) == "" {
			b.Fatal("nothing left")
		}
	}
}
