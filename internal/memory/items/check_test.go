package items_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/items"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// TestEachBrokenPromiseIsFound damages a store in several ways, one after the other.
func TestEachBrokenPromiseIsFound(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(d)
	d.Add("one")
	d.Add("two")
	if _, _, err := d.UpdateContext(t.Context(), memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: rules.NewID(), Markdown: "doc"}); err != nil {
		t.Fatal(err)
	}
	d.Drain(h)
	d.Add("pending")
	memorytest.Want(t, "findings before", memorytest.Findings(t, d.Store), "")
	for damage, promise := range map[string]string{
		`UPDATE memory_streams SET acked_seq = head_seq + 1`:                                                        "P3",
		`UPDATE memory_streams SET sent_seq = head_seq + 1`:                                                         "P3",
		`DELETE FROM memory_streams`:                                                                                "P3",
		`UPDATE memory_entries SET seq = 0 WHERE synced = 0`:                                                        "P4",
		`UPDATE changes SET doc = NULL WHERE seq = (SELECT seq FROM memory_entries WHERE synced = 0)`:               "P4",
		`UPDATE memory_streams SET acked_seq = head_seq`:                                                            "P4",
		`UPDATE memory_entries SET synced = 0 WHERE raw_entry = 'one'`:                                              "P5",
		`UPDATE memory_entries SET entry_id = NULL WHERE raw_entry = 'one'`:                                         "P5",
		`UPDATE memory_entries SET canonical_ns = 5 WHERE synced = 0`:                                               "P5",
		`UPDATE memory_entries SET deleting_seq = 1 WHERE raw_entry = 'one'`:                                        "P6",
		`UPDATE memories SET deleting_seq = 1`:                                                                      "P6",
		`UPDATE sqlite_sequence SET seq = 1 WHERE name = 'memory_entries'`:                                          "P7",
		`UPDATE memory_entries SET canonical_ns = 1700000001000000000 WHERE synced = 1`:                             "P8",
		`UPDATE memory_streams SET last_ns = 0`:                                                                     "P8",
		`UPDATE memory_streams SET last_canonical_ns = 0`:                                                           "P8",
		`UPDATE memory_streams SET context_ns = 0`:                                                                  "P8",
		`UPDATE memory_entries SET user_id = 'x' WHERE raw_entry = 'one'`:                                           "P9",
		`UPDATE memory_vaults SET user_id = 'x'`:                                                                    "P9",
		`INSERT INTO memory_tombstones SELECT memory_id, entry_id, 0 FROM memory_entries WHERE raw_entry = 'one'`:   "P10",
		`INSERT INTO memory_tombstones SELECT memory_id, hub_key, 0 FROM memory_entries WHERE raw_entry = 'one'`:    "P10",
		`INSERT INTO memory_tombstones SELECT memory_id, 'pending-' || key, 0 FROM memory_entries WHERE synced = 0`: "P10",
		`UPDATE memory_entries SET raw_entry = 'other' WHERE raw_entry = 'one'`:                                     "P11",
		`UPDATE memory_entries SET tags = '{' WHERE raw_entry = 'one'`:                                              "P11",
		`UPDATE memory_contexts SET markdown = 'other'`:                                                             "P11",
	} {
		found, err := damaged(d, damage)
		told := false
		for _, f := range found {
			told = told || strings.HasPrefix(f, promise+": ")
		}
		if err != nil || !told {
			t.Errorf("%s: %v, found %q, want %s", damage, err, found, promise)
		}
	}
	memorytest.Want(t, "findings after", memorytest.Findings(t, d.Store), "")
}

// damaged checks the store after a statement, which is then rolled back.
func damaged(d *memorytest.Desk, query string) (found []string, err error) {
	d.Helper()
	undo := context.Canceled
	outer := d.Store.Write(d.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		if _, err = tx.Exec(ctx, query); err == nil {
			found, err = items.Check(ctx, tx)
		}
		return undo
	})
	if err == nil && outer != undo {
		err = outer
	}
	return found, err
}

