package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// childMain adds entries to `default` from eight goroutines until it is killed. It prints each
// entry when it is acknowledged.
func childMain() int {
	ctx := context.Background()
	s, err := store.Open(ctx, storetest.Config(store.Config{Path: os.Getenv(pathVar), Role: store.Server}))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	b := New(s, Config{Settings: Defaults()})
	failed := make(chan error)
	for w := range 8 {
		go func() {
			c := Caller{ProjectID: fmt.Sprint("p", w%3)}
			for i := 0; ; i++ {
				text := fmt.Sprintf("w%d-%d", w, i)
				out, _, err := b.AddEntry(ctx, c, NewEntry{MemoryID: DefaultMemory, RawEntry: text})
				if err != nil {
					failed <- err
					return
				}
				storetest.Tell(out.LocalID + " " + text)
			}
		}()
	}
	fmt.Fprintln(os.Stderr, errors.Join(<-failed, s.Close()))
	return 1
}

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
	b := New(s, Config{Settings: Defaults()})
	found := map[string]string{}
	for _, id := range []string{"p0", "p1", "p2"} {
		for cursor, more := "", true; more; {
			page := must(b.Export(t.Context(), Caller{ProjectID: id}, DefaultMemory, cursor, 0))(t)
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
	want(t, "findings", strings.Join(must(b.Check(t.Context()))(t), "; "), "")
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
