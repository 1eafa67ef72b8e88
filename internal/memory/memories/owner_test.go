package memories_test

import (
	"fmt"
	"strings"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/vaults"
)

// TestAForeignObjectAnswersAsAMissingOne tests P9: for each operation the error for another
// user's object equals that for a missing one, byte for byte.
func TestAForeignObjectAnswersAsAMissingOne(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	ctx := t.Context()
	stranger := memory.Caller{User: memorytest.Must(d.AddUser(ctx))(t).UserID, Level: memory.Read}
	admin := memory.Caller{User: stranger.User}
	e := d.Add("mine")
	if _, _, err := d.UpdateContext(ctx, memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: rules.NewID(), Markdown: "mine"}); err != nil {
		t.Fatal(err)
	}
	own := d.NewMemory(admin, d.NewVault(admin, "x"), "x")
	summary := "s"
	for what, call := range map[string]func(vault, memoryID, entry string, c memory.Caller) error{
		"vault":         func(v, _, _ string, c memory.Caller) error { _, err := d.Vault(ctx, c, v); return err },
		"memories":      func(v, _, _ string, c memory.Caller) error { _, err := d.Memories(ctx, c, v); return err },
		"delete vault":  func(v, _, _ string, c memory.Caller) error { _, err := d.DeleteVault(ctx, c, v); return err },
		"memory":        func(_, m, _ string, c memory.Caller) error { _, err := d.Memory(ctx, c, m); return err },
		"delete memory": func(_, m, _ string, c memory.Caller) error { _, err := d.DeleteMemory(ctx, c, m); return err },
		"create memory": func(v, _, _ string, c memory.Caller) error {
			_, _, err := d.CreateMemory(ctx, c, vaults.NewMemory{VaultID: v, Title: "m"})
			return err
		},
		"add": func(_, m, _ string, c memory.Caller) error {
			_, _, err := d.AddEntry(ctx, c, contents.NewEntry{MemoryID: m, RawEntry: "x"})
			return err
		},
		"list": func(_, m, _ string, c memory.Caller) error {
			_, err := d.ListEntries(ctx, c, entries.ListArgs{MemoryID: m})
			return err
		},
		"get":     func(_, m, e string, c memory.Caller) error { _, err := d.GetEntry(ctx, c, m, e); return err },
		"get own": func(_, _, e string, c memory.Caller) error { _, err := d.GetEntry(ctx, c, own, e); return err },
		"patch own": func(_, _, e string, c memory.Caller) error {
			_, _, err := d.PatchEntry(ctx, admin, own, e, entries.Patch{Summary: &summary})
			return err
		},
		"correct": func(_, m, e string, c memory.Caller) error {
			_, _, err := d.CorrectEntry(ctx, c, m, e, entries.Correction{CorrectedEntryID: rules.NewID(), Reason: "r"})
			return err
		},
		"delete":     func(_, m, e string, c memory.Caller) error { _, err := d.DeleteEntry(ctx, c, m, e); return err },
		"delete own": func(_, _, e string, c memory.Caller) error { _, err := d.DeleteEntry(ctx, admin, own, e); return err },
		"inflight": func(_, m, _ string, c memory.Caller) error {
			_, err := d.GetInflight(ctx, c, m, "pending-1")
			return err
		},
		"get context": func(_, m, _ string, c memory.Caller) error { _, err := d.GetContext(ctx, c, m); return err },
		"update context": func(_, m, _ string, c memory.Caller) error {
			_, _, err := d.UpdateContext(ctx, c, entries.NewDocument{MemoryID: m, SessionID: rules.NewID(), Markdown: "x"})
			return err
		},
		"await":  func(_, m, _ string, c memory.Caller) error { return d.AwaitConsistency(ctx, c, m, 0) },
		"export": func(_, m, _ string, c memory.Caller) error { _, err := d.Export(ctx, c, m, "", 0); return err },
		"import": func(_, m, _ string, c memory.Caller) error {
			_, err := d.Import(ctx, c, m, strings.NewReader("{}"), nil)
			return err
		},
	} {
		foreign := call(d.VaultID, d.MemoryID, e.EntryID, stranger)
		missing := call(rules.NewID(), rules.NewID(), rules.NewID(), stranger)
		same := fmt.Sprint(foreign) == fmt.Sprint(missing) && (foreign == nil || memory.Status(foreign) == memory.Status(missing) && memory.Status(foreign) == 404)
		if !same {
			t.Errorf("%s: foreign %v (%d), missing %v (%d)", what, foreign, memory.Status(foreign), missing, memory.Status(missing))
		}
	}
	memorytest.Want(t, "list", d.Texts(), "mine")
	memorytest.Want(t, "vaults of the stranger", memorytest.Must(d.Vaults(ctx, stranger))(t).Count, 1)
	_, err := d.DeleteMemory(ctx, stranger, own)
	memorytest.WantError(t, "an own object, level too low", err, 403, memory.CodeForbidden)
}
