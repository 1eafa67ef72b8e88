package replication_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/replication"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestJoiningSendsWhatWasThereBeforeAndLeavingKeepsIt(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	old := d.Add("old")
	gone := d.Add("gone")
	if _, err := d.DeleteEntry(t.Context(), memory.Caller{}, d.MemoryID, gone.EntryID); err != nil {
		t.Fatal(err)
	}
	d.Joined()
	h := memorytest.NewHub(d)
	d.Drain(h)
	memorytest.Want(t, "items", len(h.Items[d.MemoryID]), 2)
	memorytest.Want(t, "the id stays", memorytest.Must(d.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID}))(t).Entries[0].EntryID, old.EntryID)
	d.Add("new")
	err := d.Leave(t.Context(), d.Me(), false)
	memorytest.WantError(t, "leave", err, 409, memory.CodeInflight, `"pending":1`)
	if err := d.Leave(t.Context(), d.Me(), true); err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "list", d.Texts(), "new old")
	memorytest.Want(t, "inflight", d.Pending(), "")
	memorytest.Want(t, "status of the next", d.Add("after").Status, entries.Committed)
	d.Joined()
	d.Drain(memorytest.NewHub(d)) // another hub gets everything
	memorytest.Want(t, "list", d.Texts(), "after new old")
	if err := d.Join(t.Context(), d.Me(), "http://another", rules.NewID(), true); err == nil {
		t.Error("joined twice")
	}
}

func TestJoiningWithoutUploadSendsWhatIsNewAlone(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	d.Add("old")
	if err := d.Join(t.Context(), d.Me(), "http://hub", rules.NewID(), false); err != nil {
		t.Fatal(err)
	}
	d.Add("new")
	d.Add("newer")
	h := memorytest.NewHub(d)
	d.Drain(h)
	memorytest.Want(t, "the memory comes first, then what is new", len(h.Items[d.MemoryID]), 3)
	memorytest.Want(t, "kind", h.Items[d.MemoryID][0].Kind, memory.KindMemory)
	for _, i := range h.Items[d.MemoryID] {
		memorytest.WantNot(t, "what is sent", string(i.Doc), `"old"`)
	}
	list := memorytest.Must(d.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID}))(t).Entries
	memorytest.Want(t, "list", d.Texts(), "newer new old")
	summary := "s"
	if _, _, err := d.PatchEntry(t.Context(), memory.Caller{}, d.MemoryID, list[2].EntryID, entries.Patch{Summary: &summary}); err != nil {
		t.Fatal(err)
	}
	d.Drain(h)
	memorytest.Want(t, "a patch of what the hub never got stays here", len(h.Items[d.MemoryID]), 3)
	memorytest.Want(t, "such an entry is not taken by retention", memorytest.Must(d.Purge(t.Context(), true))(t).Entries, 2)
	if _, err := d.DeleteEntry(t.Context(), memory.Caller{}, d.MemoryID, list[2].EntryID); err != nil { // no hub confirms it
		t.Fatal(err)
	}
	memorytest.Want(t, "list", d.Texts(), "")
}

