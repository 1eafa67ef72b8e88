package replication_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/items"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/replication"
	"cairn/internal/memory/retrieval"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestAMemorysChangesAreSentInOrderOnceAndFlipTheirRows(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(d)
	first := d.Add("a")
	d.Add("b")
	if _, _, err := d.UpdateContext(t.Context(), memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: rules.NewID(), Markdown: "doc"}); err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "context is inflight", memorytest.Must(d.GetContext(t.Context(), memory.Caller{}, d.MemoryID))(t).Synced, false)
	memorytest.WantError(t, "await before", d.AwaitConsistency(t.Context(), memory.Caller{}, d.MemoryID, 0), 504, memory.CodeAwaitTimeout, `"paused":false`, `"pending":4`)
	d.Drain(h)
	var ops []string
	for _, i := range h.Items[d.MemoryID] {
		ops = append(ops, i.Kind+" "+i.Op)
	}
	memorytest.Want(t, "order", strings.Join(ops, ", "), "memory put, entry put, entry put, context put")
	memorytest.Want(t, "list", d.Texts(), "b a")
	memorytest.Want(t, "inflight", d.Pending(), "")
	memorytest.Want(t, "context is confirmed", memorytest.Must(d.GetContext(t.Context(), memory.Caller{}, d.MemoryID))(t).Synced, true)
	_, err := d.GetInflight(t.Context(), memory.Caller{}, d.MemoryID, first.LocalID)
	memorytest.WantError(t, "the localId", err, 404, memory.CodeCommitted, `"entryId"`)
	if err := d.AwaitConsistency(t.Context(), memory.Caller{}, d.MemoryID, 0); err != nil {
		t.Errorf("await after: %v", err)
	}
	var confirms int
	d.Query(&confirms, `SELECT count(*) FROM change_log WHERE op = 'confirm'`)
	memorytest.Want(t, "confirms in the log", confirms, 2)
	memorytest.Want(t, "handled", h.Handled, 5)
}

func TestWhatWasConfirmedAndNotFlippedIsAnsweredAgainUnderTheSameKey(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(d)
	d.Add("a")
	leases := d.Lanes()
	lost := h.Push(t, d.Take(leases, 100)) // the reply is lost
	again := h.Push(t, d.Take(leases, 100))
	memorytest.Want(t, "as many", len(again), len(lost))
	memorytest.Want(t, "one entryId", again[len(again)-1].EntryID, lost[len(lost)-1].EntryID)
	d.Settle(leases, again)
	d.Settle(leases, lost) // a repetition is harmless
	memorytest.Want(t, "list", d.Texts(), "a")
	memorytest.Want(t, "at the hub", len(h.Items[d.MemoryID]), 2)
}

func TestALateHolderCannotFlip(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(d)
	d.Add("a")
	early, other := d.NewLeases(time.Nanosecond), d.NewLeases(time.Minute)
	leases := d.TakeAll(early)
	late := h.Push(t, d.Take(leases, 100))
	taken := d.TakeAll(other)
	memorytest.Want(t, "leases that have run out are taken", len(taken), 256)
	memorytest.Want(t, "leases that last are not", len(d.TakeAll(d.NewLeases(time.Minute))), 0)
	memorytest.WantError(t, "late", d.Confirm(t.Context(), d.Member(), leases, late), 409, memory.CodeLeaseLost)
	memorytest.Want(t, "still inflight", d.Pending(), "a")
	if err := d.Confirm(t.Context(), d.Member(), taken, late); err != nil {
		t.Error(err)
	}
	memorytest.Want(t, "flipped", d.Texts(), "a")
}

func TestARefusedEntryStaysInflightAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(d)
	h.Refuse["bad"] = 422
	bad := d.Add("bad")
	d.Add("good")
	d.Drain(h)
	memorytest.Want(t, "list", d.Texts(), "good")
	memorytest.Want(t, "inflight", d.Pending(), "bad")
	for range 2 {
		memorytest.WantError(t, "await", d.AwaitConsistency(t.Context(), memory.Caller{}, d.MemoryID, 0), 409, memory.CodeReplicationFailed, `"failed":["`+bad.LocalID+`"]`)
	}
	delete(h.Refuse, "bad")
	memorytest.Want(t, "retried", memorytest.Must(d.Retry(t.Context(), memory.Caller{}, []string{bad.LocalID}))(t), 1)
	d.Drain(h)
	memorytest.Want(t, "list after retry", d.Texts(), "bad good")
	h.Refuse["worse"] = 400
	worse := d.Add("worse")
	d.Drain(h)
	memorytest.Want(t, "failures", len(memorytest.Must(d.Failures(t.Context(), d.Me()))(t)), 1)
	memorytest.Want(t, "discarded", memorytest.Must(d.Discard(t.Context(), memory.Caller{}, nil))(t), 1)
	memorytest.Want(t, "inflight after discard", d.Pending(), "")
	_, err := d.GetInflight(t.Context(), memory.Caller{}, d.MemoryID, worse.LocalID)
	memorytest.WantError(t, "the discarded", err, 404, memory.CodeNotFound)
	if err := d.AwaitConsistency(t.Context(), memory.Caller{}, d.MemoryID, 0); err != nil {
		t.Error(err)
	}
}

