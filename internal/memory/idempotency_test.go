package memory

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"cairn/internal/memory/rules"
	"cairn/internal/store/storetest"
)

func TestACallUnderOneKeyIsDoneOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, k := t.Context(), Caller{Key: "key 1"}
	add := func(c Caller, text string) (Added, WriteInfo, error) {
		return d.AddEntry(ctx, c, NewEntry{MemoryID: d.memory, RawEntry: text, Metadata: []byte(`{"b":1.0,"a":1}`)})
	}
	first, r, err := add(k, "a")
	if err != nil || r != (WriteInfo{"key 1", false}) {
		t.Fatal(r, err)
	}
	changes := len(storetest.Changes(t, d.store))
	for _, metadata := range []string{`{"b":1.0,"a":1}`, ` { "a": 1e0, "b":1 } `} {
		again, r, err := d.AddEntry(ctx, k, NewEntry{MemoryID: d.memory, RawEntry: "a", Metadata: []byte(metadata)})
		want(t, "again", fmt.Sprint(again, r, err), fmt.Sprint(first, WriteInfo{"key 1", true}, nil))
	}
	want(t, "changes", len(storetest.Changes(t, d.store)), changes)
	_, _, err = add(k, "b")
	wantError(t, "another body", err, 409, CodeMismatch)
	other, _, err := d.AddEntry(ctx, k, NewEntry{MemoryID: d.newMemory(Caller{}, d.vault, "o"), RawEntry: "a"})
	if err != nil || other.EntryID == first.EntryID {
		t.Errorf("in another memory: %v %v", other, err)
	}
	if _, r, err = d.UpdateContext(ctx, k, NewDocument{d.memory, rules.NewID(), "a"}); err != nil || r.Replayed {
		t.Errorf("on another path: %v %v", r, err)
	}
	d.clock.Move(24*time.Hour + 1)
	d.add("later") // this deletes old results
	again, r, err := add(k, "a")
	want(t, "by the row, after a day", fmt.Sprint(again, r.Replayed, err), fmt.Sprint(first, true, nil))
	_, _, err = add(k, "b")
	wantError(t, "another body, after a day", err, 409, CodeMismatch)
	if _, err := d.DeleteEntry(ctx, Caller{}, d.memory, first.EntryID); err != nil {
		t.Fatal(err)
	}
	_, _, err = add(k, "a")
	wantError(t, "a late retry of what was deleted", err, 404, CodeNotFound)
	want(t, "list", d.texts(), "later")
	_, r, err = add(Caller{}, "without")
	want(t, "a key made here", len(r.Key) == 36 && err == nil, true)
}

func TestRefusalsAreReplayedAsWell(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k := Caller{Key: "k"}
	_, r, err := d.CreateVault(t.Context(), k, NewVault{Title: "v"})
	wantError(t, "taken", err, 409, CodeExists, `"existing_id":"`+d.vault)
	want(t, "not a replay", r.Replayed, false)
	if _, err := d.DeleteMemory(t.Context(), Caller{}, d.memory); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DeleteVault(t.Context(), Caller{}, d.vault); err != nil {
		t.Fatal(err)
	}
	_, r, err = d.CreateVault(t.Context(), k, NewVault{Title: "v"})
	wantError(t, "still taken under this key", err, 409, CodeExists, `"existing_id":"`+d.vault)
	want(t, "a replay", r.Replayed, true)
	d.vault = d.newVault(Caller{}, "v")
	// Errors of levels and of full queues are not stored.
	_, _, err = d.CreateVault(t.Context(), Caller{Key: "l", Level: Read}, NewVault{Title: "w"})
	wantError(t, "level", err, 403, CodeForbidden)
	if _, r, err = d.CreateVault(t.Context(), Caller{Key: "l"}, NewVault{Title: "w"}); err != nil || r.Replayed {
		t.Errorf("with the level: %v %v", r, err)
	}
}

func TestTwinsAreOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var wg sync.WaitGroup
	ids := make(chan string, 16)
	for i := range 16 {
		wg.Go(func() {
			book := d.Service
			if i%2 == 1 { // as in another process
				book = New(d.store, Config{Settings: Defaults()})
				defer func() {
					if err := book.Stop(context.Background()); err != nil {
						t.Error(err)
					}
				}()
			}
			out, _, err := book.AddEntry(t.Context(), Caller{Key: "twin"}, NewEntry{MemoryID: d.memory, RawEntry: "x"})
			if err != nil {
				t.Error(err)
			}
			ids <- out.EntryID
		})
	}
	wg.Wait()
	first := <-ids
	for range 15 {
		want(t, "id", <-ids, first)
	}
	want(t, "list", d.texts(), "x")
}
