package readtest

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/observation"
)

// BenchmarkReading reads a transcript that produces a given number of events.
func BenchmarkReading(b *testing.B, in string, want int) {
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		events := 0
		_, err := harnesses.ReadTranscript(b.Context(), strings.NewReader(in), harness.TranscriptOptions{}, func(observation.Event) error {
			events++
			return nil
		})
		if err != nil || events != want {
			b.Fatal(events, err)
		}
	}
}

// MustHookFrom returns the event of a payload.
func MustHookFrom(t *testing.T, payload []byte, from string) observation.Event {
	t.Helper()
	e, err := harnesses.Hook(payload, from, "/home/ada")
	if err != nil {
		t.Fatalf("Hook: %v", err)
	}
	return e
}

// MustHook returns the event of a payload of Claude Code.
func MustHook(t *testing.T, payload []byte) observation.Event {
	t.Helper()
	e, err := harnesses.Hook(payload, "claude", "")
	if err != nil {
		t.Fatalf("Hook: %v", err)
	}
	return e
}

// Sent returns payloads that a real program sent, recorded for the end-to-end tests.
func Sent(t testing.TB, host, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../cmd/cairn/testdata/hosts", host, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ReadAll reads a transcript and returns its events.
func ReadAll(t testing.TB, r io.Reader, o harness.TranscriptOptions) ([]observation.Event, harness.TranscriptReport) {
	t.Helper()
	var events []observation.Event
	report, err := harnesses.ReadTranscript(t.Context(), r, o, func(e observation.Event) error {
		events = append(events, e)
		return nil
	})
	if err != nil {
		t.Fatalf("ReadTranscript: %v", err)
	}
	return events, report
}
