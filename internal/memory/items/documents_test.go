package items_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/items"
	"cairn/internal/memory/memorytest"
	"cairn/internal/store"

	"pgregory.net/rapid"
)

// TestTheLogInAnyOrderAndTwiceGivesAnEqualStore does random things to a memory, with and
// without a hub and another device. It deletes all rows that the log contains. Then it applies
// the documents of the log, each twice, in a random order.
func TestTheLogInAnyOrderAndTwiceGivesAnEqualStore(t *testing.T) {
	t.Parallel()
	runs, failed, seen := 0, false, map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		defer func() { failed = failed || rt.Failed() }()
		if runs++; runs > 15 && !failed && os.Getenv("CAIRN_SOAK") == "" {
			return
		}
		d := memorytest.NewDesk(t, func(c *memory.Config) { c.Settings.DeleteTimeout = 0 })
		m := &model{Desk: d, hub: memorytest.NewHub(d), given: map[string]bool{}}
		actions := m.actions()
		for name, do := range m.changes() {
			actions[name] = do
		}
		join, leave, left := actions["join"], actions["leave"], false
		actions["leave"] = func(t *rapid.T) {
			leave(t)
			left = true
		}
		actions["join"] = func(t *rapid.T) {
			if left { // the log has no patches of entries that are never sent to the next hub
				t.Skip("the hub was left")
			}
			join(t)
		}
		rt.Repeat(actions)
		before, waiting := exportText(d), d.Pending()
		for _, table := range []string{"memory_entries", "memory_contexts", "memories", "memory_vaults"} {
			d.Exec("DELETE FROM " + table)
		}
		var log []items.Item
		transact(d, func(ctx context.Context, s *memory.CallTx) (err error) {
			log, err = items.Lost(ctx, s)
			return err
		})
		for _, item := range log {
			seen[item.Name()]++
		}
		order := make([]int, 2*len(log))
		for i := range order {
			order[i] = i % len(log)
		}
		order = rapid.Permutation(order).Draw(rt, "order")
		for range 2 {
			transact(d, func(ctx context.Context, s *memory.CallTx) error {
				docs := items.NewLogDocuments(d.Kernel)
				for _, i := range order {
					if err := docs.Apply(ctx, s.Tx, &log[i]); err != nil {
						return err
					}
				}
				return nil
			})
			if after := exportText(d); after != before {
				rt.Fatalf("the log gives\n%s\nwant\n%s", after, before)
			}
			memorytest.Want(t, "inflight", d.Pending(), waiting)
		}
		transact(d, func(ctx context.Context, s *memory.CallTx) error { return items.Repair(ctx, s.Tx) })
		if after := exportText(d); after != before {
			rt.Fatalf("after a repair the store has\n%s\nwant\n%s", after, before)
		}
		m.compare(rt)
	})
	for _, name := range []string{"vault put", "memory put", "entry put", "entry patch", "entry confirm", "context put"} {
		if seen[name] == 0 {
			t.Errorf("no history has a %s", name)
		}
	}
}

// changes returns more actions, which do not change the texts of existing rows.
func (m *model) changes() map[string]func(*rapid.T) {
	entry := func(t *rapid.T) contents.Entry {
		list := memorytest.Must(m.ListEntries(m.Context(), memory.Caller{}, entries.ListArgs{MemoryID: m.MemoryID, Limit: 50}))(m).Entries
		if len(list) == 0 {
			t.Skip("no entry is committed")
		}
		return rapid.SampledFrom(list).Draw(t, "entry")
	}
	isRefused := func(t *rapid.T, err error) {
		if err != nil && memory.Status(err) != 409 && memory.Status(err) != 400 {
			t.Fatal(err)
		}
	}
	return map[string]func(*rapid.T){
		"patch": func(t *rapid.T) {
			p := entries.Patch{Tags: map[string]string{"k": rapid.StringMatching(`[a-c]`).Draw(t, "tag")}}
			if rapid.Bool().Draw(t, "summary") {
				text := rapid.StringMatching(`[a-c<]{1,2}`).Draw(t, "text")
				p.Summary = &text
			}
			_, _, err := m.PatchEntry(m.Context(), memory.Caller{}, m.MemoryID, entry(t).EntryID, p)
			isRefused(t, err)
		},
		"correct": func(t *rapid.T) {
			_, _, err := m.CorrectEntry(m.Context(), memory.Caller{}, m.MemoryID, entry(t).EntryID, entries.Correction{CorrectedEntryID: entry(t).EntryID, Reason: "so"})
			isRefused(t, err)
		},
		"another device": func(t *rapid.T) {
			if !m.joinedNow() {
				t.Skip("no hub")
			}
			m.Drain(m.hub)
			m.committed()
			far := memorytest.NewDesk(m.TB).Joined()
			far.Clock.Move(time.Hour)
			far.Pull(m.hub, m.MemoryID)
			far = far.With(m.MemoryID)
			text := fmt.Sprint("e", len(m.rows))
			far.Add(text)
			far.Drain(m.hub)
			m.Pull(m.hub, m.MemoryID)
			newest := memorytest.Must(m.ListEntries(m.Context(), memory.Caller{}, entries.ListArgs{MemoryID: m.MemoryID, Limit: 1}))(m).Entries[0]
			if newest.RawEntry != text {
				t.Fatalf("the newest entry is %q, not %q of the other device", newest.RawEntry, text)
			}
			m.last = newest.CreationTime
			m.rows = append(m.rows, &modelRow{text, newest.EntryID, "committed"})
		},
	}
}