// TestEntriesAndContextsOfTheLogComeBackAsTheyWere deletes rows of every kind. It compares the
// exports and the inflight entries before and after.
func TestEntriesAndContextsOfTheLogComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{
		`DELETE FROM memory_entries`, `DELETE FROM memory_contexts`, `DELETE FROM memory_entries WHERE key % 2 = 0`,
		`DELETE FROM memory_entries; DELETE FROM memory_contexts; DELETE FROM memories; DELETE FROM memory_vaults`,
		`DELETE FROM memory_entries; DELETE FROM store_meta WHERE name = 'memory.user'`,
	} {
		d := memorytest.NewDesk(t)
		d.Add("old")
		d.Joined()
		h := memorytest.NewHub(d)
		for i := range 4 {
			d.Add(fmt.Sprint("sent", i))
		}
		d.Drain(h)
		list := memorytest.Must(d.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID}))(t).Entries
		summary := "patched"
		if _, _, err := d.PatchEntry(t.Context(), memory.Caller{}, d.MemoryID, list[0].EntryID, entries.Patch{Summary: &summary, Tags: map[string]string{"k": "v"}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.CorrectEntry(t.Context(), memory.Caller{}, d.MemoryID, list[1].EntryID, entries.Correction{CorrectedEntryID: list[0].EntryID, Reason: "typo"}); err != nil {
			t.Fatal(err)
		}
		d.Drain(h)
		other := memorytest.NewDesk(t).Joined()
		other.Pull(h, d.MemoryID)
		far := other.With(d.MemoryID)
		far.Add("far")
		other.Drain(h)
		d.Pull(h, d.MemoryID)
		d.Add("gone")
		d.Drain(h)
		for range 2 {
			if _, _, err := d.UpdateContext(t.Context(), memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: rules.NewID(), Markdown: "context"}); err != nil {
				t.Fatal(err)
			}
		}
		d.Add("pending")
		before, waiting := exported(d), memorytest.Must(d.ListInflight(t.Context(), memory.Caller{}, d.MemoryID, 0))(t)
		for _, statement := range strings.Split(lost, "; ") {
			d.Exec(statement)
		}
		if found := memorytest.Findings(t, d.Store); !strings.Contains(found, "is in the log and has no row") {
			t.Errorf("%s: the check finds %q", lost, found)
		}
		for range 2 {
			if err := d.Store.Write(t.Context(), store.Full, items.Repair); err != nil {
				t.Fatalf("%s: %v", lost, err)
			}
		}
		memorytest.Want(t, lost+": findings", memorytest.Findings(t, d.Store), "")
		err := d.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			found, err := contents.CheckWords(ctx, tx)
			memorytest.Want(t, lost+": words", strings.Join(found, "; "), "")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		after := exported(d)
		memorytest.Want(t, lost+": lines", len(after), len(before))
		for i := range min(len(after), len(before)) {
			memorytest.Want(t, lost+": line", string(after[i].Doc), string(before[i].Doc))
		}
		memorytest.Want(t, lost+": inflight", fmt.Sprint(memorytest.Must(d.ListInflight(t.Context(), memory.Caller{}, d.MemoryID, 0))(t)), fmt.Sprint(waiting))
		d.Drain(h)
		memorytest.Want(t, lost+": at the hub", memorytest.Must(d.ListInflight(t.Context(), memory.Caller{}, d.MemoryID, 0))(t).Count, 0)
	}
}

// TestWhatASalvageHasLostIsRepaired deletes rows that may be on a damaged page, repairs the
// store and checks it.
func TestWhatASalvageHasLostIsRepaired(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{
		`DELETE FROM memories`, `DELETE FROM memory_streams`, `DELETE FROM memory_users`, `DELETE FROM changes`, `DELETE FROM set_aside`,
		`UPDATE changes SET doc = NULL`, `DELETE FROM memory_tombstones`, `DELETE FROM memory_idempotency`,
		`DELETE FROM memory_entries`, `DELETE FROM memory_entries; DELETE FROM memories; DELETE FROM memory_vaults; DELETE FROM memory_streams`,
	} {
		d := memorytest.NewDesk(t).Joined()
		h := memorytest.NewHub(d)
		h.Refuse["bad"] = 400
		d.Add("one")
		d.Add("bad")
		d.Drain(h)
		me := d.Me()
		d.Add("pending")
		for _, statement := range strings.Split(lost, "; ") {
			d.Exec(statement)
		}
		for range 2 {
			if err := d.Store.Write(t.Context(), store.Full, items.Repair); err != nil {
				t.Fatalf("%s: %v", lost, err)
			}
		}
		memorytest.Want(t, lost+": findings", memorytest.Findings(t, d.Store), "")
		c := memory.Caller{User: me}
		list := memorytest.Must(d.ListEntries(t.Context(), c, entries.ListArgs{MemoryID: d.MemoryID}))(t)
		memorytest.Want(t, lost+": entries", list.Count, 1)
		memorytest.Want(t, lost+": inflight", memorytest.Must(d.ListInflight(t.Context(), c, d.MemoryID, 0))(t).Count, 2)
	}
}
