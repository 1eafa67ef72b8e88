package cline_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/readtest"
)

func TestTheConversationOfClineGolden(t *testing.T) {
	t.Parallel()
	const path = "testdata/cline/1795402384206_e6cby/1795402384206_e6cby.messages.json"
	in, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	events, report := readtest.ReadAll(t, bytes.NewReader(in), harness.TranscriptOptions{Path: path, ModTime: harnesstest.Someday})
	var got strings.Builder
	for _, e := range events {
		fmt.Fprintln(&got, harnesstest.Golden(t, e))
	}
	fmt.Fprintf(&got, "\n%s: %d lines, resume at %d\n", report.Harness, report.Lines, report.Resume)
	for _, reason := range slices.Sorted(maps.Keys(report.Skipped)) {
		fmt.Fprintf(&got, "%d %s\n", report.Skipped[reason], reason)
	}
	harnesstest.SameAsGolden(t, "testdata/cline.golden", got.String())
}

func FuzzClineTranscript(f *testing.F) {
	const path = "testdata/cline/1795402384206_e6cby/1795402384206_e6cby.messages.json"
	file, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add([]byte(`{"sessionId":"s","agent":"lead","origin":{},"messages":[{"role":"user","ts":1,"content":[{"type":"text","text":"<user_input>\u0000</user_input>"}]},1]}`))
	f.Fuzz(func(t *testing.T, file []byte) { readtest.FuzzTranscript(t, file, path, "cline") })
}