func TestAMemoryThatIsRefusedHaltsItsStreamAlone(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	leases := d.Lanes()
	other := d.NewMemory(memory.Caller{}, d.VaultID, "other")
	d.Add("a")
	batch := d.Take(leases, 100)
	for _, o := range batch {
		if o.Stream == d.MemoryID && o.Kind == memory.KindMemory {
			if err := d.Service.Fail(t.Context(), d.Member(), leases, replication.Outcome{Stream: o.Stream, Seq: o.Seq, Status: 400, Code: "x", Message: "y"}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, _, err := d.Stream(t.Context(), d.MemoryID)
	if err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "state", m.State, replication.StreamHalted)
	for _, o := range d.Take(leases, 100) {
		memorytest.WantNot(t, "what is sent", o.Stream, d.MemoryID)
	}
	memorytest.Want(t, "the other is ready", memorytest.Must(d.Backlog(t.Context(), d.Me()))(t).Halted, 1)
	if _, err := d.Retry(t.Context(), memory.Caller{}, nil); err != nil {
		t.Fatal(err)
	}
	h := memorytest.NewHub(d)
	d.Drain(h)
	memorytest.Want(t, "after retry", d.Texts(), "a")
	memorytest.Want(t, "the other's put", len(h.Items[other]), 1)
}

func TestTwoDevicesSeeEachOther(t *testing.T) {
	t.Parallel()
	one, two := memorytest.NewDesk(t).Joined(), memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(one)
	a := one.Add("a")
	one.Drain(h)
	two.Pull(h, one.MemoryID)
	two.Pull(h, one.MemoryID) // a repetition is harmless
	far := two.With(one.MemoryID)
	memorytest.Want(t, "list at the other", far.Texts(), "a")
	far.Add("b")
	two.Drain(h)
	one.Pull(h, one.MemoryID)
	memorytest.Want(t, "list at the first", one.Texts(), "b a")
	e := memorytest.Must(far.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: far.MemoryID}))(t).Entries[1]
	summary := "patched"
	if _, _, err := far.PatchEntry(t.Context(), memory.Caller{}, far.MemoryID, e.EntryID, entries.Patch{Summary: &summary, Tags: map[string]string{"k": "v"}}); err != nil {
		t.Fatal(err)
	}
	b := memorytest.Must(far.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: far.MemoryID}))(t).Entries[0]
	if _, _, err := far.CorrectEntry(t.Context(), memory.Caller{}, far.MemoryID, e.EntryID, entries.Correction{CorrectedEntryID: b.EntryID, Reason: "typo"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := far.UpdateContext(t.Context(), memory.Caller{}, entries.NewDocument{MemoryID: far.MemoryID, SessionID: rules.NewID(), Markdown: "theirs"}); err != nil {
		t.Fatal(err)
	}
	two.Drain(h)
	one.Pull(h, one.MemoryID)
	got := memorytest.Must(one.GetEntry(t.Context(), memory.Caller{}, one.MemoryID, e.EntryID))(t)
	memorytest.Want(t, "patched and corrected", got.Summary+got.Tags["k"]+got.CorrectionReason+got.CorrectedEntryID, "patchedvtypo"+b.EntryID)
	memorytest.Want(t, "context", memorytest.Must(one.GetContext(t.Context(), memory.Caller{}, one.MemoryID))(t).Markdown, "theirs")
	_, err := one.GetInflight(t.Context(), memory.Caller{}, one.MemoryID, a.LocalID)
	memorytest.WantError(t, "own localId", err, 404, memory.CodeCommitted, e.EntryID)
}

// Two devices write in the same nanosecond, concurrently.
func TestContextsOfOneNanosecondAreInTheHubsOrderOnEveryDevice(t *testing.T) {
	t.Parallel()
	one, two := memorytest.NewDesk(t).Joined(), memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(one)
	one.Drain(h)
	two.Pull(h, one.MemoryID)
	two = two.With(one.MemoryID)
	write := func(d *memorytest.Desk, text string) {
		t.Helper()
		if _, _, err := d.UpdateContext(t.Context(), memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: rules.NewID(), Markdown: text}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(what string, d *memorytest.Desk, text string) {
		t.Helper()
		memorytest.Want(t, what, memorytest.Must(d.GetContext(t.Context(), memory.Caller{}, d.MemoryID))(t).Markdown, text)
	}
	write(two, "later in the hub")
	write(one, "earlier in the hub")
	one.Drain(h)
	two.Pull(h, one.MemoryID)
	is("a writer reads what it wrote", two, "later in the hub")
	two.Drain(h)
	one.Pull(h, one.MemoryID)
	two.Pull(h, one.MemoryID)
	var rows string
	two.Query(&rows, `SELECT count(*) || ' at ' || count(DISTINCT updated_ns) FROM memory_contexts`)
	memorytest.Want(t, "contexts", rows, "2 at 1")
	for _, d := range []*memorytest.Desk{one, two} {
		is("everywhere", d, "later in the hub")
		found := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "hub"}))(t)
		memorytest.Want(t, "the latest in a search", found.LatestContext, "later in the hub")
		memorytest.Want(t, "purged", memorytest.Must(d.Purge(t.Context(), true))(t).Contexts, 1)
		is("after a purge", d, "later in the hub")
	}
}

