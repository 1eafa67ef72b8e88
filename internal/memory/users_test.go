package memory_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

func TestUsersAreMadeAtFirstUse(t *testing.T) {
	t.Parallel()
	b := memories.New(nil, memory.Config{Settings: memory.Defaults()})
	memorytest.Want(t, "without a store nothing is found", memorytest.AsJSON(t, memorytest.Must(b.Vaults(t.Context(), memory.Caller{}))(t)), `{"vaults":[],"count":0}`)
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	d := memorytest.NewDesk(t)
	me := d.Me()
	memorytest.Want(t, "again", d.Me(), me)
	memorytest.Want(t, "a UUIDv4", me[14], byte('4'))
	_, err := d.Whoami(t.Context(), memory.Caller{User: rules.NewID()})
	memorytest.WantError(t, "nobody", err, 404, memory.CodeNotFound)
}

func TestAProjectsOwnMemoryIsMadeByItsFirstWriteUnderDerivedIDs(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	ctx := t.Context()
	c := memory.Caller{Place: memorytest.PlaceIn(t, "shop")}
	d.Clock.Move(time.Second)
	for what, err := range map[string]error{
		"list":  memorytest.Second(d.ListEntries(ctx, c, entries.ListArgs{MemoryID: memory.DefaultMemory})),
		"await": d.AwaitConsistency(ctx, c, memory.DefaultMemory, time.Second),
		"read":  memorytest.Second(d.ListInflight(ctx, c, memory.DefaultMemory, 0)),
	} {
		if err != nil {
			t.Errorf("%s before the first write: %v", what, err)
		}
	}
	_, err := d.GetContext(ctx, c, memory.DefaultMemory)
	memorytest.WantError(t, "context before the first write", err, 404, memory.CodeNotFound, "context not found")
	_, _, err = d.AddEntry(ctx, c, contents.NewEntry{MemoryID: memory.DefaultMemory, RawEntry: " "})
	memorytest.WantError(t, "a refused write", err, 400, memory.CodeInvalid)
	memorytest.Want(t, "it made nothing", memorytest.Must(d.Vaults(ctx, c))(t).Count, 1)
	if _, _, err := d.AddEntry(ctx, c, contents.NewEntry{MemoryID: memory.DefaultMemory, RawEntry: "x"}); err != nil {
		t.Fatal(err)
	}
	v := memorytest.Must(d.Vaults(ctx, c))(t).Vaults[1]
	m := memorytest.Must(d.Memories(ctx, c, v.VaultID))(t).Memories[0]
	var uid string
	d.Query(&uid, `SELECT uid FROM projects WHERE id = 'shop'`)
	memorytest.Want(t, "vault", v.Title+" "+v.VaultID, "shop-"+uid+" "+rules.DerivedID(d.Me(), "vault:shop-"+uid))
	memorytest.Want(t, "memory", m.Title+" "+m.MemoryType+" "+m.MemoryID, "main code "+rules.DerivedID(v.VaultID, "memory:main"))
	memorytest.Want(t, "version 5", m.MemoryID[14], byte('5'))
	memorytest.Want(t, "by name", memorytest.Must(d.Memory(ctx, memory.Caller{ProjectID: "shop"}, memory.DefaultMemory))(t).MemoryID, m.MemoryID)
	for _, c := range storetestChanges(t, d) {
		if c.Kind == memory.KindEntry {
			memorytest.Want(t, "project of the change", c.Project, "shop")
		}
	}
	if _, err := d.DeleteMemory(ctx, c, memory.DefaultMemory); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.AddEntry(ctx, c, contents.NewEntry{MemoryID: memory.DefaultMemory, RawEntry: "new"}); err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "made again", memorytest.Must(d.ListEntries(ctx, c, entries.ListArgs{MemoryID: memory.DefaultMemory}))(t).Entries[0].RawEntry, "new")
}

func storetestChanges(t *testing.T, d *memorytest.Desk) (out []store.Change) {
	t.Helper()
	err := d.Store.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = tx.Changes(ctx, 0, 1000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAProjectsIDBecomesATitle(t *testing.T) {
	t.Parallel()
	for id, title := range map[string]string{
		"shop":                  "shop",
		strings.Repeat("a", 50): strings.Repeat("a", 50),
		"my.shop_1":             "my-shop-1-" + fmt.Sprintf("%.4x", sha256.Sum256([]byte("my.shop_1"))),
		strings.Repeat("b", 64): strings.Repeat("b", 41) + "-" + fmt.Sprintf("%.4x", sha256.Sum256([]byte(strings.Repeat("b", 64)))),
	} {
		memorytest.Want(t, id, memory.TitleOf(id), title)
		if err := rules.CheckTitle(memory.TitleOf(id)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	memorytest.Want(t, "UUIDv5", rules.DerivedID("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.example.com"), "2ed6657d-e927-568b-95e1-2665a8aea6a2")
}
