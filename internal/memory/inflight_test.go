package memory

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// TestInflightToolsSeeTheRowsOfTheirCase tests the table of memories §6.
func TestInflightToolsSeeTheRowsOfTheirCase(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	ctx := t.Context()
	stranger := Caller{User: must(d.AddUser(ctx))(t).UserID}
	theirVault := d.newVault(stranger, "v")
	theirMemory := d.newMemory(stranger, theirVault, "m")
	theirs, _, err := d.AddEntry(ctx, stranger, NewEntry{MemoryID: theirMemory, RawEntry: "theirs"}) // committed: their user has no hub
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Join(ctx, stranger.User, "http://hub.invalid", rules.NewID(), true); err != nil {
		t.Fatal(err)
	}
	theirsInflight, _, err := d.AddEntry(ctx, stranger, NewEntry{MemoryID: theirMemory, RawEntry: "theirs, inflight"})
	if err != nil {
		t.Fatal(err)
	}
	h := newHub(d)
	h.refuse["failed"] = 400
	committed, purged, deleted := d.add("committed"), d.add("purged"), d.add("deleted")
	d.drain(h)
	d.sql(`UPDATE changes SET doc = NULL WHERE id = '` + purged.LocalID + `' OR doc ->> '$.localId' = '` + purged.LocalID + `'`)
	d.sql(`DELETE FROM memory_entries WHERE raw_entry = 'purged'`)
	deleteWith(t, d, h, deleted.LocalID)
	failed := d.add("failed")
	d.drain(h)
	elsewhere := d.with(d.newMemory(Caller{}, d.vault, "elsewhere")).add("elsewhere")
	inflight := d.add("inflight")
	want(t, "listed", d.pending(), "failed inflight")
	id := strings.TrimPrefix
	for _, c := range []struct {
		what, memory, local string
		status              int
		code                string
	}{
		{"inflight", d.memory, inflight.LocalID, 200, ""},
		{"failed for good", d.memory, failed.LocalID, 200, ""},
		{"in capitals", strings.ToUpper(d.memory), inflight.LocalID, 200, ""},
		{"committed", d.memory, committed.LocalID, 404, CodeCommitted},
		{"purged", d.memory, purged.LocalID, 404, CodeNotFound},
		{"deleted", d.memory, deleted.LocalID, 404, CodeNotFound},
		{"in another memory", d.memory, elsewhere.LocalID, 404, CodeNotFound},
		{"another user's committed", theirMemory, theirs.LocalID, 404, CodeNotFound},
		{"another user's inflight", theirMemory, theirsInflight.LocalID, 404, CodeNotFound},
		{"another user's inflight, in an own memory", d.memory, theirsInflight.LocalID, 404, CodeNotFound},
		{"an unknown memory", rules.NewID(), inflight.LocalID, 404, CodeNotFound},
		{"never given", d.memory, "pending-" + fmt.Sprint(9e15)[:1], 404, CodeNotFound},
		{"no localId", d.memory, id(inflight.LocalID, "pending-"), 400, CodeLocalID},
	} {
		e, err := d.GetInflight(ctx, Caller{}, c.memory, c.local)
		if c.status == 200 {
			want(t, c.what, fmt.Sprint(e.LocalID, err), c.local+"<nil>")
			continue
		}
		wantError(t, c.what, err, c.status, c.code)
	}
	for what, memory := range map[string]string{"unknown": rules.NewID(), "foreign": theirMemory} {
		want(t, what, asJSON(t, must(d.ListInflight(ctx, Caller{}, memory, 0))(t)), `{"entries":[],"count":0,"applied_limit":25}`)
	}
	want(t, "under the hub id of the user", must(d.ListInflight(ctx, Caller{UserID: must(d.Whoami(ctx, Caller{}))(t).HubUser}, d.memory, 0))(t).Count, 2)
}

