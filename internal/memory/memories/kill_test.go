package memories_test

import (
	"strings"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/memorytest"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// TestWhatIsAcknowledgedSurvivesAKill tests P1, P4 and P7 with kill -9.
func TestWhatIsAcknowledgedSurvivesAKill(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	told := map[string]string{}
	for round := range 3 {
		p := storetest.StartProcess(t, storetest.Command("", childVar+"=1", pathVar+"="+path))
		for range 40 + 13*round {
			line, ok := p.Line(t)
			if !ok {
				_, err := p.Wait(t)
				t.Fatalf("the child ended: %v", err)
			}
			noted(t, told, line)
		}
		if err := p.Signal(); err != nil {
			t.Fatal(err)
		}
		rest, _ := p.Wait(t) // ended by the kill
		for _, line := range rest {
			noted(t, told, line)
		}
	}
	s := storetest.Open(t, store.Config{Path: path})
	b := memories.New(s, memory.Config{Settings: memory.Defaults()})
	found := map[string]string{}
	for _, id := range []string{"p0", "p1", "p2"} {
		for cursor, more := "", true; more; {
			page := memorytest.Must(b.Export(t.Context(), memory.Caller{ProjectID: id}, memory.DefaultMemory, cursor, 0))(t)
			for _, e := range page.Entries {
				found[e.RawEntry] = e.EntryID
			}
			cursor, more = page.Next, page.Next != ""
		}
	}
	for local, text := range told {
		if name, _, _ := strings.Cut(text, " "); found[name] == "" {
			t.Errorf("%s %s was acknowledged and is gone", local, text)
		}
	}
	memorytest.Want(t, "findings", memorytest.Findings(t, s), "")
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func noted(t *testing.T, told map[string]string, line string) {
	t.Helper()
	local, text, _ := strings.Cut(line, " ")
	if before, ok := told[local]; ok {
		t.Errorf("%s names %s and %s (P7)", local, before, text)
	}
	told[local] = text
}
