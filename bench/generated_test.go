package main

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"cairn"
	"cairn/bench/workload"
	"cairn/internal/harness/harnesses"
	"cairn/internal/hook"
	"cairn/internal/observation"
	"cairn/internal/project"
)

func TestEveryPayloadOfAHookBenchmarkMakesOneRow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := workload.New(filepath.Join(dir, "projects"), 1)
	p := workload.NewPayloads(w, 1, "test")
	const calls = 300
	for range calls {
		text, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		recordIn(t, filepath.Join(dir, "cairn.db"), text)
	}
	if rows, err := countRows(t.Context(), filepath.Join(dir, "cairn.db")); err != nil || rows != calls {
		t.Errorf("%d rows of %d calls, %v", rows, calls, err)
	}
}

func TestAWrittenTranscriptImportsAsTheSessionWouldLive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := workload.New(filepath.Join(dir, "projects"), 1)
	const steps = 150
	at := time.Now().Add(-time.Hour)
	if _, err := workload.WriteTranscript(filepath.Join(dir, "transcripts"), w.Session(7, at), steps); err != nil {
		t.Fatal(err)
	}
	r, err := importFolder(t.Context(), filepath.Join(dir, "imported"), filepath.Join(dir, "transcripts"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[observation.EventKind]int{}
	s := w.Session(7, at)
	for range steps {
		e, err := s.Event(s.Next())
		if err != nil {
			t.Fatal(err)
		}
		want[e.Kind]++
	}
	if r.ByType["user_prompt"] != want[observation.Prompt] || r.ByType["agent_message"] != want[observation.Message] {
		t.Errorf("%v of %v", r.ByType, want)
	}
	if calls := r.Added + r.Deduped - want[observation.Prompt] - want[observation.Message]; calls != want[observation.Tool] {
		t.Errorf("%d calls, want %d", calls, want[observation.Tool])
	}
	for why := range r.Skipped {
		if why != "type without use" {
			t.Errorf("skipped: %v", r.Skipped)
		}
	}
}

// recordIn records a payload as the hook does, in this process.
func recordIn(t *testing.T, db string, payload []byte) {
	t.Helper()
	e, err := harnesses.Hook(bytes.Clone(payload), "claude", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := cairn.Open(cairn.Config{Dir: filepath.Dir(db), DB: db, Cwd: e.Cwd})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hook.Record(t.Context(), c.Workspace, e, project.Process{}, false); err != nil {
		t.Errorf("%s: %v", payload, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
