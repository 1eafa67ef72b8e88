package entries_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/items"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// TestInflightToolsSeeTheRowsOfTheirCase tests the table of memories §6.
func TestInflightToolsSeeTheRowsOfTheirCase(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	ctx := t.Context()
	stranger := memory.Caller{User: memorytest.Must(d.AddUser(ctx))(t).UserID}
	theirVault := d.NewVault(stranger, "v")
	theirMemory := d.NewMemory(stranger, theirVault, "m")
	theirs, _, err := d.AddEntry(ctx, stranger, contents.NewEntry{MemoryID: theirMemory, RawEntry: "theirs"}) // committed: their user has no hub
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Join(ctx, stranger.User, "http://hub.invalid", rules.NewID(), true); err != nil {
		t.Fatal(err)
	}
	theirsInflight, _, err := d.AddEntry(ctx, stranger, contents.NewEntry{MemoryID: theirMemory, RawEntry: "theirs, inflight"})
	if err != nil {
		t.Fatal(err)
	}
	h := memorytest.NewHub(d)
	h.Refuse["failed"] = 400
	committed, purged, deleted := d.Add("committed"), d.Add("purged"), d.Add("deleted")
	d.Drain(h)
	d.Exec(`UPDATE changes SET doc = NULL WHERE id = '` + purged.LocalID + `' OR doc ->> '$.localId' = '` + purged.LocalID + `'`)
	d.Exec(`DELETE FROM memory_entries WHERE raw_entry = 'purged'`)
	memorytest.DeleteWith(t, d, h, deleted.LocalID)
	failed := d.Add("failed")
	d.Drain(h)
	elsewhere := d.With(d.NewMemory(memory.Caller{}, d.VaultID, "elsewhere")).Add("elsewhere")
	inflight := d.Add("inflight")
	memorytest.Want(t, "listed", d.Pending(), "failed inflight")
	id := strings.TrimPrefix
	for _, c := range []struct {
		what, memory, local string
		status              int
		code                string
	}{
		{"inflight", d.MemoryID, inflight.LocalID, 200, ""},
		{"failed for good", d.MemoryID, failed.LocalID, 200, ""},
		{"in capitals", strings.ToUpper(d.MemoryID), inflight.LocalID, 200, ""},
		{"committed", d.MemoryID, committed.LocalID, 404, memory.CodeCommitted},
		{"purged", d.MemoryID, purged.LocalID, 404, memory.CodeNotFound},
		{"deleted", d.MemoryID, deleted.LocalID, 404, memory.CodeNotFound},
		{"in another memory", d.MemoryID, elsewhere.LocalID, 404, memory.CodeNotFound},
		{"another user's committed", theirMemory, theirs.LocalID, 404, memory.CodeNotFound},
		{"another user's inflight", theirMemory, theirsInflight.LocalID, 404, memory.CodeNotFound},
		{"another user's inflight, in an own memory", d.MemoryID, theirsInflight.LocalID, 404, memory.CodeNotFound},
		{"an unknown memory", rules.NewID(), inflight.LocalID, 404, memory.CodeNotFound},
		{"never given", d.MemoryID, "pending-" + fmt.Sprint(9e15)[:1], 404, memory.CodeNotFound},
		{"no localId", d.MemoryID, id(inflight.LocalID, "pending-"), 400, memory.CodeLocalID},
	} {
		e, err := d.GetInflight(ctx, memory.Caller{}, c.memory, c.local)
		if c.status == 200 {
			memorytest.Want(t, c.what, fmt.Sprint(e.LocalID, err), c.local+"<nil>")
			continue
		}
		memorytest.WantError(t, c.what, err, c.status, c.code)
	}
	for what, memoryID := range map[string]string{"unknown": rules.NewID(), "foreign": theirMemory} {
		memorytest.Want(t, what, memorytest.AsJSON(t, memorytest.Must(d.ListInflight(ctx, memory.Caller{}, memoryID, 0))(t)), `{"entries":[],"count":0,"applied_limit":25}`)
	}
	memorytest.Want(t, "under the hub id of the user", memorytest.Must(d.ListInflight(ctx, memory.Caller{UserID: memorytest.Must(d.Whoami(ctx, memory.Caller{}))(t).HubUser}, d.MemoryID, 0))(t).Count, 2)
}