func TestAPulledItemWithTheKeyOfAnInflightRowFlipsIt(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(d)
	a := d.Add("a")
	h.Push(t, d.Take(d.Lanes(), 100)) // the reply is lost, and pulled
	d.Pull(h, d.MemoryID)
	memorytest.Want(t, "list", d.Texts(), "a")
	_, err := d.GetInflight(t.Context(), memory.Caller{}, d.MemoryID, a.LocalID)
	memorytest.WantError(t, "the localId", err, 404, memory.CodeCommitted)
	d.Drain(h)
	memorytest.Want(t, "once at the hub", len(h.Items[d.MemoryID]), 2)
	memorytest.Want(t, "list after", d.Texts(), "a")
}

func TestADeletedEntryStaysDeleted(t *testing.T) {
	t.Parallel()
	one, two := memorytest.NewDesk(t).Joined(), memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(one)
	one.Add("a")
	one.Drain(h)
	two.Pull(h, one.MemoryID)
	id := memorytest.Must(one.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: one.MemoryID}))(t).Entries[0].EntryID
	before := h.Items[one.MemoryID]
	memorytest.DeleteWith(t, one, h, id)
	memorytest.Want(t, "list here", one.Texts(), "")
	two.Pull(h, one.MemoryID)
	memorytest.Want(t, "list there", two.With(one.MemoryID).Texts(), "")
	for _, d := range []*memorytest.Desk{one, two} { // a late pull, and a pull from the beginning
		h.Items[one.MemoryID] = before
		d.Pull(h, one.MemoryID)
		memorytest.Want(t, "revived", d.With(one.MemoryID).Texts(), "")
	}
	leases := one.Lanes()
	late := replication.Outcome{Stream: one.MemoryID, Seq: 0, Status: 201, EntryID: id}
	one.Query(&late.Seq, `SELECT seq FROM change_log WHERE kind = 'entry' AND op = 'put' AND device <> 'hub'`)
	if err := one.Confirm(t.Context(), one.Member(), leases, []replication.Outcome{late}); err != nil { // a late retry
		t.Error(err)
	}
	memorytest.Want(t, "revived by a retry", one.Texts(), "")
	var docs int
	one.Query(&docs, `SELECT count(*) FROM change_log WHERE kind = 'entry' AND op <> 'delete' AND doc IS NOT NULL`)
	memorytest.Want(t, "documents that are left", docs, 0)
}

func TestADeleteThatTheHubDoesNotConfirmIsWithdrawn(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t, func(c *memory.Config) { c.Settings.DeleteTimeout = 0 }).Joined()
	h := memorytest.NewHub(d)
	d.Add("a")
	d.Drain(h)
	id := memorytest.Must(d.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID}))(t).Entries[0].EntryID
	for range 2 {
		_, err := d.DeleteEntry(t.Context(), memory.Caller{Key: "k"}, d.MemoryID, id)
		memorytest.WantError(t, "delete", err, 503, memory.CodeHubUnavailable)
		memorytest.Want(t, "visible again", d.Texts(), "a")
	}
	_, err := d.DeleteMemory(t.Context(), memory.Caller{}, d.MemoryID)
	memorytest.WantError(t, "delete of the memory", err, 503, memory.CodeHubUnavailable)
	memorytest.Want(t, "still visible", d.Texts(), "a")
	d.Drain(h)
	memorytest.Want(t, "nothing of it is sent", len(h.Items[d.MemoryID]), 2)
	var undone int
	d.Query(&undone, `SELECT count(*) FROM change_log WHERE op = 'undelete' AND doc IS NULL`)
	memorytest.Want(t, "undeletes", undone, 3)
	// If the hub has executed it after all, the next pull removes the row: delete wins.
	h.Items[d.MemoryID] = append(h.Items[d.MemoryID], items.Item{HubSeq: 3, Kind: memory.KindEntry, ID: id, Op: store.OpDelete})
	d.Pull(h, d.MemoryID)
	memorytest.Want(t, "delete wins", d.Texts(), "")
}

