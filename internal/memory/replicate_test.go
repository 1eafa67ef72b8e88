package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestAMemorysChangesAreSentInOrderOnceAndFlipTheirRows(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	h := newHub(d)
	first := d.add("a")
	d.add("b")
	if _, _, err := d.UpdateContext(t.Context(), Caller{}, NewDocument{d.memory, rules.NewID(), "doc"}); err != nil {
		t.Fatal(err)
	}
	want(t, "context is inflight", must(d.GetContext(t.Context(), Caller{}, d.memory))(t).Synced, false)
	wantError(t, "await before", d.AwaitConsistency(t.Context(), Caller{}, d.memory, 0), 504, CodeAwaitTimeout, `"paused":false`, `"pending":4`)
	d.drain(h)
	var ops []string
	for _, i := range h.items[d.memory] {
		ops = append(ops, i.Kind+" "+i.Op)
	}
	want(t, "order", strings.Join(ops, ", "), "memory put, entry put, entry put, context put")
	want(t, "list", d.texts(), "b a")
	want(t, "inflight", d.pending(), "")
	want(t, "context is confirmed", must(d.GetContext(t.Context(), Caller{}, d.memory))(t).Synced, true)
	_, err := d.GetInflight(t.Context(), Caller{}, d.memory, first.LocalID)
	wantError(t, "the localId", err, 404, CodeCommitted, `"entryId"`)
	if err := d.AwaitConsistency(t.Context(), Caller{}, d.memory, 0); err != nil {
		t.Errorf("await after: %v", err)
	}
	var confirms int
	d.query(&confirms, `SELECT count(*) FROM change_log WHERE op = 'confirm'`)
	want(t, "confirms in the log", confirms, 2)
	want(t, "handled", h.handled, 5)
}

func TestWhatWasConfirmedAndNotFlippedIsAnsweredAgainUnderTheSameKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	h := newHub(d)
	d.add("a")
	leases := d.lanes()
	lost := h.push(t, d.take(leases, 100)) // the reply is lost
	again := h.push(t, d.take(leases, 100))
	want(t, "as many", len(again), len(lost))
	want(t, "one entryId", again[len(again)-1].EntryID, lost[len(lost)-1].EntryID)
	d.settle(leases, again)
	d.settle(leases, lost) // a repetition is harmless
	want(t, "list", d.texts(), "a")
	want(t, "at the hub", len(h.items[d.memory]), 2)
}

func TestALateHolderCannotFlip(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	h := newHub(d)
	d.add("a")
	early, other := d.newLeases(time.Nanosecond), d.newLeases(time.Minute)
	leases := d.takeAll(early)
	late := h.push(t, d.take(leases, 100))
	taken := d.takeAll(other)
	want(t, "leases that have run out are taken", len(taken), 256)
	want(t, "leases that last are not", len(d.takeAll(d.newLeases(time.Minute))), 0)
	wantError(t, "late", d.Confirm(t.Context(), d.member(), leases, late), 409, CodeLeaseLost)
	want(t, "still inflight", d.pending(), "a")
	if err := d.Confirm(t.Context(), d.member(), taken, late); err != nil {
		t.Error(err)
	}
	want(t, "flipped", d.texts(), "a")
}

func TestARefusedEntryStaysInflightAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	h := newHub(d)
	h.refuse["bad"] = 422
	bad := d.add("bad")
	d.add("good")
	d.drain(h)
	want(t, "list", d.texts(), "good")
	want(t, "inflight", d.pending(), "bad")
	for range 2 {
		wantError(t, "await", d.AwaitConsistency(t.Context(), Caller{}, d.memory, 0), 409, CodeReplicationFailed, `"failed":["`+bad.LocalID+`"]`)
	}
	delete(h.refuse, "bad")
	want(t, "retried", must(d.Retry(t.Context(), Caller{}, []string{bad.LocalID}))(t), 1)
	d.drain(h)
	want(t, "list after retry", d.texts(), "bad good")
	h.refuse["worse"] = 400
	worse := d.add("worse")
	d.drain(h)
	want(t, "failures", len(must(d.Failures(t.Context(), d.me()))(t)), 1)
	want(t, "discarded", must(d.Discard(t.Context(), Caller{}, nil))(t), 1)
	want(t, "inflight after discard", d.pending(), "")
	_, err := d.GetInflight(t.Context(), Caller{}, d.memory, worse.LocalID)
	wantError(t, "the discarded", err, 404, CodeNotFound)
	if err := d.AwaitConsistency(t.Context(), Caller{}, d.memory, 0); err != nil {
		t.Error(err)
	}
}

