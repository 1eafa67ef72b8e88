package harness

import (
	"context"
	"io"

	"cairn/internal/observation"
)

// isCodexLine tells whether a line is one of a transcript of Codex CLI: an
// envelope with a payload, or the first line of the oldest form, which had none.
func isCodexLine(line []byte) bool {
	f := pick(line, "type", "payload", "record_type", "id", "timestamp", "instructions")
	if kindOf(f[1]) == '{' {
		return kindOf(f[0]) == '"'
	}
	return f[2] != nil || f[0] == nil && f[3] != nil && f[4] != nil && f[5] != nil
}

// readCodex reads a transcript of Codex CLI.
func readCodex(ctx context.Context, r io.Reader, o TranscriptOptions, yield func(observation.Event) error) (TranscriptReport, error) {
	report := newReport(o)
	err := eachLine(ctx, r, o, &report, func(line) error { report.Skipped[unknownLine]++; return nil })
	return report, err
}
