package memory_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/vaults"
	"cairn/internal/store/storetest"
)

func TestACallUnderOneKeyIsDoneOnce(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	ctx, k := t.Context(), memory.Caller{Key: "key 1"}
	add := func(c memory.Caller, text string) (entries.Added, memory.WriteInfo, error) {
		return d.AddEntry(ctx, c, contents.NewEntry{MemoryID: d.MemoryID, RawEntry: text, Metadata: []byte(`{"b":1.0,"a":1}`)})
	}
	first, r, err := add(k, "a")
	if err != nil || r != (memory.WriteInfo{Key: "key 1", Replayed: false}) {
		t.Fatal(r, err)
	}
	changes := len(storetest.Changes(t, d.Store))
	for _, metadata := range []string{`{"b":1.0,"a":1}`, ` { "a": 1e0, "b":1 } `} {
		again, r, err := d.AddEntry(ctx, k, contents.NewEntry{MemoryID: d.MemoryID, RawEntry: "a", Metadata: []byte(metadata)})
		memorytest.Want(t, "again", fmt.Sprint(again, r, err), fmt.Sprint(first, memory.WriteInfo{Key: "key 1", Replayed: true}, nil))
	}
	memorytest.Want(t, "changes", len(storetest.Changes(t, d.Store)), changes)
	_, _, err = add(k, "b")
	memorytest.WantError(t, "another body", err, 409, memory.CodeMismatch)
	other, _, err := d.AddEntry(ctx, k, contents.NewEntry{MemoryID: d.NewMemory(memory.Caller{}, d.VaultID, "o"), RawEntry: "a"})
	if err != nil || other.EntryID == first.EntryID {
		t.Errorf("in another memory: %v %v", other, err)
	}
	if _, r, err = d.UpdateContext(ctx, k, entries.NewDocument{MemoryID: d.MemoryID, SessionID: rules.NewID(), Markdown: "a"}); err != nil || r.Replayed {
		t.Errorf("on another path: %v %v", r, err)
	}
	d.Clock.Move(24*time.Hour + 1)
	d.Add("later") // this deletes old results
	again, r, err := add(k, "a")
	memorytest.Want(t, "by the row, after a day", fmt.Sprint(again, r.Replayed, err), fmt.Sprint(first, true, nil))
	_, _, err = add(k, "b")
	memorytest.WantError(t, "another body, after a day", err, 409, memory.CodeMismatch)
	if _, err := d.DeleteEntry(ctx, memory.Caller{}, d.MemoryID, first.EntryID); err != nil {
		t.Fatal(err)
	}
	_, _, err = add(k, "a")
	memorytest.WantError(t, "a late retry of what was deleted", err, 404, memory.CodeNotFound)
	memorytest.Want(t, "list", d.Texts(), "later")
	_, r, err = add(memory.Caller{}, "without")
	memorytest.Want(t, "a key made here", len(r.Key) == 36 && err == nil, true)
}

func TestRefusalsAreReplayedAsWell(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	k := memory.Caller{Key: "k"}
	_, r, err := d.CreateVault(t.Context(), k, vaults.NewVault{Title: "v"})
	memorytest.WantError(t, "taken", err, 409, memory.CodeExists, `"existing_id":"`+d.VaultID)
	memorytest.Want(t, "not a replay", r.Replayed, false)
	if _, err := d.DeleteMemory(t.Context(), memory.Caller{}, d.MemoryID); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DeleteVault(t.Context(), memory.Caller{}, d.VaultID); err != nil {
		t.Fatal(err)
	}
	_, r, err = d.CreateVault(t.Context(), k, vaults.NewVault{Title: "v"})
	memorytest.WantError(t, "still taken under this key", err, 409, memory.CodeExists, `"existing_id":"`+d.VaultID)
	memorytest.Want(t, "a replay", r.Replayed, true)
	d.VaultID = d.NewVault(memory.Caller{}, "v")
	// Errors of levels and of full queues are not stored.
	_, _, err = d.CreateVault(t.Context(), memory.Caller{Key: "l", Level: memory.Read}, vaults.NewVault{Title: "w"})
	memorytest.WantError(t, "level", err, 403, memory.CodeForbidden)
	if _, r, err = d.CreateVault(t.Context(), memory.Caller{Key: "l"}, vaults.NewVault{Title: "w"}); err != nil || r.Replayed {
		t.Errorf("with the level: %v %v", r, err)
	}
}

func TestTwinsAreOne(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	var wg sync.WaitGroup
	ids := make(chan string, 16)
	for i := range 16 {
		wg.Go(func() {
			book := d.Service
			if i%2 == 1 { // as in another process
				book = memories.New(d.Store, memory.Config{Settings: memory.Defaults()})
				defer func() {
					if err := book.Stop(context.Background()); err != nil {
						t.Error(err)
					}
				}()
			}
			out, _, err := book.AddEntry(t.Context(), memory.Caller{Key: "twin"}, contents.NewEntry{MemoryID: d.MemoryID, RawEntry: "x"})
			if err != nil {
				t.Error(err)
			}
			ids <- out.EntryID
		})
	}
	wg.Wait()
	first := <-ids
	for range 15 {
		memorytest.Want(t, "id", <-ids, first)
	}
	memorytest.Want(t, "list", d.Texts(), "x")
}
