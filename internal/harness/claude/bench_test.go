package claude_test

import (
	"fmt"
	"strings"
	"testing"

	"cairn/internal/harness/readtest"
)

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
	readtest.BenchmarkReading(b, w.String(), 600)
}