func TestInflightToolsOnlyReadAndPassABlockedQueueByAndReadsDoNot(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t, func(c *memory.Config) { c.Settings.EnqueueTimeout, c.Settings.QueueLen = 0, 1 }).Joined()
	a := d.Add("a")
	release, held := make(chan struct{}), make(chan struct{})
	done := make(chan error, 2)
	go func() {
		done <- d.Jobs.Run(context.Background(), d.MemoryID, func(context.Context) error { close(held); <-release; return nil })
	}()
	<-held
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	before := storetest.Changes(t, d.Store)
	state := func() (text string) {
		d.Query(&text, `SELECT group_concat(synced || ifnull(entry_id, '-') || seq) || (SELECT group_concat(acked_seq || ' ' || sent_seq || ' ' || head_seq)
FROM memory_streams) FROM memory_entries`)
		return text
	}
	rows := state()
	memorytest.Want(t, "list", d.Pending(), "a")
	memorytest.Want(t, "get", memorytest.Must(d.GetInflight(t.Context(), memory.Caller{}, d.MemoryID, a.LocalID))(t).RawEntry, "a")
	memorytest.Want(t, "the log", len(storetest.Changes(t, d.Store)), len(before))
	memorytest.Want(t, "the rows", state(), rows)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := d.ListEntries(ctx, memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID})
		done <- err
	}()
	for waiting := 0; waiting == 0; {
		for _, sh := range d.Jobs.Stats() {
			waiting += sh.Depth
		}
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("an ordered read has passed the queue by")
	}
	let()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTheOldestInflightEntriesAreListedByTimeThenRow(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	for i := range 30 {
		d.Add(fmt.Sprint("e", i))
	}
	d.Exec(`UPDATE memory_entries SET creation_ns = 5 WHERE raw_entry IN ('e7', 'e3')`)
	list := memorytest.Must(d.ListInflight(t.Context(), memory.Caller{}, d.MemoryID, 4))(t)
	var texts []string
	for _, e := range list.Entries {
		texts = append(texts, e.RawEntry)
	}
	memorytest.Want(t, "order", strings.Join(texts, " "), "e3 e7 e0 e1")
	memorytest.Want(t, "default limit", memorytest.Must(d.ListInflight(t.Context(), memory.Caller{}, d.MemoryID, -3))(t).Count, 25)
}

// TestContextsKeepTheRulesOfTheirDocument tests memories §7.
func TestContextsKeepTheRulesOfTheirDocument(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	ctx := t.Context()
	_, err := d.GetContext(ctx, memory.Caller{}, d.MemoryID)
	memorytest.WantError(t, "never written", err, 404, memory.CodeNotFound, "context not found")
	for what, memoryID := range map[string]string{"unknown": rules.NewID()} {
		_, err := d.GetContext(ctx, memory.Caller{}, memoryID)
		memorytest.WantError(t, what, err, 404, memory.CodeNotFound)
		_, _, err = d.UpdateContext(ctx, memory.Caller{}, entries.NewDocument{MemoryID: memoryID, SessionID: rules.NewID(), Markdown: "x"})
		memorytest.WantError(t, what, err, 404, memory.CodeNotFound)
	}
	session := rules.NewID()
	var last contents.Document
	for i := range 3 { // the clock does not move; equal texts are separate rows
		out, _, err := d.UpdateContext(ctx, memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: session, Markdown: "same"})
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && out.UpdatedAt <= last.UpdatedAt {
			t.Errorf("updated_at %v is not after %v", out.UpdatedAt, last.UpdatedAt)
		}
		last = out
	}
	memorytest.Want(t, "the answer", memorytest.AsJSON(t, last), `{"memory_id":"`+d.MemoryID+`","session_id":"`+session+`","updated_at":"2023-11-14T22:13:20.000000002Z","synced":true}`)
	var rows int
	d.Query(&rows, `SELECT count(*) FROM memory_contexts`)
	memorytest.Want(t, "rows", rows, 3)
	d.Clock.Move(-1000)
	last, _, err = d.UpdateContext(ctx, memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: "S-01J00000000000000000000000", Markdown: "newest"})
	if err != nil {
		t.Fatal(err)
	}
	got := memorytest.Must(d.GetContext(ctx, memory.Caller{}, d.MemoryID))(t)
	memorytest.Want(t, "the newest though the clock stepped back", got.Markdown+got.SessionID, "newest01900000-0000-0000-0000-000000000000")
	if err := d.Join(ctx, d.Me(), "http://hub", rules.NewID(), true); err != nil {
		t.Fatal(err)
	}
	doc := `{"contextId":"` + rules.NewID() + `","sessionId":"` + session + `","markdown":"older","updatedAt":"2020-01-01T00:00:00Z"}`
	if err := d.Apply(ctx, d.Member(), d.MemoryID, []items.Item{{HubSeq: 1, Kind: memory.KindContext, Op: store.OpPut, Key: "k", Doc: []byte(doc)}}, 1); err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "an older one from elsewhere is history", memorytest.Must(d.GetContext(ctx, memory.Caller{}, d.MemoryID))(t).Markdown, "newest")
	d.Query(&rows, `SELECT count(*) FROM memory_contexts`)
	memorytest.Want(t, "rows", rows, 5)
}

