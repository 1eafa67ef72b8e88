package copilot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// In Copilot CLI only the transcript contains a turn's messages. A turn that has ended without a
// message has none, whatever earlier turns contain.
func TestTheLastWordsOfATurnOfCopilotComeFromItsTranscript(t *testing.T) {
	t.Parallel()
	const prompt, said, called = `{"type":"user.message","data":{"content":"x"}}`, `{"type":"assistant.message","data":{"content":"Done.","toolRequests":[]}}`,
		`{"type":"assistant.message","data":{"content":"Let me see.","toolRequests":[{"toolCallId":"1"}]}}`
	const earlier = `{"type":"assistant.message","timestamp":"2031-01-01T10:00:00Z","data":{"content":"Before.","toolRequests":[]}}`
	now := time.Date(2031, 1, 1, 10, 0, 3, 0, time.UTC)
	for name, c := range map[string]struct {
		lines []string
		want  string
		over  bool
	}{
		"resumed":         {[]string{earlier, `{"type":"session.shutdown","timestamp":"2031-01-01T10:00:00Z"}`}, "", false},
		"ended":           {[]string{prompt, called, said}, "Done.", true},
		"not yet written": {[]string{prompt, said, prompt, called}, "Let me see.", false},
		"a new prompt":    {[]string{said, prompt}, "", false},
		"torn":            {[]string{prompt, said, `{"type":"assis`}, "Done.", true},
	} {
		path := filepath.Join(t.TempDir(), "events.jsonl")
		if err := os.WriteFile(path, []byte(strings.Join(c.lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, over := end(path, now); got != c.want || over != c.over {
			t.Errorf("%s: %q, %v", name, got, over)
		}
	}
	if got := lastWords(filepath.Join(t.TempDir(), "elsewhere.jsonl"), "s1", now); got != "" {
		t.Errorf("a path without the session is read: %q", got)
	}
}
