package cairn

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"cairn/internal/exchange"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/items"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/retrieval"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/vaults"

	"pgregory.net/rapid"
)

// memories calls do with the memory service of a home.
func (h home) memories(c memory.Caller, do func(context.Context, *memories.Service, memory.Caller) error) error {
	return h.Memories().Write(context.Background(), c, do)
}

// entriesOf returns all entries of a memory, newest first.
func entriesOf(ctx context.Context, b *memories.Service, c memory.Caller, m string) ([]contents.Entry, error) {
	list, err := b.ListEntries(ctx, c, entries.ListArgs{MemoryID: m, Limit: 50})
	return list.Entries, err
}

// memoryStep performs one action on the memories. The action may be refused.
func (x *history) memoryStep() {
	c := memory.Caller{ProjectID: pick(x.T, "project", "shop", "shop", "works")}
	x.fine(x.memories(c, func(ctx context.Context, b *memories.Service, c memory.Caller) error {
		m, err := x.someMemory(ctx, b, c)
		if err != nil {
			return err
		}
		var entry contents.Entry
		if all, err := entriesOf(ctx, b, c, m); err == nil && len(all) > 0 {
			entry = rapid.SampledFrom(all).Draw(x.T, "entry")
		}
		switch rapid.IntRange(0, 8).Draw(x.T, "memory") {
		case 0, 1, 2:
			a := contents.NewEntry{MemoryID: m, RawEntry: "kept " + x.body(), Summary: x.words(), Tags: map[string]string{"k<": x.words()}}
			if rapid.Bool().Draw(x.T, "metadata") {
				a.Metadata = []byte(`{"b":1.50,"a":["<x>",null]}`)
			}
			_, _, err = b.AddEntry(ctx, c, a)
		case 3, 4:
			_, _, err = b.UpdateContext(ctx, c, entries.NewDocument{MemoryID: m, SessionID: rules.NewID(), Markdown: "# now\n" + x.words()})
		case 5:
			text := x.words()
			_, _, err = b.PatchEntry(ctx, c, m, entry.EntryID, entries.Patch{Summary: &text})
		case 6:
			_, _, err = b.CorrectEntry(ctx, c, m, entry.EntryID, entries.Correction{CorrectedEntryID: entry.EntryID, Reason: "so"})
		case 7:
			_, err = b.DeleteEntry(ctx, c, m, entry.EntryID)
		default:
			if m != memory.DefaultMemory && rapid.Bool().Draw(x.T, "whole") {
				_, err = b.DeleteMemory(ctx, c, m)
			}
		}
		return err
	}), fault.NotFound, fault.Invalid, fault.Conflict)
}

// someMemory returns the default memory, or a memory in a vault of its own or of the
// project.
func (x *history) someMemory(ctx context.Context, b *memories.Service, c memory.Caller) (string, error) {
	kind := pick(x.T, "which", "default", "default", "own vault", "project's vault")
	own, err := b.Vaults(ctx, c)
	if err != nil || kind == "default" {
		return memory.DefaultMemory, err
	}
	var v memory.Vault
	for _, other := range own.Vaults {
		if (other.Title == "library") == (kind == "own vault") {
			v = other
		}
	}
	if v.VaultID == "" {
		if v, _, err = b.CreateVault(ctx, c, vaults.NewVault{Title: "library", Description: x.words()}); err != nil {
			return "", err
		}
	}
	list, err := b.Memories(ctx, c, v.VaultID)
	if err == nil && len(list.Memories) > 0 {
		return list.Memories[len(list.Memories)-1].MemoryID, nil
	}
	made, _, err := b.CreateMemory(ctx, c, vaults.NewMemory{VaultID: v.VaultID, Title: fmt.Sprint("m", len(list.Memories))})
	return made.MemoryID, err
}

