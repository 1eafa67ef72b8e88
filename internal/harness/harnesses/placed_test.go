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
	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/harness/readtest"
	"cairn/internal/observation"
)

// TestTranscriptsOfGeminiAndCursorGolden reads one file of each format, stored at the harness's
// path.
func TestTranscriptsOfGeminiAndCursorGolden(t *testing.T) {
	t.Parallel()
	for file, path := range map[string]string{
		"gemini.jsonl":     ".gemini/tmp/kiln/chats/session-2026-03-04T10-00-0f3c1f7e.jsonl",
		"gemini.json":      ".gemini/tmp/kiln/chats/session-2026-03-04T10-10-9b1d6d6e.json",
		"gemini-logs.json": ".gemini/tmp/kiln/logs.json",
		"cursor.jsonl":     ".cursor/projects/no-such-folder/agent-transcripts/c-1/c-1.jsonl",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			in, err := os.ReadFile(filepath.Join("testdata/placed", file))
			if err != nil {
				t.Fatal(err)
			}
			events, report := readtest.ReadAll(t, bytes.NewReader(in), harness.TranscriptOptions{Path: "/" + path, ModTime: harnesstest.Someday})
			var got strings.Builder
			for _, e := range events {
				e.Cwd = filepath.ToSlash(e.Cwd)
				fmt.Fprintln(&got, harnesstest.Golden(t, e))
			}
			fmt.Fprintf(&got, "\n%s: %d lines, resume at %d\n", report.Harness, report.Lines, report.Resume)
			for _, reason := range slices.Sorted(maps.Keys(report.Skipped)) {
				fmt.Fprintf(&got, "%d %s\n", report.Skipped[reason], reason)
			}
			if report.Bytes != int64(len(in)) {
				t.Errorf("%d bytes of %d", report.Bytes, len(in))
			}
			harnesstest.SameAsGolden(t, filepath.Join("testdata/placed", file+".golden"), got.String())
		})
	}
}

// The events of a growing file, cut anywhere, occur again in the whole file, unchanged and in the
// same order. So ids and line ids are permanent. Messages are excluded, because a last message may
// be followed by another.
func TestGrownTranscriptsTellTheSameAgain(t *testing.T) {
	t.Parallel()
	for file, path := range map[string]string{
		"gemini.jsonl": "/x/.gemini/tmp/kiln/chats/session-a.jsonl",
		"cursor.jsonl": "/x/.cursor/projects/kiln/agent-transcripts/c-1.jsonl",
	} {
		in, err := os.ReadFile(filepath.Join("testdata/placed", file))
		if err != nil {
			t.Fatal(err)
		}
		lasting := func(b []byte) (list []observation.Event) {
			events, _ := readtest.ReadAll(t, bytes.NewReader(b), harness.TranscriptOptions{Path: path, ModTime: harnesstest.Someday})
			for _, e := range events {
				if e.Kind != observation.Message {
					list = append(list, e)
				}
			}
			return list
		}
		whole := lasting(in)
		for cut := 0; cut < len(in); cut += 97 {
			part := lasting(in[:cut])
			i := 0
			for _, e := range whole {
				if i < len(part) && reflect.DeepEqual(part[i], e) {
					i++
				}
			}
			if i != len(part) {
				t.Fatalf("%s cut at %d: %d of %d events come again, next %+v", file, cut, i, len(part), part[i])
			}
		}
	}
}

func TestFormatsAreRecognisedByTheirContent(t *testing.T) {
	t.Parallel()
	gemini, _ := harnesses.Of("gemini")
	cursor, _ := harnesses.Of("cursor")
	for in, want := range map[string][2]bool{
		`{"sessionId":"s","projectHash":"h","startTime":"x"}`:                             {true, false},
		"\ufeff {\n  \"sessionId\": \"s\",\n  \"projectHash\": \"h\",\n  \"messages\": [": {true, false},
		`[{"sessionId":"s","messageId":0}]`:                                               {true, false},
		`[]`:                                                                              {false, false},
		`{"sessionId":"s","type":"user","uuid":"u"}`:                                      {false, false},
		`{"role":"user","message":{"content":[]}}`:                                        {false, true},
		`{"type":"turn_ended","status":"success"}`:                                        {false, true},
		`{"role":"user","message":"x"}`:                                                   {false, false},
		`{"role":"user","message":{},"uuid":"u","type":"user"}`:                           {false, false},
		`{"type":"response_item","payload":{}}`:                                           {false, false},
		``:                                                                                {false, false},
	} {
		if got := [2]bool{gemini.WritesDocument([]byte(in)), cursor.Writes(lazyjson.Value(in))}; got != want {
			t.Errorf("%.60s: %v, want %v", in, got, want)
		}
	}
	long := `{"sessionId":"s","projectHash":"0123456789abcdef","messages":[{"id":"1","type":"user","timestamp":"2026-01-01T00:00:00Z","content":"` +
		strings.Repeat("x", 2<<20) + `"}]}`
	events, report := readtest.ReadAll(t, strings.NewReader(long), harness.TranscriptOptions{})
	if report.Harness != "gemini" || len(events) != 1 {
		t.Errorf("a document of one long line: %s, %d events", report.Harness, len(events))
	}
}