func TestAMemoryThatIsRefusedHaltsItsStreamAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	leases := d.lanes()
	other := d.newMemory(Caller{}, d.vault, "other")
	d.add("a")
	batch := d.take(leases, 100)
	for _, o := range batch {
		if o.Stream == d.memory && o.Kind == KindMemory {
			if err := d.Service.Fail(t.Context(), d.member(), leases, Outcome{Stream: o.Stream, Seq: o.Seq, Status: 400, Code: "x", Message: "y"}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, _, err := d.Stream(t.Context(), d.memory)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "state", m.State, StreamHalted)
	for _, o := range d.take(leases, 100) {
		wantNot(t, "what is sent", o.Stream, d.memory)
	}
	want(t, "the other is ready", must(d.Backlog(t.Context(), d.me()))(t).Halted, 1)
	if _, err := d.Retry(t.Context(), Caller{}, nil); err != nil {
		t.Fatal(err)
	}
	h := newHub(d)
	d.drain(h)
	want(t, "after retry", d.texts(), "a")
	want(t, "the other's put", len(h.items[other]), 1)
}

func TestTwoDevicesSeeEachOther(t *testing.T) {
	t.Parallel()
	one, two := newDesk(t).joined(), newDesk(t).joined()
	h := newHub(one)
	a := one.add("a")
	one.drain(h)
	two.pull(h, one.memory)
	two.pull(h, one.memory) // a repetition is harmless
	far := two.with(one.memory)
	want(t, "list at the other", far.texts(), "a")
	far.add("b")
	two.drain(h)
	one.pull(h, one.memory)
	want(t, "list at the first", one.texts(), "b a")
	e := must(far.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: far.memory}))(t).Entries[1]
	summary := "patched"
	if _, _, err := far.PatchEntry(t.Context(), Caller{}, far.memory, e.EntryID, Patch{Summary: &summary, Tags: map[string]string{"k": "v"}}); err != nil {
		t.Fatal(err)
	}
	b := must(far.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: far.memory}))(t).Entries[0]
	if _, _, err := far.CorrectEntry(t.Context(), Caller{}, far.memory, e.EntryID, Correction{b.EntryID, "typo"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := far.UpdateContext(t.Context(), Caller{}, NewDocument{far.memory, rules.NewID(), "theirs"}); err != nil {
		t.Fatal(err)
	}
	two.drain(h)
	one.pull(h, one.memory)
	got := must(one.GetEntry(t.Context(), Caller{}, one.memory, e.EntryID))(t)
	want(t, "patched and corrected", got.Summary+got.Tags["k"]+got.CorrectionReason+got.CorrectedEntryID, "patchedvtypo"+b.EntryID)
	want(t, "context", must(one.GetContext(t.Context(), Caller{}, one.memory))(t).Markdown, "theirs")
	_, err := one.GetInflight(t.Context(), Caller{}, one.memory, a.LocalID)
	wantError(t, "own localId", err, 404, CodeCommitted, e.EntryID)
}

// Two devices write in the same nanosecond, concurrently.
func TestContextsOfOneNanosecondAreInTheHubsOrderOnEveryDevice(t *testing.T) {
	t.Parallel()
	one, two := newDesk(t).joined(), newDesk(t).joined()
	h := newHub(one)
	one.drain(h)
	two.pull(h, one.memory)
	two = two.with(one.memory)
	write := func(d *desk, text string) {
		t.Helper()
		if _, _, err := d.UpdateContext(t.Context(), Caller{}, NewDocument{d.memory, rules.NewID(), text}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(what string, d *desk, text string) {
		t.Helper()
		want(t, what, must(d.GetContext(t.Context(), Caller{}, d.memory))(t).Markdown, text)
	}
	write(two, "later in the hub")
	write(one, "earlier in the hub")
	one.drain(h)
	two.pull(h, one.memory)
	is("a writer reads what it wrote", two, "later in the hub")
	two.drain(h)
	one.pull(h, one.memory)
	two.pull(h, one.memory)
	var rows string
	two.query(&rows, `SELECT count(*) || ' at ' || count(DISTINCT updated_ns) FROM memory_contexts`)
	want(t, "contexts", rows, "2 at 1")
	for _, d := range []*desk{one, two} {
		is("everywhere", d, "later in the hub")
		found := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "hub"}))(t)
		want(t, "the latest in a search", found.LatestContext, "later in the hub")
		want(t, "purged", must(d.Purge(t.Context(), true))(t).Contexts, 1)
		is("after a purge", d, "later in the hub")
	}
}

