package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestJoiningSendsWhatWasThereBeforeAndLeavingKeepsIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	old := d.add("old")
	gone := d.add("gone")
	if _, err := d.DeleteEntry(t.Context(), Caller{}, d.memory, gone.EntryID); err != nil {
		t.Fatal(err)
	}
	d.joined()
	h := newHub(d)
	d.drain(h)
	want(t, "items", len(h.items[d.memory]), 2)
	want(t, "the id stays", must(d.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: d.memory}))(t).Entries[0].EntryID, old.EntryID)
	d.add("new")
	err := d.Leave(t.Context(), d.me(), false)
	wantError(t, "leave", err, 409, CodeInflight, `"pending":1`)
	if err := d.Leave(t.Context(), d.me(), true); err != nil {
		t.Fatal(err)
	}
	want(t, "list", d.texts(), "new old")
	want(t, "inflight", d.pending(), "")
	want(t, "status of the next", d.add("after").Status, Committed)
	d.joined()
	d.drain(newHub(d)) // another hub gets everything
	want(t, "list", d.texts(), "after new old")
	if err := d.Join(t.Context(), d.me(), "http://another", rules.NewID(), true); err == nil {
		t.Error("joined twice")
	}
}

func TestJoiningWithoutUploadSendsWhatIsNewAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add("old")
	if err := d.Join(t.Context(), d.me(), "http://hub", rules.NewID(), false); err != nil {
		t.Fatal(err)
	}
	d.add("new")
	d.add("newer")
	h := newHub(d)
	d.drain(h)
	want(t, "the memory comes first, then what is new", len(h.items[d.memory]), 3)
	want(t, "kind", h.items[d.memory][0].Kind, KindMemory)
	for _, i := range h.items[d.memory] {
		wantNot(t, "what is sent", string(i.Doc), `"old"`)
	}
	list := must(d.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: d.memory}))(t).Entries
	want(t, "list", d.texts(), "newer new old")
	summary := "s"
	if _, _, err := d.PatchEntry(t.Context(), Caller{}, d.memory, list[2].EntryID, Patch{Summary: &summary}); err != nil {
		t.Fatal(err)
	}
	d.drain(h)
	want(t, "a patch of what the hub never got stays here", len(h.items[d.memory]), 3)
	want(t, "such an entry is not taken by retention", must(d.Purge(t.Context(), true))(t).Entries, 2)
	if _, err := d.DeleteEntry(t.Context(), Caller{}, d.memory, list[2].EntryID); err != nil { // no hub confirms it
		t.Fatal(err)
	}
	want(t, "list", d.texts(), "")
}

func TestAMemoryAndAVaultGoOnceTheHubHasConfirmed(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	h := newHub(d)
	d.add("a")
	c := Caller{ProjectID: "shop"}
	own, _, err := d.AddEntry(t.Context(), c, NewEntry{MemoryID: DefaultMemory, RawEntry: "b"})
	if err != nil {
		t.Fatal(err)
	}
	d.drain(h)
	run := func(what string, fn func() error) {
		done := make(chan error, 1)
		go func() { done <- fn() }()
		for {
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
				return
			default:
				d.drain(h)
			}
		}
	}
	run("memory", func() error { _, err := d.DeleteMemory(context.Background(), Caller{}, d.memory); return err })
	run("vault", func() error { _, err := d.DeleteVault(context.Background(), Caller{}, d.vault); return err })
	memory := must(d.Memory(t.Context(), c, DefaultMemory))(t).MemoryID
	old := h.items[memory]
	run("own memory", func() error { _, err := d.DeleteMemory(context.Background(), c, DefaultMemory); return err })
	_, err = d.Vault(t.Context(), Caller{}, d.vault)
	wantError(t, "the vault", err, 404, CodeNotFound)
	want(t, "told", h.items[d.vault][len(h.items[d.vault])-1].Op+h.items[d.memory][len(h.items[d.memory])-1].Op, "deletedelete")
	if _, _, err := d.AddEntry(t.Context(), c, NewEntry{MemoryID: DefaultMemory, RawEntry: "new"}); err != nil {
		t.Fatal(err)
	}
	again := must(d.Memory(t.Context(), c, DefaultMemory))(t).MemoryID
	if again == memory {
		t.Error("what was deleted has its id back")
	}
	d.pull(h, memory) // the delete
	h.items[memory] = old
	d.pull(h, memory) // the earlier items
	far := d.with(again)
	want(t, "made again, it holds nothing of before", far.texts()+far.pending(), "new")
	_, err = d.GetEntry(t.Context(), Caller{}, memory, own.LocalID)
	wantError(t, "no id", err, 400, CodeInvalid)
}

func TestAStoreThatWasGivenAnotherNameStillSendsWhatItHolds(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	d.add("a")
	if err := d.store.Close(); err != nil { // a process caches its store's name
		t.Fatal(err)
	}
	s := storetest.Open(t, store.Config{Path: d.store.Path(), Clock: d.clock.Now})
	d.Service = New(s, d.config)
	d.sql(`UPDATE store_meta SET value = 'another' WHERE name = 'device'`)
	d.add("b")
	d.drain(newHub(d))
	want(t, "list", d.texts(), "b a")
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRetentionTakesWhatTheHubHasAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(c *Config) { c.Settings.PurgeChunk = 2 })
	d.add("local")
	want(t, "without a hub", must(d.Purge(t.Context(), true))(t), Purged{})
	d.joined()
	h := newHub(d)
	for i := range 5 {
		d.add(fmt.Sprint("e", i))
		if _, _, err := d.UpdateContext(t.Context(), Caller{}, NewDocument{d.memory, rules.NewID(), fmt.Sprint("c", i)}); err != nil {
			t.Fatal(err)
		}
	}
	d.drain(h)
	d.clock.Move(29 * 24 * time.Hour)
	want(t, "young", must(d.Purge(t.Context(), false))(t), Purged{})
	d.add("pending")
	want(t, "while something is to be sent", must(d.Purge(t.Context(), true))(t).Entries, 0)
	d.drain(h)
	d.clock.Move(2 * 24 * time.Hour)
	want(t, "old", must(d.Purge(t.Context(), false))(t).Entries, 6)
	want(t, "list", d.texts(), "pending")
	want(t, "context", must(d.GetContext(t.Context(), Caller{}, d.memory))(t).Markdown, "c4")
	page := must(d.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: d.memory}))(t)
	var purged Time
	d.query(&purged, `SELECT purged_before_ns FROM memory_streams WHERE stream = ?`, d.memory)
	want(t, "it is told", purged > 0 && purged <= *page.NextBefore, true)
	_, err := d.GetInflight(t.Context(), Caller{}, d.memory, "pending-2")
	wantError(t, "a purged localId", err, 404, CodeNotFound)
	want(t, "the number is not given again", d.add("later").LocalID, "pending-8")
}