// memoryAnswers passes results about memories to keep.
func (h home) memoryAnswers(keep func(any, error)) {
	for _, p := range []string{"shop", "works"} {
		err := h.Memories().Read(context.Background(), memory.Caller{ProjectID: p}, func(ctx context.Context, b *memories.Service, c memory.Caller) error {
			own, err := b.Vaults(ctx, c)
			which := []string{memory.DefaultMemory}
			for _, v := range own.Vaults {
				list, merr := b.Memories(ctx, c, v.VaultID)
				keep([]any{v.Title, v.Description, list.Count}, merr)
				for _, m := range list.Memories {
					which = append(which, m.MemoryID)
				}
			}
			for _, m := range which {
				entries, eerr := entriesOf(ctx, b, c, m)
				for i := range entries {
					entries[i].ActorID = "" // specific to the device
				}
				keep(entries, eerr)
				d, derr := b.GetContext(ctx, c, m)
				keep(d, derr)
				found, serr := b.Search(ctx, c, retrieval.SearchArgs{MemoryID: m, Query: "ledger kept"})
				for i := range found.Entries {
					found.Entries[i].ActorID, found.Entries[i].Score = "", 0
				}
				keep(found.Entries, serr)
			}
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// altered returns an export in which change was applied to each line.
func altered(t testing.TB, text []byte, change func(line []byte) []byte) []byte {
	t.Helper()
	lines := body(text)
	for i := range lines {
		lines[i] = string(change([]byte(lines[i])))
	}
	return sealed(t, lines...)
}

// note adds an entry to the default memory of a project.
func (h home) note(project, text string) (id string) {
	h.t.Helper()
	err := h.memories(memory.Caller{ProjectID: project}, func(ctx context.Context, b *memories.Service, c memory.Caller) error {
		added, _, err := b.AddEntry(ctx, c, contents.NewEntry{MemoryID: memory.DefaultMemory, RawEntry: text})
		id = added.EntryID
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// notes returns the texts of the default memory of a project, newest first.
func (h home) notes(project string) (texts []string) {
	h.t.Helper()
	err := h.memories(memory.Caller{ProjectID: project}, func(ctx context.Context, b *memories.Service, c memory.Caller) error {
		all, err := entriesOf(ctx, b, c, memory.DefaultMemory)
		for _, e := range all {
			texts = append(texts, e.RawEntry)
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return texts
}

func (h home) unnote(project, id string) {
	h.t.Helper()
	err := h.memories(memory.Caller{ProjectID: project}, func(ctx context.Context, b *memories.Service, c memory.Caller) error {
		_, err := b.DeleteEntry(ctx, c, memory.DefaultMemory, id)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestMemoriesOfTwoStoresComeTogetherInTheProjectsOwnMemory(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	a, _ := busy(t, now)
	b, _ := busy(t, now)
	a.note("shop", "of a")
	now.Add(1)
	b.note("shop", "of b")
	fromA, fromB := a.export("shop"), b.export("shop")
	if got := a.mustRestore(fromB); got.Memories.Entries != 1 || got.Memories.Memories != 0 {
		t.Errorf("%+v", got.Memories)
	}
	b.mustRestore(fromA)
	for name, h := range map[string]home{"a": a, "b": b} {
		if got := strings.Join(h.notes("shop"), ", "); got != "of b, of a" {
			t.Errorf("%s has %q", name, got)
		}
	}
	if got := a.mustRestore(fromB); got.Memories.Entries+got.Memories.Memories != 0 || got.Memories.Known != 1 {
		t.Errorf("again: %+v", got.Memories)
	}
}

func TestWhatWasDeletedFromAMemoryDoesNotComeBackWithAnExport(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	a, _ := busy(t, now)
	gone := a.note("shop", "deleted later")
	a.note("shop", "stays")
	before := a.export("")
	a.unnote("shop", gone)
	if got := a.mustRestore(before); got.Memories.Deleted != 1 || got.Memories.Entries != 0 {
		t.Errorf("%+v", got.Memories)
	}
	other := newHome(t, now, "")
	other.mustRestore(a.export("")) // with the deletion
	other.mustRestore(before)
	for name, h := range map[string]home{"where it was deleted": a, "elsewhere": other} {
		if got := h.notes("shop"); len(got) != 1 || got[0] != "stays" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestASecretInAMemoryOfAnOlderExportIsRedacted(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	a, _ := busy(t, now)
	a.note("shop", "the word is PLACEHOLDER")
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	text := altered(t, a.export(""), func(line []byte) []byte {
		return bytes.ReplaceAll(line, []byte("PLACEHOLDER"), []byte(secret))
	})
	b := newHome(t, now, "")
	if got := b.mustRestore(text); got.Memories.Redacted != 1 {
		t.Errorf("%+v", got.Memories)
	}
	if got := b.notes("shop"); len(got) != 1 || strings.Contains(got[0], secret) {
		t.Errorf("%q", got)
	}
}

func TestHostileLinesOfMemoriesAreRefusedBeforeAnythingIsStored(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source, _ := busy(t, now)
	source.note("shop", "of memory")
	whole := source.export("")
	for name, change := range map[string]struct{ kind, old, new string }{
		"an entry of a memory that is not there": {items.LineEntry, `"memory":"`, `"memory":"00000000-0000-4000-8000-000000000000","x":"`},
		"a field that lines do not have":         {items.LineEntry, `"rawEntry"`, `"sql":"x","rawEntry"`},
		"an entry without text":                  {items.LineEntry, `"of memory"`, `" "`},
		"an entry without id and key":            {items.LineEntry, `"doc":{`, `"doc":{"localId":"pending-1",`},
		"a time before all":                      {items.LineEntry, `"capturedTime":"2`, `"capturedTime":"-2`},
		"an id that is not valid":                {items.LineMemory, `"vaultId":"`, `"vaultId":"../`},
		"a title with a path":                    {items.LineVault, `"title":"`, `"title":"../`},
		"a memory of an unknown project":         {items.LineMemory, `"project":"shop"`, `"project":"nowhere"`},
		"an owner that is not valid":             {items.LineVault, `"kind":"memory.vault"`, `"kind":"memory.vault","owner":"x"`},
		"an unknown kind":                        {items.LineEntry, `"kind":"memory.entry"`, `"kind":"memory.thought"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := 0
			text := altered(t, whole, func(line []byte) []byte {
				if !bytes.Contains(line, []byte(`"kind":"`+change.kind+`"`)) || !bytes.Contains(line, []byte(change.old)) {
					return line
				}
				changed++
				return bytes.Replace(line, []byte(change.old), []byte(change.new), 1)
			})
			if changed == 0 {
				t.Fatal("nothing was changed")
			}
			h := newHome(t, now, "")
			if _, err := h.restore(text); !fault.HasCode(err, exchange.CodeDamaged) && !fault.HasCode(err, exchange.CodeNewer) {
				t.Errorf("%v", err)
			}
			if got := h.head(); got != 0 {
				t.Errorf("%d changes are stored", got)
			}
		})
	}
}
