package items_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"

	"pgregory.net/rapid"
)

// model is the expected content of a memory after some operations: the texts in the order of
// their writing, each committed, inflight or gone.
type model struct {
	*memorytest.Desk
	hub     *memorytest.FakeHub
	rows    []*modelRow
	context string
	given   map[string]bool // localIds
	last    memory.Time
}

type modelRow struct {
	text, local string
	state       string // "committed", "inflight" or "gone"
}

// in lists the texts in a state, in the order of their writing.
func (m *model) in(state string) string {
	var out []string
	for _, r := range m.rows {
		if r.state == state {
			out = append(out, r.text)
		}
	}
	return strings.Join(out, " ")
}

func (m *model) pick(t *rapid.T, state string) *modelRow {
	var all []*modelRow
	for _, r := range m.rows {
		if r.state == state {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		t.Skip("no entry is " + state)
	}
	return rapid.SampledFrom(all).Draw(t, "row")
}

func (m *model) joinedNow() bool {
	return memorytest.Must(m.Whoami(m.Context(), memory.Caller{}))(m).HubURL != ""
}

// actions returns the operations, each with its effect on the model.
func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"add": func(t *rapid.T) {
			m.Clock.Move(time.Duration(rapid.Int64Range(-5, 5).Draw(t, "step")))
			out := m.Add(fmt.Sprint("e", len(m.rows)))
			if m.given[out.LocalID] {
				t.Fatalf("%s names a second row (P7)", out.LocalID)
			}
			if out.CreationTime <= m.last {
				t.Fatalf("time %v is not after %v (P8)", out.CreationTime, m.last)
			}
			m.given[out.LocalID], m.last = true, out.CreationTime
			state := map[string]string{entries.Committed: "committed", entries.Enqueued: "inflight"}[out.Status]
			m.rows = append(m.rows, &modelRow{fmt.Sprint("e", len(m.rows)), out.LocalID, state})
		},
		"context": func(t *rapid.T) {
			m.context = rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "text")
			if _, _, err := m.UpdateContext(m.Context(), memory.Caller{}, entries.NewDocument{MemoryID: m.MemoryID, SessionID: rules.NewID(), Markdown: m.context}); err != nil {
				t.Fatal(err)
			}
		},
		"annul": func(t *rapid.T) {
			r := m.pick(t, "inflight") // no item is being sent between two actions
			if _, err := m.DeleteEntry(m.Context(), memory.Caller{}, m.MemoryID, r.local); err != nil {
				t.Fatal(err)
			}
			r.state = "gone"
		},
		"delete": func(t *rapid.T) {
			r := m.pick(t, "committed")
			_, err := m.DeleteEntry(m.Context(), memory.Caller{}, m.MemoryID, r.local)
			switch {
			case !m.joinedNow() && err == nil:
				r.state = "gone"
			case m.joinedNow() && (err == nil || memory.Status(err) == 503): // unknown to every hub, or not confirmed
				if err == nil {
					r.state = "gone"
				}
			default:
				t.Fatal(err)
			}
		},
		"drain": func(t *rapid.T) {
			if !m.joinedNow() {
				t.Skip("no hub")
			}
			m.Drain(m.hub)
			m.committed()
		},
		"pull": func(t *rapid.T) {
			if !m.joinedNow() {
				t.Skip("no hub")
			}
			m.Pull(m.hub, m.MemoryID)
		},
		"join": func(t *rapid.T) {
			if m.joinedNow() {
				t.Skip("joined")
			}
			m.hub = memorytest.NewHub(m.Desk)
			m.hub.Last = time.Unix(0, int64(m.last))
			m.Joined()
		},
		"leave": func(t *rapid.T) {
			if err := m.Leave(m.Context(), m.Me(), true); err != nil {
				t.Fatal(err)
			}
			m.committed()
		},
		"": m.compare,
	}
}

// compare compares the store with the model.
func (m *model) compare(t *rapid.T) {
	list := memorytest.Must(m.ListEntries(m.Context(), memory.Caller{}, entries.ListArgs{MemoryID: m.MemoryID, Limit: 50}))(m).Entries
	var committed []string
	for i, e := range list {
		committed = append(committed, e.RawEntry)
		if i > 0 && e.CreationTime >= list[i-1].CreationTime {
			t.Fatalf("times %v, %v (P8)", list[i-1].CreationTime, e.CreationTime)
		}
	}
	slices.Sort(committed)
	wanted := strings.Fields(m.in("committed"))
	slices.Sort(wanted)
	if !slices.Equal(committed, wanted) {
		t.Fatalf("committed are %v, want %v", committed, wanted)
	}
	if got := m.Pending(); got != m.in("inflight") {
		t.Fatalf("inflight are %q, want %q", got, m.in("inflight"))
	}
	if m.context != "" {
		if got := memorytest.Must(m.GetContext(m.Context(), memory.Caller{}, m.MemoryID))(m).Markdown; got != m.context {
			t.Fatalf("the context is %q, want %q", got, m.context)
		}
	}
	if found := memorytest.Findings(m, m.Store); found != "" {
		t.Fatalf("the check found: %s", found)
	}
}

func TestAMemoryIsWhatAModelOfItSays(t *testing.T) {
	t.Parallel()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; runs > 12 && os.Getenv("CAIRN_SOAK") == "" {
			return
		}
		d := memorytest.NewDesk(t, func(c *memory.Config) { c.Settings.DeleteTimeout = 0 })
		m := &model{Desk: d, hub: memorytest.NewHub(d), given: map[string]bool{}}
		rt.Repeat(m.actions())
	})
}
