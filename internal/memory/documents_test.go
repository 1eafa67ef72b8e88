package memory

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

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
		d := newDesk(t, func(c *Config) { c.Settings.DeleteTimeout = 0 })
		m := &model{desk: d, hub: newHub(d), given: map[string]bool{}}
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
		before, waiting := exportText(d), d.pending()
		for _, table := range []string{"memory_entries", "memory_contexts", "memories", "memory_vaults"} {
			d.sql("DELETE FROM " + table)
		}
		var log []Item
		d.transact(func(ctx context.Context, s *callTx) (err error) {
			log, err = s.lost(ctx, selectLostVaults, selectLostMemories, selectLostEntries, selectLostContexts)
			return err
		})
		for _, item := range log {
			seen[item.name()]++
		}
		order := make([]int, 2*len(log))
		for i := range order {
			order[i] = i % len(log)
		}
		order = rapid.Permutation(order).Draw(rt, "order")
		for range 2 {
			d.transact(func(ctx context.Context, s *callTx) error {
				docs := newDocuments(d.Service, fromLog)
				for _, i := range order {
					if err := docs.Apply(ctx, s.tx, &log[i]); err != nil {
						return err
					}
				}
				return nil
			})
			if after := exportText(d); after != before {
				rt.Fatalf("the log gives\n%s\nwant\n%s", after, before)
			}
			want(t, "inflight", d.pending(), waiting)
		}
		d.transact(func(ctx context.Context, s *callTx) error { return Repair(ctx, s.tx) })
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
	entry := func(t *rapid.T) Entry {
		list := must(m.ListEntries(m.Context(), Caller{}, ListArgs{MemoryID: m.memory, Limit: 50}))(m).Entries
		if len(list) == 0 {
			t.Skip("no entry is committed")
		}
		return rapid.SampledFrom(list).Draw(t, "entry")
	}
	isRefused := func(t *rapid.T, err error) {
		if err != nil && Status(err) != 409 && Status(err) != 400 {
			t.Fatal(err)
		}
	}
	return map[string]func(*rapid.T){
		"patch": func(t *rapid.T) {
			p := Patch{Tags: map[string]string{"k": rapid.StringMatching(`[a-c]`).Draw(t, "tag")}}
			if rapid.Bool().Draw(t, "summary") {
				text := rapid.StringMatching(`[a-c<]{1,2}`).Draw(t, "text")
				p.Summary = &text
			}
			_, _, err := m.PatchEntry(m.Context(), Caller{}, m.memory, entry(t).EntryID, p)
			isRefused(t, err)
		},
		"correct": func(t *rapid.T) {
			_, _, err := m.CorrectEntry(m.Context(), Caller{}, m.memory, entry(t).EntryID, Correction{entry(t).EntryID, "so"})
			isRefused(t, err)
		},
		"another device": func(t *rapid.T) {
			if !m.joinedNow() {
				t.Skip("no hub")
			}
			m.drain(m.hub)
			m.committed()
			far := newDesk(m.TB).joined()
			far.clock.Move(time.Hour)
			far.pull(m.hub, m.memory)
			far = far.with(m.memory)
			text := fmt.Sprint("e", len(m.rows))
			far.add(text)
			far.drain(m.hub)
			m.pull(m.hub, m.memory)
			newest := must(m.ListEntries(m.Context(), Caller{}, ListArgs{MemoryID: m.memory, Limit: 1}))(m).Entries[0]
			if newest.RawEntry != text {
				t.Fatalf("the newest entry is %q, not %q of the other device", newest.RawEntry, text)
			}
			m.last = newest.CreationTime
			m.rows = append(m.rows, &modelRow{text, newest.EntryID, "committed"})
		},
	}
}

// exportText returns the export of a desk without deletions, whose keys the log does not have.
func exportText(d *desk) string {
	d.Helper()
	var out strings.Builder
	for _, l := range d.exported() {
		if l.Kind != LineTombstone {
			fmt.Fprintf(&out, "%s %s %s\n", l.Kind, l.Memory, l.Doc)
		}
	}
	return out.String()
}

// contents returns the documents of the entries, contexts and deletions of a desk.
func contents(d *desk) string {
	d.Helper()
	var out strings.Builder
	for _, l := range d.exported() {
		if l.Kind != LineVault && l.Kind != LineMemory {
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
func (d *desk) transact(fn func(ctx context.Context, s *callTx) error) {
	d.Helper()
	err := d.store.Write(d.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		return fn(ctx, &callTx{Service: d.Service, tx: tx})
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
		d := newDesk(t, func(c *Config) { c.Settings.DeleteTimeout = time.Second }).joined()
		m := &model{desk: d, hub: newHub(d), given: map[string]bool{}}
		actions := m.actions()
		for name, do := range m.changes() {
			actions[name] = do
		}
		for _, name := range []string{"join", "leave", "delete", "annul"} {
			delete(actions, name)
		}
		actions["delete at the hub"] = func(t *rapid.T) {
			m.drain(m.hub)
			m.committed()
			r := m.pick(t, "committed")
			deleteWith(m.TB, m.desk, m.hub, r.local)
			r.state = "gone"
		}
		rt.Repeat(actions)
		m.drain(m.hub)
		items := m.hub.items[m.memory]
		whole, pieces := newDesk(t).joined(), newDesk(t).joined()
		whole.pull(m.hub, m.memory)
		for at := 0; at < len(items); {
			begin := rapid.IntRange(0, at).Draw(rt, "begin")
			at = rapid.IntRange(at+1, len(items)).Draw(rt, "end")
			if err := pieces.Apply(rt.Context(), pieces.member(), m.memory, items[begin:at], int64(at)); err != nil {
				rt.Fatal(err)
			}
		}
		if one, other := contents(whole), contents(pieces); one != other {
			rt.Fatalf("in pieces the store has\n%s\nwant\n%s", other, one)
		}
	})
}