func TestInflightToolsOnlyReadAndPassABlockedQueueByAndReadsDoNot(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(c *Config) { c.Settings.EnqueueTimeout, c.Settings.QueueLen = 0, 1 }).joined()
	a := d.add("a")
	release, held := make(chan struct{}), make(chan struct{})
	done := make(chan error, 2)
	go func() {
		done <- d.shards.run(context.Background(), d.memory, func(context.Context) error { close(held); <-release; return nil })
	}()
	<-held
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	before := storetest.Changes(t, d.store)
	state := func() (text string) {
		d.query(&text, `SELECT group_concat(synced || ifnull(entry_id, '-') || seq) || (SELECT group_concat(acked_seq || ' ' || sent_seq || ' ' || head_seq)
FROM memory_streams) FROM memory_entries`)
		return text
	}
	rows := state()
	want(t, "list", d.pending(), "a")
	want(t, "get", must(d.GetInflight(t.Context(), Caller{}, d.memory, a.LocalID))(t).RawEntry, "a")
	want(t, "the log", len(storetest.Changes(t, d.store)), len(before))
	want(t, "the rows", state(), rows)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := d.ListEntries(ctx, Caller{}, ListArgs{MemoryID: d.memory})
		done <- err
	}()
	for waiting := 0; waiting == 0; {
		for _, sh := range d.Shards() {
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
	d := newDesk(t).joined()
	for i := range 30 {
		d.add(fmt.Sprint("e", i))
	}
	d.sql(`UPDATE memory_entries SET creation_ns = 5 WHERE raw_entry IN ('e7', 'e3')`)
	list := must(d.ListInflight(t.Context(), Caller{}, d.memory, 4))(t)
	var texts []string
	for _, e := range list.Entries {
		texts = append(texts, e.RawEntry)
	}
	want(t, "order", strings.Join(texts, " "), "e3 e7 e0 e1")
	want(t, "default limit", must(d.ListInflight(t.Context(), Caller{}, d.memory, -3))(t).Count, 25)
}

// TestContextsKeepTheRulesOfTheirDocument tests memories §7.
func TestContextsKeepTheRulesOfTheirDocument(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	_, err := d.GetContext(ctx, Caller{}, d.memory)
	wantError(t, "never written", err, 404, CodeNotFound, "context not found")
	for what, memory := range map[string]string{"unknown": rules.NewID()} {
		_, err := d.GetContext(ctx, Caller{}, memory)
		wantError(t, what, err, 404, CodeNotFound)
		_, _, err = d.UpdateContext(ctx, Caller{}, NewDocument{memory, rules.NewID(), "x"})
		wantError(t, what, err, 404, CodeNotFound)
	}
	session := rules.NewID()
	var last Document
	for i := range 3 { // the clock does not move; equal texts are separate rows
		out, _, err := d.UpdateContext(ctx, Caller{}, NewDocument{d.memory, session, "same"})
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && out.UpdatedAt <= last.UpdatedAt {
			t.Errorf("updated_at %v is not after %v", out.UpdatedAt, last.UpdatedAt)
		}
		last = out
	}
	want(t, "the answer", asJSON(t, last), `{"memory_id":"`+d.memory+`","session_id":"`+session+`","updated_at":"2023-11-14T22:13:20.000000002Z","synced":true}`)
	var rows int
	d.query(&rows, `SELECT count(*) FROM memory_contexts`)
	want(t, "rows", rows, 3)
	d.clock.Move(-1000)
	last, _, err = d.UpdateContext(ctx, Caller{}, NewDocument{d.memory, "S-01J00000000000000000000000", "newest"})
	if err != nil {
		t.Fatal(err)
	}
	got := must(d.GetContext(ctx, Caller{}, d.memory))(t)
	want(t, "the newest though the clock stepped back", got.Markdown+got.SessionID, "newest01900000-0000-0000-0000-000000000000")
	if err := d.Join(ctx, d.me(), "http://hub", rules.NewID(), true); err != nil {
		t.Fatal(err)
	}
	doc := `{"contextId":"` + rules.NewID() + `","sessionId":"` + session + `","markdown":"older","updatedAt":"2020-01-01T00:00:00Z"}`
	if err := d.Apply(ctx, d.member(), d.memory, []Item{{HubSeq: 1, Kind: KindContext, Op: store.OpPut, Key: "k", Doc: []byte(doc)}}, 1); err != nil {
		t.Fatal(err)
	}
	want(t, "an older one from elsewhere is history", must(d.GetContext(ctx, Caller{}, d.memory))(t).Markdown, "newest")
	d.query(&rows, `SELECT count(*) FROM memory_contexts`)
	want(t, "rows", rows, 5)
}

func TestListsArePagedInBothDirectionsWithoutGapsOrRepeats(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	var ids []string
	for i := range 10 {
		tags := map[string]string{"n": fmt.Sprint(i % 2), "all": "a:b"}
		session := ""
		if i < 3 {
			session = "01900000-0000-0000-0000-000000000000"
		}
		out, _, err := d.AddEntry(ctx, Caller{}, NewEntry{MemoryID: d.memory, RawEntry: fmt.Sprint(i), Tags: tags, SessionID: session})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, out.EntryID)
	}
	page := func(a ListArgs) (text string, out Listed) {
		a.MemoryID = d.memory
		out = must(d.ListEntries(ctx, Caller{}, a))(t)
		for _, e := range out.Entries {
			text += e.RawEntry
		}
		want(t, "count", out.Count, len(out.Entries))
		return text, out
	}
	text, out := page(ListArgs{Limit: 4})
	all := text
	for out.NextBefore != nil {
		text, out = page(ListArgs{Limit: 4, Before: out.NextBefore.String()})
		all += text
	}
	want(t, "backwards", all, "9876543210")
	text, out = page(ListArgs{Limit: 3, After: "2000-01-01T00:00:00Z"})
	want(t, "the oldest after a time, newest first", text, "210")
	text, _ = page(ListArgs{Limit: 3, After: out.NextAfter.String()})
	want(t, "the next page forward", text, "543")
	text, _ = page(ListArgs{Limit: 3, After: strings.ToUpper(ids[5])})
	want(t, "after an entry", text, "876")
	text, _ = page(ListArgs{Before: ids[2]})
	want(t, "before an entry", text, "10")
	text, _ = page(ListArgs{Tags: []string{"n:1", "all:a:b"}})
	want(t, "tags", text, "97531")
	text, _ = page(ListArgs{Tags: []string{"n:1", "all:x"}})
	want(t, "no such tag", text, "")
	text, _ = page(ListArgs{SessionID: "S-01J00000000000000000000000", Limit: 2})
	want(t, "session, before the limit", text, "21")
	_, out = page(ListArgs{After: ids[9]})
	want(t, "an empty page", asJSON(t, out), `{"entries":[],"count":0,"applied_limit":25,"next_before":null,"next_after":null}`)
	if _, err := d.DeleteEntry(ctx, Caller{}, d.memory, ids[5]); err != nil {
		t.Fatal(err)
	}
	_, err := d.ListEntries(ctx, Caller{}, ListArgs{MemoryID: d.memory, After: ids[5]})
	wantError(t, "a deleted cursor", err, 400, CodeInvalid)
}
