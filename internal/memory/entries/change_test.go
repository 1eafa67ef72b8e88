package entries_test

import (
	"fmt"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
)

func TestACorrectionIsForOnceAndEndsPatches(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	ctx := t.Context()
	a, b := d.Add("a"), d.Add("b")
	_, _, err := d.CorrectEntry(ctx, memory.Caller{}, d.MemoryID, a.EntryID, entries.Correction{CorrectedEntryID: a.EntryID, Reason: "r"})
	memorytest.WantError(t, "itself", err, 400, memory.CodeInvalid)
	_, _, err = d.CorrectEntry(ctx, memory.Caller{}, d.MemoryID, a.EntryID, entries.Correction{CorrectedEntryID: rules.NewID(), Reason: "r"})
	memorytest.WantError(t, "no such target", err, 404, memory.CodeNotFound)
	e, _, err := d.CorrectEntry(ctx, memory.Caller{}, d.MemoryID, a.EntryID, entries.Correction{CorrectedEntryID: b.EntryID, Reason: "r"})
	if err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "corrected", e.CorrectedEntryID+e.CorrectionReason+e.CorrectionTime.String(), b.EntryID+"r2023-11-14T22:13:20Z")
	_, _, err = d.CorrectEntry(ctx, memory.Caller{}, d.MemoryID, a.EntryID, entries.Correction{CorrectedEntryID: b.EntryID, Reason: "r"})
	memorytest.WantError(t, "twice", err, 409, memory.CodeImmutable)
	summary := "x"
	_, _, err = d.PatchEntry(ctx, memory.Caller{}, d.MemoryID, a.EntryID, entries.Patch{Summary: &summary})
	memorytest.WantError(t, "a patch of a corrected one", err, 409, memory.CodeImmutable)
	p, _, err := d.PatchEntry(ctx, memory.Caller{}, d.MemoryID, b.EntryID, entries.Patch{Tags: map[string]string{"k": "v"}})
	memorytest.Want(t, "patched", fmt.Sprint(p.Tags, p.Summary, err), "map[k:v]<nil>")
	p, _, err = d.PatchEntry(ctx, memory.Caller{}, d.MemoryID, b.EntryID, entries.Patch{Tags: map[string]string{}, Summary: &summary})
	memorytest.Want(t, "tags are replaced", fmt.Sprint(p.Tags, p.Summary, err), "map[]x<nil>")
}