func TestADeleteThatTheHubRefusesReturnsItsError(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(d)
	d.Add("a")
	d.Drain(h)
	id := memorytest.Must(d.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID}))(t).Entries[0].EntryID
	done := make(chan error, 1)
	go func() {
		_, err := d.DeleteEntry(context.Background(), memory.Caller{}, d.MemoryID, id)
		done <- err
	}()
	leases := d.Lanes()
	for batch := d.Take(leases, 9); ; batch = d.Take(leases, 9) {
		if len(batch) == 0 {
			continue
		}
		memorytest.Want(t, "hidden meanwhile", d.Texts(), "")
		if err := d.Service.Fail(t.Context(), d.Member(), leases, replication.Outcome{Stream: d.MemoryID, Seq: batch[0].Seq, Status: 403, Code: "forbidden", Message: "no"}, false); err != nil {
			t.Fatal(err)
		}
		break
	}
	memorytest.WantError(t, "delete", <-done, 403, "forbidden", "no")
	memorytest.Want(t, "visible again", d.Texts(), "a")
	memorytest.Want(t, "failures", len(memorytest.Must(d.Failures(t.Context(), ""))(t)), 0)
}

func TestAnInflightEntryIsAnnulledOrDeletedOnceItIsConfirmed(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(d)
	never := d.Add("never")
	if _, err := d.DeleteEntry(t.Context(), memory.Caller{}, d.MemoryID, never.LocalID); err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "annulled", d.Pending(), "")
	air := d.Add("air")
	d.Add("next")
	leases := d.Lanes()
	flying := h.Push(t, d.Take(leases, 100))
	done := make(chan error, 1)
	go func() {
		_, err := d.DeleteEntry(context.Background(), memory.Caller{}, d.MemoryID, air.LocalID)
		done <- err
	}()
	for d.Pending() == "air next" {
		storetest.Changes(t, d.Store)
	}
	memorytest.Want(t, "nothing may be sent before the confirmation but what came before", fmt.Sprint(len(d.Take(leases, 100))), fmt.Sprint(len(flying)))
	d.Settle(leases, flying)
	d.Drain(h)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "list", d.Texts(), "next")
	last := h.Items[d.MemoryID][len(h.Items[d.MemoryID])-1]
	sent := slices.IndexFunc(flying, func(o replication.Outcome) bool { return o.EntryID != "" })
	memorytest.Want(t, "the hub was told the entryId", last.ID, flying[sent].EntryID)
	for _, i := range h.Items[d.MemoryID] {
		memorytest.WantNot(t, "the hub's log", string(i.Doc), "never")
	}
}

func TestAMemoryDeletedElsewhereKeepsItsInflightRowsUntilTheyAreDiscarded(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(d)
	d.Add("sent")
	d.Drain(h)
	d.Add("mine")
	h.Items[d.MemoryID] = append(h.Items[d.MemoryID], items.Item{HubSeq: 3, Kind: memory.KindMemory, ID: d.MemoryID, Op: store.OpDelete})
	d.Pull(h, d.MemoryID)
	d.Pull(h, d.MemoryID)
	_, err := d.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID})
	memorytest.WantError(t, "the memory", err, 404, memory.CodeNotFound)
	memorytest.Want(t, "inflight", d.Pending(), "mine")
	memorytest.Want(t, "discarded", memorytest.Must(d.Discard(t.Context(), memory.Caller{}, nil))(t), 1)
	memorytest.Want(t, "gone", d.Pending(), "")
}

func TestAMemoryThatTheHubKnowsUnderAnotherIDIsBoth(t *testing.T) {
	t.Parallel()
	one, two := memorytest.NewDesk(t).Joined(), memorytest.NewDesk(t).Joined() // both have a vault v with a memory m
	h := memorytest.NewHub(one)
	one.Add("a")
	one.Drain(h)
	two.Pull(h, one.MemoryID)
	memorytest.Want(t, "under the local id", two.Texts(), "a")
	memorytest.Want(t, "under the hub's", two.With(one.MemoryID).Texts(), "a")
	two.With(one.MemoryID).Add("b")
	memorytest.Want(t, "inflight under the hub's", two.With(one.MemoryID).Pending(), "b")
	m, _, err := two.Stream(t.Context(), two.MemoryID)
	if err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "remote id", m.RemoteID, one.MemoryID)
	for _, o := range two.Take(two.Lanes(), 9) {
		if o.Kind == memory.KindEntry {
			memorytest.Want(t, "sent as", o.Remote, one.MemoryID)
		}
	}
}
