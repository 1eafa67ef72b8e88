package vaults_test

import (
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/memorytest"
)

func TestVaultsAndMemoriesAreDeletedWhenTheyMay(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	ctx := t.Context()
	_, err := d.DeleteVault(ctx, memory.Caller{}, d.VaultID)
	memorytest.WantError(t, "not empty", err, 409, memory.CodeVaultNotEmpty)
	e := d.Add("secret words")
	for range 2 {
		if _, err := d.DeleteEntry(ctx, memory.Caller{}, d.MemoryID, e.LocalID); err != nil {
			t.Fatal(err)
		}
		if _, err := d.DeleteEntry(ctx, memory.Caller{}, d.MemoryID, e.EntryID); err != nil {
			t.Fatal(err)
		}
	}
	d.Add("other words")
	if _, err := d.DeleteMemory(ctx, memory.Caller{}, d.MemoryID); err != nil {
		t.Fatal(err)
	}
	_, err = d.DeleteMemory(ctx, memory.Caller{}, d.MemoryID)
	memorytest.WantError(t, "gone", err, 404, memory.CodeNotFound)
	var left int
	d.Query(&left, `SELECT count(*) FROM changes WHERE instr(doc, 'words')`)
	memorytest.Want(t, "words in the log", left, 0)
	if _, err = d.DeleteVault(ctx, memory.Caller{}, d.VaultID); err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "vaults", memorytest.Must(d.Vaults(ctx, memory.Caller{}))(t).Count, 0)
}
