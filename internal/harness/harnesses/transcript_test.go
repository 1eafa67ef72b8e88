package harnesses_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/readtest"
	"cairn/internal/observation"
)

func TestRecogniseTellsHarnessesByTheirLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"Claude":               {`{"type":"user","uuid":"u","sessionId":"s","message":{"content":"a"}}` + "\n", "claude"},
		"Claude with a title":  {`{"type":"summary","summary":"x","leafUuid":"y"}` + "\n", "claude"},
		"Codex":                {"\nnot JSON\n" + `{"timestamp":"2026-03-02T09:00:01Z","type":"session_meta","payload":{"id":"s"}}` + "\n", "codex"},
		"Codex, bare":          {`{"id":"s","timestamp":"2025-06-02T10:00:00Z","instructions":null}` + "\n", "codex"},
		"Codex, torn at first": {`"rest of a line"}` + "\n" + `{"timestamp":"2026-03-02T09:00:01Z","type":"event_msg","payload":{"type":"user_message","message":"x"}}` + "\n", "codex"},
		"nothing known":        {`{"a":1}` + "\n", ""},
		"nothing":              {"", ""},
	} {
		if _, report := readtest.ReadAll(t, strings.NewReader(c.file), harness.TranscriptOptions{}); report.Harness != c.want {
			t.Errorf("%s: %q", name, report.Harness)
		}
	}
}

// samples returns invented transcripts of every harness. The expected events are next to them
// (.golden).
func samples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	return files
}

func TestReadTranscriptGolden(t *testing.T) {
	t.Parallel()
	for _, path := range samples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			compareGolden(t, path)
		})
	}
}

func compareGolden(t *testing.T, path string) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	events, report := readtest.ReadAll(t, bytes.NewReader(file), harness.TranscriptOptions{Path: path})
	var got strings.Builder
	for _, e := range events {
		fmt.Fprintln(&got, harnesstest.Golden(t, e))
	}
	fmt.Fprintf(&got, "\n%d lines, %d bytes\n", report.Lines, report.Bytes)
	for _, reason := range slices.Sorted(maps.Keys(report.Skipped)) {
		fmt.Fprintf(&got, "%d %s\n", report.Skipped[reason], reason)
	}
	rest, _, _ := bytes.Cut(file[report.Resume:], []byte("\n"))
	fmt.Fprintf(&got, "resume at %s\n", rest)
	harnesstest.SameAsGolden(t, strings.TrimSuffix(path, filepath.Ext(path))+".golden", got.String())
}

// A file may be imported at any time while it grows. Wherever it was cut, the events read then and
// the events read from Resume on are complete.
func TestReadTranscriptResumesWithoutLoss(t *testing.T) {
	t.Parallel()
	for _, path := range samples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			resumeEverywhere(t, file)
		})
	}
}

func resumeEverywhere(t *testing.T, file []byte) {
	t.Helper()
	key := func(e observation.Event) string {
		id := ""
		if e.Kind == observation.Tool {
			id = e.Calls[0].ID
		}
		return fmt.Sprint(e.Kind, e.LineID, id, e.Text)
	}
	whole, wholeReport := readtest.ReadAll(t, bytes.NewReader(file), harness.TranscriptOptions{})
	step := 97
	if harnesstest.Raced {
		step = 1009
	}
	for cut := range file {
		if cut%step != 0 && file[cut] != '\n' {
			continue
		}
		first, report := readtest.ReadAll(t, bytes.NewReader(file[:cut]), harness.TranscriptOptions{})
		if report.Resume > int64(cut) || report.Resume > 0 && file[report.Resume-1] != '\n' {
			t.Fatalf("cut at %d: resume at %d", cut, report.Resume)
		}
		o := harness.TranscriptOptions{Offset: report.Resume}
		if o.Offset > 0 {
			o.Head = bytes.NewReader(file[:o.Offset])
		}
		second, report := readtest.ReadAll(t, bytes.NewReader(file[o.Offset:]), o)
		if report.Resume != wholeReport.Resume {
			t.Fatalf("cut at %d: resume at %d, at once at %d", cut, report.Resume, wholeReport.Resume)
		}
		found := map[string]observation.Event{}
		for _, e := range append(first, second...) {
			found[key(e)] = e
		}
		for _, e := range whole {
			if got, ok := found[key(e)]; !ok || !reflect.DeepEqual(got, e) {
				t.Fatalf("cut at %d: got %+v, want %+v", cut, got, e)
			}
		}
	}
}