// with returns the desk with another memory.
func (d *desk) with(memory string) *desk {
	other := *d
	other.memory = memory
	return &other
}

func TestAPulledItemWithTheKeyOfAnInflightRowFlipsIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	h := newHub(d)
	a := d.add("a")
	h.push(t, d.take(d.lanes(), 100)) // the reply is lost, and pulled
	d.pull(h, d.memory)
	want(t, "list", d.texts(), "a")
	_, err := d.GetInflight(t.Context(), Caller{}, d.memory, a.LocalID)
	wantError(t, "the localId", err, 404, CodeCommitted)
	d.drain(h)
	want(t, "once at the hub", len(h.items[d.memory]), 2)
	want(t, "list after", d.texts(), "a")
}

func TestADeletedEntryStaysDeleted(t *testing.T) {
	t.Parallel()
	one, two := newDesk(t).joined(), newDesk(t).joined()
	h := newHub(one)
	one.add("a")
	one.drain(h)
	two.pull(h, one.memory)
	id := must(one.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: one.memory}))(t).Entries[0].EntryID
	before := h.items[one.memory]
	deleteWith(t, one, h, id)
	want(t, "list here", one.texts(), "")
	two.pull(h, one.memory)
	want(t, "list there", two.with(one.memory).texts(), "")
	for _, d := range []*desk{one, two} { // a late pull, and a pull from the beginning
		h.items[one.memory] = before
		d.pull(h, one.memory)
		want(t, "revived", d.with(one.memory).texts(), "")
	}
	leases := one.lanes()
	late := Outcome{Stream: one.memory, Seq: 0, Status: 201, EntryID: id}
	one.query(&late.Seq, `SELECT seq FROM change_log WHERE kind = 'entry' AND op = 'put' AND device <> 'hub'`)
	if err := one.Confirm(t.Context(), one.member(), leases, []Outcome{late}); err != nil { // a late retry
		t.Error(err)
	}
	want(t, "revived by a retry", one.texts(), "")
	var docs int
	one.query(&docs, `SELECT count(*) FROM change_log WHERE kind = 'entry' AND op <> 'delete' AND doc IS NOT NULL`)
	want(t, "documents that are left", docs, 0)
}

// deleteWith deletes an entry while a replicator runs.
func deleteWith(t testing.TB, d *desk, h *fakeHub, name string) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := d.DeleteEntry(context.Background(), Caller{}, d.memory, name)
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("delete: %v", err)
			}
			return
		default:
			d.drain(h)
		}
	}
}

func TestADeleteThatTheHubDoesNotConfirmIsWithdrawn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(c *Config) { c.Settings.DeleteTimeout = 0 }).joined()
	h := newHub(d)
	d.add("a")
	d.drain(h)
	id := must(d.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: d.memory}))(t).Entries[0].EntryID
	for range 2 {
		_, err := d.DeleteEntry(t.Context(), Caller{Key: "k"}, d.memory, id)
		wantError(t, "delete", err, 503, CodeHubUnavailable)
		want(t, "visible again", d.texts(), "a")
	}
	_, err := d.DeleteMemory(t.Context(), Caller{}, d.memory)
	wantError(t, "delete of the memory", err, 503, CodeHubUnavailable)
	want(t, "still visible", d.texts(), "a")
	d.drain(h)
	want(t, "nothing of it is sent", len(h.items[d.memory]), 2)
	var undone int
	d.query(&undone, `SELECT count(*) FROM change_log WHERE op = 'undelete' AND doc IS NULL`)
	want(t, "undeletes", undone, 3)
	// If the hub has executed it after all, the next pull removes the row: delete wins.
	h.items[d.memory] = append(h.items[d.memory], Item{HubSeq: 3, Kind: KindEntry, ID: id, Op: store.OpDelete})
	d.pull(h, d.memory)
	want(t, "delete wins", d.texts(), "")
}

