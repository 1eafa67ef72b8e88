package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn"
	"cairn/internal/harness"
	"cairn/internal/observation"
	"cairn/internal/project"
)

func TestTheSameSeedTellsTheSameSession(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_770_000_000, 0)
	tell := func(seed uint64, n int) string {
		var b bytes.Buffer
		s := newWorkload("/work", seed).session(n, at)
		for range 40 {
			text, err := s.payload(s.next())
			if err != nil {
				t.Fatal(err)
			}
			b.Write(text)
		}
		return b.String()
	}
	first := tell(1, 3)
	if first != tell(1, 3) {
		t.Error("two runs differ")
	}
	if first == tell(1, 4) || first == tell(2, 3) {
		t.Error("another session or seed tells the same")
	}
}

func TestEveryStepIsAnEventThatCairnKnows(t *testing.T) {
	t.Parallel()
	s := newWorkload("/work", 1).session(1, time.Now())
	kinds := map[observation.EventKind]int{}
	tools := map[observation.Action]int{}
	for range 2000 {
		e, err := s.event(s.next())
		if err != nil {
			t.Fatal(err)
		}
		kinds[e.Kind]++
		for _, c := range e.Calls {
			tools[c.Action]++
		}
	}
	if kinds[observation.Ignored] > 0 || kinds[observation.Prompt] < 100 || kinds[observation.Message] < 100 || kinds[observation.Tool] < 1200 {
		t.Errorf("kinds: %v", kinds)
	}
	for _, a := range []observation.Action{observation.Shell, observation.Read, observation.Edit, observation.Search} {
		if tools[a] < 150 {
			t.Errorf("tools: %v", tools)
		}
	}
}

func TestEveryPayloadOfAHookBenchmarkMakesOneRow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorkload(filepath.Join(dir, "projects"), 1)
	p := newPayloads(w, 1, "test")
	const calls = 300
	for range calls {
		text, err := p.next()
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
	w := newWorkload(filepath.Join(dir, "projects"), 1)
	const steps = 150
	at := time.Now().Add(-time.Hour)
	if _, err := writeTranscript(filepath.Join(dir, "transcripts"), w.session(7, at), steps); err != nil {
		t.Fatal(err)
	}
	r, err := importFolder(t.Context(), filepath.Join(dir, "imported"), filepath.Join(dir, "transcripts"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[observation.EventKind]int{}
	s := w.session(7, at)
	for range steps {
		e, err := s.event(s.next())
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
	e, err := harness.Hook(bytes.Clone(payload), "claude")
	if err != nil {
		t.Fatal(err)
	}
	c, err := cairn.Open(cairn.Config{Dir: filepath.Dir(db), DB: db, Cwd: e.Cwd})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Record(t.Context(), e, project.Process{}); err != nil {
		t.Errorf("%s: %v", payload, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestVocabularyHasNoRepeats(t *testing.T) {
	t.Parallel()
	words := vocabulary()
	seen := map[string]bool{}
	for _, w := range words {
		if seen[w] || w == "" || strings.ToLower(w) != w {
			t.Fatalf("%q", w)
		}
		seen[w] = true
	}
	if len(words) != vocabularySize {
		t.Errorf("%d words", len(words))
	}
}
