package memory

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// TestEachBrokenPromiseIsFound damages a store in several ways, one after the other.
func TestEachBrokenPromiseIsFound(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	h := newHub(d)
	d.add("one")
	d.add("two")
	if _, _, err := d.UpdateContext(t.Context(), Caller{}, NewDocument{d.memory, rules.NewID(), "doc"}); err != nil {
		t.Fatal(err)
	}
	d.drain(h)
	d.add("pending")
	want(t, "findings before", strings.Join(must(d.Check(t.Context()))(t), "; "), "")
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
	want(t, "findings after", strings.Join(must(d.Check(t.Context()))(t), "; "), "")
}

// damaged checks the store after a statement, which is then rolled back.
func damaged(d *desk, query string) (found []string, err error) {
	d.Helper()
	undo := context.Canceled
	outer := d.store.Write(d.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		if _, err = tx.Exec(ctx, query); err == nil {
			found, err = Check(ctx, tx)
		}
		return undo
	})
	if err == nil && outer != undo {
		err = outer
	}
	return found, err
}

func TestMemoriesHoldOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t, "TestTwoDevicesSeeEachOther", "TestEachBrokenPromiseIsFound", "TestACallUnderOneKeyIsDoneOnce",
		"TestListsArePagedInBothDirectionsWithoutGapsOrRepeats", "TestInflightToolsSeeTheRowsOfTheirCase",
		"TestRetentionTakesWhatTheHubHasAndLeavesTheRest")
}

// TestEntriesAndContextsOfTheLogComeBackAsTheyWere deletes rows of every kind. It compares the
// exports and the inflight entries before and after.
func TestEntriesAndContextsOfTheLogComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{
		`DELETE FROM memory_entries`, `DELETE FROM memory_contexts`, `DELETE FROM memory_entries WHERE key % 2 = 0`,
		`DELETE FROM memory_entries; DELETE FROM memory_contexts; DELETE FROM memories; DELETE FROM memory_vaults`,
		`DELETE FROM memory_entries; DELETE FROM store_meta WHERE name = '` + metaUser + `'`,
	} {
		d := newDesk(t)
		d.add("old")
		d.joined()
		h := newHub(d)
		for i := range 4 {
			d.add(fmt.Sprint("sent", i))
		}
		d.drain(h)
		list := must(d.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: d.memory}))(t).Entries
		summary := "patched"
		if _, _, err := d.PatchEntry(t.Context(), Caller{}, d.memory, list[0].EntryID, Patch{Summary: &summary, Tags: map[string]string{"k": "v"}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.CorrectEntry(t.Context(), Caller{}, d.memory, list[1].EntryID, Correction{list[0].EntryID, "typo"}); err != nil {
			t.Fatal(err)
		}
		d.drain(h)
		other := newDesk(t).joined()
		other.pull(h, d.memory)
		far := other.with(d.memory)
		far.add("far")
		other.drain(h)
		d.pull(h, d.memory)
		d.add("gone")
		d.drain(h)
		for range 2 {
			if _, _, err := d.UpdateContext(t.Context(), Caller{}, NewDocument{d.memory, rules.NewID(), "context"}); err != nil {
				t.Fatal(err)
			}
		}
		d.add("pending")
		before, waiting := d.exported(), must(d.ListInflight(t.Context(), Caller{}, d.memory, 0))(t)
		for _, statement := range strings.Split(lost, "; ") {
			d.sql(statement)
		}
		if found := strings.Join(must(d.Check(t.Context()))(t), "; "); !strings.Contains(found, "is in the log and has no row") {
			t.Errorf("%s: the check finds %q", lost, found)
		}
		for range 2 {
			if err := d.store.Write(t.Context(), store.Full, Repair); err != nil {
				t.Fatalf("%s: %v", lost, err)
			}
		}
		want(t, lost+": findings", strings.Join(must(d.Check(t.Context()))(t), "; "), "")
		err := d.read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			found, err := CheckWords(ctx, tx)
			want(t, lost+": words", strings.Join(found, "; "), "")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		after := d.exported()
		want(t, lost+": lines", len(after), len(before))
		for i := range min(len(after), len(before)) {
			want(t, lost+": line", string(after[i].Doc), string(before[i].Doc))
		}
		want(t, lost+": inflight", fmt.Sprint(must(d.ListInflight(t.Context(), Caller{}, d.memory, 0))(t)), fmt.Sprint(waiting))
		d.drain(h)
		want(t, lost+": at the hub", must(d.ListInflight(t.Context(), Caller{}, d.memory, 0))(t).Count, 0)
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
		d := newDesk(t).joined()
		h := newHub(d)
		h.refuse["bad"] = 400
		d.add("one")
		d.add("bad")
		d.drain(h)
		me := d.me()
		d.add("pending")
		for _, statement := range strings.Split(lost, "; ") {
			d.sql(statement)
		}
		for range 2 {
			if err := d.store.Write(t.Context(), store.Full, Repair); err != nil {
				t.Fatalf("%s: %v", lost, err)
			}
		}
		want(t, lost+": findings", strings.Join(must(d.Check(t.Context()))(t), "; "), "")
		c := Caller{User: me}
		list := must(d.ListEntries(t.Context(), c, ListArgs{MemoryID: d.memory}))(t)
		want(t, lost+": entries", list.Count, 1)
		want(t, lost+": inflight", must(d.ListInflight(t.Context(), c, d.memory, 0))(t).Count, 2)
	}
}