func TestADeleteThatTheHubRefusesReturnsItsError(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	h := newHub(d)
	d.add("a")
	d.drain(h)
	id := must(d.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: d.memory}))(t).Entries[0].EntryID
	done := make(chan error, 1)
	go func() {
		_, err := d.DeleteEntry(context.Background(), Caller{}, d.memory, id)
		done <- err
	}()
	leases := d.lanes()
	for batch := d.take(leases, 9); ; batch = d.take(leases, 9) {
		if len(batch) == 0 {
			continue
		}
		want(t, "hidden meanwhile", d.texts(), "")
		if err := d.Service.Fail(t.Context(), d.member(), leases, Outcome{Stream: d.memory, Seq: batch[0].Seq, Status: 403, Code: "forbidden", Message: "no"}, false); err != nil {
			t.Fatal(err)
		}
		break
	}
	wantError(t, "delete", <-done, 403, "forbidden", "no")
	want(t, "visible again", d.texts(), "a")
	want(t, "failures", len(must(d.Failures(t.Context(), ""))(t)), 0)
}

func TestAnInflightEntryIsAnnulledOrDeletedOnceItIsConfirmed(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	h := newHub(d)
	never := d.add("never")
	if _, err := d.DeleteEntry(t.Context(), Caller{}, d.memory, never.LocalID); err != nil {
		t.Fatal(err)
	}
	want(t, "annulled", d.pending(), "")
	air := d.add("air")
	d.add("next")
	leases := d.lanes()
	flying := h.push(t, d.take(leases, 100))
	done := make(chan error, 1)
	go func() {
		_, err := d.DeleteEntry(context.Background(), Caller{}, d.memory, air.LocalID)
		done <- err
	}()
	for d.pending() == "air next" {
		storetest.Changes(t, d.store)
	}
	want(t, "nothing may be sent before the confirmation but what came before", fmt.Sprint(len(d.take(leases, 100))), fmt.Sprint(len(flying)))
	d.settle(leases, flying)
	d.drain(h)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want(t, "list", d.texts(), "next")
	last := h.items[d.memory][len(h.items[d.memory])-1]
	sent := slices.IndexFunc(flying, func(o Outcome) bool { return o.EntryID != "" })
	want(t, "the hub was told the entryId", last.ID, flying[sent].EntryID)
	for _, i := range h.items[d.memory] {
		wantNot(t, "the hub's log", string(i.Doc), "never")
	}
}

func TestAMemoryDeletedElsewhereKeepsItsInflightRowsUntilTheyAreDiscarded(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	h := newHub(d)
	d.add("sent")
	d.drain(h)
	d.add("mine")
	h.items[d.memory] = append(h.items[d.memory], Item{HubSeq: 3, Kind: KindMemory, ID: d.memory, Op: store.OpDelete})
	d.pull(h, d.memory)
	d.pull(h, d.memory)
	_, err := d.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: d.memory})
	wantError(t, "the memory", err, 404, CodeNotFound)
	want(t, "inflight", d.pending(), "mine")
	want(t, "discarded", must(d.Discard(t.Context(), Caller{}, nil))(t), 1)
	want(t, "gone", d.pending(), "")
}

func TestAMemoryThatTheHubKnowsUnderAnotherIDIsBoth(t *testing.T) {
	t.Parallel()
	one, two := newDesk(t).joined(), newDesk(t).joined() // both have a vault v with a memory m
	h := newHub(one)
	one.add("a")
	one.drain(h)
	two.pull(h, one.memory)
	want(t, "under the local id", two.texts(), "a")
	want(t, "under the hub's", two.with(one.memory).texts(), "a")
	two.with(one.memory).add("b")
	want(t, "inflight under the hub's", two.with(one.memory).pending(), "b")
	m, _, err := two.Stream(t.Context(), two.memory)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "remote id", m.RemoteID, one.memory)
	for _, o := range two.take(two.lanes(), 9) {
		if o.Kind == KindEntry {
			want(t, "sent as", o.Remote, one.memory)
		}
	}
}