func TestAMemoryAndAVaultGoOnceTheHubHasConfirmed(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(d)
	d.Add("a")
	c := memory.Caller{ProjectID: "shop"}
	own, _, err := d.AddEntry(t.Context(), c, contents.NewEntry{MemoryID: memory.DefaultMemory, RawEntry: "b"})
	if err != nil {
		t.Fatal(err)
	}
	d.Drain(h)
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
				d.Drain(h)
			}
		}
	}
	run("memory", func() error { _, err := d.DeleteMemory(context.Background(), memory.Caller{}, d.MemoryID); return err })
	run("vault", func() error { _, err := d.DeleteVault(context.Background(), memory.Caller{}, d.VaultID); return err })
	memoryID := memorytest.Must(d.Memory(t.Context(), c, memory.DefaultMemory))(t).MemoryID
	old := h.Items[memoryID]
	run("own memory", func() error { _, err := d.DeleteMemory(context.Background(), c, memory.DefaultMemory); return err })
	_, err = d.Vault(t.Context(), memory.Caller{}, d.VaultID)
	memorytest.WantError(t, "the vault", err, 404, memory.CodeNotFound)
	memorytest.Want(t, "told", h.Items[d.VaultID][len(h.Items[d.VaultID])-1].Op+h.Items[d.MemoryID][len(h.Items[d.MemoryID])-1].Op, "deletedelete")
	if _, _, err := d.AddEntry(t.Context(), c, contents.NewEntry{MemoryID: memory.DefaultMemory, RawEntry: "new"}); err != nil {
		t.Fatal(err)
	}
	again := memorytest.Must(d.Memory(t.Context(), c, memory.DefaultMemory))(t).MemoryID
	if again == memoryID {
		t.Error("what was deleted has its id back")
	}
	d.Pull(h, memoryID) // the delete
	h.Items[memoryID] = old
	d.Pull(h, memoryID) // the earlier items
	far := d.With(again)
	memorytest.Want(t, "made again, it holds nothing of before", far.Texts()+far.Pending(), "new")
	_, err = d.GetEntry(t.Context(), memory.Caller{}, memoryID, own.LocalID)
	memorytest.WantError(t, "no id", err, 400, memory.CodeInvalid)
}

func TestAStoreThatWasGivenAnotherNameStillSendsWhatItHolds(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	d.Add("a")
	if err := d.Store.Close(); err != nil { // a process caches its store's name
		t.Fatal(err)
	}
	s := storetest.Open(t, store.Config{Path: d.Store.Path(), Clock: d.Clock.Now})
	d.Service = memories.New(s, d.Config)
	d.Exec(`UPDATE store_meta SET value = 'another' WHERE name = 'device'`)
	d.Add("b")
	d.Drain(memorytest.NewHub(d))
	memorytest.Want(t, "list", d.Texts(), "b a")
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRetentionTakesWhatTheHubHasAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t, func(c *memory.Config) { c.Settings.PurgeChunk = 2 })
	d.Add("local")
	memorytest.Want(t, "without a hub", memorytest.Must(d.Purge(t.Context(), true))(t), replication.Purged{})
	d.Joined()
	h := memorytest.NewHub(d)
	for i := range 5 {
		d.Add(fmt.Sprint("e", i))
		if _, _, err := d.UpdateContext(t.Context(), memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: rules.NewID(), Markdown: fmt.Sprint("c", i)}); err != nil {
			t.Fatal(err)
		}
	}
	d.Drain(h)
	d.Clock.Move(29 * 24 * time.Hour)
	memorytest.Want(t, "young", memorytest.Must(d.Purge(t.Context(), false))(t), replication.Purged{})
	d.Add("pending")
	memorytest.Want(t, "while something is to be sent", memorytest.Must(d.Purge(t.Context(), true))(t).Entries, 0)
	d.Drain(h)
	d.Clock.Move(2 * 24 * time.Hour)
	memorytest.Want(t, "old", memorytest.Must(d.Purge(t.Context(), false))(t).Entries, 6)
	memorytest.Want(t, "list", d.Texts(), "pending")
	memorytest.Want(t, "context", memorytest.Must(d.GetContext(t.Context(), memory.Caller{}, d.MemoryID))(t).Markdown, "c4")
	page := memorytest.Must(d.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID}))(t)
	var purged memory.Time
	d.Query(&purged, `SELECT purged_before_ns FROM memory_streams WHERE stream = ?`, d.MemoryID)
	memorytest.Want(t, "it is told", purged > 0 && purged <= *page.NextBefore, true)
	_, err := d.GetInflight(t.Context(), memory.Caller{}, d.MemoryID, "pending-2")
	memorytest.WantError(t, "a purged localId", err, 404, memory.CodeNotFound)
	memorytest.Want(t, "the number is not given again", d.Add("later").LocalID, "pending-8")
}
