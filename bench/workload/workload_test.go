package workload

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"cairn/internal/observation"
)

func TestTheSameSeedTellsTheSameSession(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_770_000_000, 0)
	tell := func(seed uint64, n int) string {
		var b bytes.Buffer
		s := New("/work", seed).Session(n, at)
		for range 40 {
			text, err := s.Payload(s.Next())
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
	s := New("/work", 1).Session(1, time.Now())
	kinds := map[observation.EventKind]int{}
	tools := map[observation.Action]int{}
	for range 2000 {
		e, err := s.Event(s.Next())
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
