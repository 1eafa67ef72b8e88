package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/bench/continuity"
	"cairn/bench/workload"
)

func TestContinuityPrintsTablesAndWritesEverySession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := workload.New(filepath.Join(dir, "projects"), 1)
	const sessions = 6
	for n := range sessions {
		at := time.Date(2026, 1, 5+4*n, 9, 0, 0, 0, time.UTC)
		if _, err := workload.WriteTranscript(filepath.Join(dir, "transcripts"), w.Session(n, at), 120); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	file := filepath.Join(dir, "report.json")
	if err := run(t.Context(), []string{"continuity", "--json", file, filepath.Join(dir, "transcripts")}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first half of January (tuning), at the start", "injected at start", "search of the prompt", "ceiling", "baseline"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the tables do not say %q:\n%s", want, out.String())
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r continuity.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Sessions) != sessions || len(r.Figures) == 0 {
		t.Fatalf("%d sessions and %d figures", len(r.Sessions), len(r.Figures))
	}
	for _, s := range r.Sessions {
		if s.Prompt == "" || s.Project == "" || len(s.Moments) != 2 {
			t.Errorf("%+v", s)
		}
	}
}

func TestContinuityRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"continuity"},
		{"continuity", "a", "b"},
		{"continuity", "--from", "yesterday", "."},
		{"continuity", filepath.Join(t.TempDir(), "missing")},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