// exportText returns the export of a desk without deletions, whose keys the log does not have.
func exportText(d *memorytest.Desk) string {
	d.Helper()
	var out strings.Builder
	for _, l := range exported(d) {
		if l.Kind != items.LineTombstone {
			fmt.Fprintf(&out, "%s %s %s\n", l.Kind, l.Memory, l.Doc)
		}
	}
	return out.String()
}

// documentsOf returns the documents of the entries, contexts and deletions of a desk.
func documentsOf(d *memorytest.Desk) string {
	d.Helper()
	var out strings.Builder
	for _, l := range exported(d) {
		if l.Kind != items.LineVault && l.Kind != items.LineMemory {
			fmt.Fprintf(&out, "%s %s\n", l.Kind, l.Doc)
		}
	}
	return out.String()
}

// committed marks inflight rows of the model as confirmed.
func (m *model) committed() {
	for _, r := range m.rows {
		if r.state == "inflight" {
			r.state = "committed"
		}
	}
}

// transact runs fn in a transaction.
func transact(d *memorytest.Desk, fn func(ctx context.Context, s *memory.CallTx) error) {
	d.Helper()
	err := d.Store.Write(d.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		return fn(ctx, &memory.CallTx{Kernel: d.Kernel, Tx: tx})
	})
	if err != nil {
		d.Fatal(err)
	}
}

// TestAHubsPagesOfAnySizeAndAgainGiveAnEqualStore lets two devices do random things to a
// memory at a hub. One more device pulls it in a single page. Another pulls pages of random
// sizes, and sometimes starts again from an earlier position, as after a kill.
func TestAHubsPagesOfAnySizeAndAgainGiveAnEqualStore(t *testing.T) {
	t.Parallel()
	runs, failed := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		defer func() { failed = failed || rt.Failed() }()
		if runs++; runs > 5 && !failed && os.Getenv("CAIRN_SOAK") == "" {
			return
		}
		d := memorytest.NewDesk(t, func(c *memory.Config) { c.Settings.DeleteTimeout = time.Second }).Joined()
		m := &model{Desk: d, hub: memorytest.NewHub(d), given: map[string]bool{}}
		actions := m.actions()
		for name, do := range m.changes() {
			actions[name] = do
		}
		for _, name := range []string{"join", "leave", "delete", "annul"} {
			delete(actions, name)
		}
		actions["delete at the hub"] = func(t *rapid.T) {
			m.Drain(m.hub)
			m.committed()
			r := m.pick(t, "committed")
			memorytest.DeleteWith(m.TB, m.Desk, m.hub, r.local)
			r.state = "gone"
		}
		rt.Repeat(actions)
		m.Drain(m.hub)
		items := m.hub.Items[m.MemoryID]
		whole, pieces := memorytest.NewDesk(t).Joined(), memorytest.NewDesk(t).Joined()
		whole.Pull(m.hub, m.MemoryID)
		for at := 0; at < len(items); {
			begin := rapid.IntRange(0, at).Draw(rt, "begin")
			at = rapid.IntRange(at+1, len(items)).Draw(rt, "end")
			if err := pieces.Apply(rt.Context(), pieces.Member(), m.MemoryID, items[begin:at], int64(at)); err != nil {
				rt.Fatal(err)
			}
		}
		if one, other := documentsOf(whole), documentsOf(pieces); one != other {
			rt.Fatalf("in pieces the store has\n%s\nwant\n%s", other, one)
		}
	})
}
