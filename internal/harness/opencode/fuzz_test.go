package opencode_test

import (
	"bytes"
	"context"
	"testing"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/readtest"
	"cairn/internal/observation"
)

func FuzzOpenCodeHook(f *testing.F) {
	readtest.FuzzPayloads(f, "opencode", `"PostToolUse","tool_name":"bash","tool_response":{"output":"<bash_metadata>\u0000timeout","exit":-1}`,
		`"PostToolUse","tool_name":"apply_patch","tool_input":{"patchText":"*** Begin Patch\n*** Add File: \nx\n*** End Patch"}`)
}

// A file that only begins like a database of OpenCode is counted and skipped.
func TestADatabaseOfAnotherFormIsCountedAndMakesNoEvent(t *testing.T) {
	t.Parallel()
	file := append([]byte("SQLite format 3\x00"), make([]byte, 5000)...)
	report, err := harnesses.ReadTranscript(context.Background(), bytes.NewReader(file), harness.TranscriptOptions{}, func(e observation.Event) error {
		t.Errorf("%+v", e)
		return nil
	})
	if err != nil || report.Harness != "opencode" || report.Skipped["database of an unknown form"] != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}