func TestListsArePagedInBothDirectionsWithoutGapsOrRepeats(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	ctx := t.Context()
	var ids []string
	for i := range 10 {
		tags := map[string]string{"n": fmt.Sprint(i % 2), "all": "a:b"}
		session := ""
		if i < 3 {
			session = "01900000-0000-0000-0000-000000000000"
		}
		out, _, err := d.AddEntry(ctx, memory.Caller{}, contents.NewEntry{MemoryID: d.MemoryID, RawEntry: fmt.Sprint(i), Tags: tags, SessionID: session})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, out.EntryID)
	}
	page := func(a entries.ListArgs) (text string, out entries.Listed) {
		a.MemoryID = d.MemoryID
		out = memorytest.Must(d.ListEntries(ctx, memory.Caller{}, a))(t)
		for _, e := range out.Entries {
			text += e.RawEntry
		}
		memorytest.Want(t, "count", out.Count, len(out.Entries))
		return text, out
	}
	text, out := page(entries.ListArgs{Limit: 4})
	all := text
	for out.NextBefore != nil {
		text, out = page(entries.ListArgs{Limit: 4, Before: out.NextBefore.String()})
		all += text
	}
	memorytest.Want(t, "backwards", all, "9876543210")
	text, out = page(entries.ListArgs{Limit: 3, After: "2000-01-01T00:00:00Z"})
	memorytest.Want(t, "the oldest after a time, newest first", text, "210")
	text, _ = page(entries.ListArgs{Limit: 3, After: out.NextAfter.String()})
	memorytest.Want(t, "the next page forward", text, "543")
	text, _ = page(entries.ListArgs{Limit: 3, After: strings.ToUpper(ids[5])})
	memorytest.Want(t, "after an entry", text, "876")
	text, _ = page(entries.ListArgs{Before: ids[2]})
	memorytest.Want(t, "before an entry", text, "10")
	text, _ = page(entries.ListArgs{Tags: []string{"n:1", "all:a:b"}})
	memorytest.Want(t, "tags", text, "97531")
	text, _ = page(entries.ListArgs{Tags: []string{"n:1", "all:x"}})
	memorytest.Want(t, "no such tag", text, "")
	text, _ = page(entries.ListArgs{SessionID: "S-01J00000000000000000000000", Limit: 2})
	memorytest.Want(t, "session, before the limit", text, "21")
	_, out = page(entries.ListArgs{After: ids[9]})
	memorytest.Want(t, "an empty page", memorytest.AsJSON(t, out), `{"entries":[],"count":0,"applied_limit":25,"next_before":null,"next_after":null}`)
	if _, err := d.DeleteEntry(ctx, memory.Caller{}, d.MemoryID, ids[5]); err != nil {
		t.Fatal(err)
	}
	_, err := d.ListEntries(ctx, memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID, After: ids[5]})
	memorytest.WantError(t, "a deleted cursor", err, 400, memory.CodeInvalid)
}
