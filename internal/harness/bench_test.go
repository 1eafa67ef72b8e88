package harness

import (
	"bytes"
	"fmt"
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

// BenchmarkReadTranscript reads a session of 200 turns in the proportions of
// real ones: most bytes are file contents that nobody asks for.
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
	in := w.String()
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		events := 0
		_, err := ReadTranscript(b.Context(), strings.NewReader(in), TranscriptOptions{}, func(observation.Event) error {
			events++
			return nil
		})
		if err != nil || events != 600 {
			b.Fatal(events, err)
		}
	}
}

// BenchmarkTyped cuts the machine's part out of a prompt of 4 KB.
func BenchmarkTyped(b *testing.B) {
	prompt := string(bytes.Repeat([]byte("glaze a < b [and] "), 200)) + "<system-reminder>" + strings.Repeat("x", 400) + "</system-reminder>"
	b.SetBytes(int64(len(prompt)))
	for b.Loop() {
		if typed(prompt) == "" {
			b.Fatal("nothing left")
		}
	}
}
