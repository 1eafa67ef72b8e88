package items_test

import (
	"context"
	"encoding/json"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/items"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/vaults"
	"cairn/internal/project"
	"cairn/internal/store"
)

// exported returns the lines of all memories of a desk.
func exported(d *memorytest.Desk) (out []items.Item) {
	d.Helper()
	err := d.Read(d.Context(), func(ctx context.Context, tx *store.Tx) error {
		out = nil
		return items.ExportLines(ctx, tx, project.Scope{}, func(kind string, v any) error {
			l := v.(items.Item)
			l.Kind = kind
			out = append(out, l)
			return nil
		})
	})
	if err != nil {
		d.Fatal(err)
	}
	return out
}

// takeLines imports lines, which must all be valid.
func takeLines(d *memorytest.Desk, lines []items.Item) items.ImportedMemories {
	d.Helper()
	r, refs := d.NewDocuments(), items.References{}
	for _, l := range lines {
		err := l.Check()
		if why := refs.Check(&l, func(string) bool { return true }); err != nil || why != "" {
			d.Fatalf("%s %s: %v %s", l.Kind, l.Doc, err, why)
		}
		if err := d.Write(d.Context(), func(ctx context.Context, tx *store.Tx) error { return r.Apply(ctx, tx, &l) }); err != nil {
			d.Fatal(err)
		}
	}
	if found := memorytest.Findings(d, d.Store); found != "" {
		d.Error(found)
	}
	return r.Counts()
}

// newSourceDesk returns a desk with a memory that no other desk has.
func newSourceDesk(t testing.TB) *memorytest.Desk {
	d := memorytest.NewDesk(t)
	d.VaultID = d.NewVault(memory.Caller{}, "w")
	d.MemoryID = d.NewMemory(memory.Caller{}, d.VaultID, "n")
	return d
}

func TestImportedMemoriesReachTheHubOfWhoHasJoinedOne(t *testing.T) {
	t.Parallel()
	one, two := newSourceDesk(t), memorytest.NewDesk(t).Joined()
	a := one.Add("a")
	if _, _, err := one.UpdateContext(t.Context(), memory.Caller{}, entries.NewDocument{MemoryID: one.MemoryID, SessionID: rules.NewID(), Markdown: "as it was"}); err != nil {
		t.Fatal(err)
	}
	lines := exported(one)
	if got := takeLines(two, lines); got.Entries != 1 || got.Contexts != 1 {
		t.Errorf("%+v", got)
	}
	far := two.With(one.MemoryID)
	memorytest.Want(t, "the text", far.Texts(), "a")
	h := memorytest.NewHub(two)
	two.Drain(h)
	memorytest.Want(t, "items at the hub", len(h.Items[one.MemoryID]), 3)
	memorytest.Want(t, "the id", memorytest.Must(far.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: one.MemoryID}))(t).Entries[0].EntryID, a.EntryID)
	memorytest.Want(t, "the context", memorytest.Must(far.GetContext(t.Context(), memory.Caller{}, one.MemoryID))(t).Synced, true)
	if got := takeLines(two, lines); got.Entries+got.Contexts+got.Memories != 0 || got.Known != 2 {
		t.Errorf("again: %+v", got)
	}

	// The device that wrote it joins the same hub. There must be no duplicates.
	one.Joined()
	one.Drain(h)
	one.Pull(h, one.MemoryID)
	memorytest.Want(t, "the text", one.Texts(), "a")
	two.Pull(h, one.MemoryID)
	memorytest.Want(t, "the text", far.Texts(), "a")
}

func TestAnInflightEntryThatIsImportedElsewhereIsOneEntryAtTheHub(t *testing.T) {
	t.Parallel()
	one, two := newSourceDesk(t).Joined(), memorytest.NewDesk(t)
	one.Add("a")
	takeLines(two, exported(one))
	far := two.With(one.MemoryID)
	memorytest.Want(t, "it is committed where there is no hub", far.Texts(), "a")
	h := memorytest.NewHub(one)
	one.Drain(h)
	two.Joined()
	two.Drain(h)
	one.Pull(h, one.MemoryID)
	two.Pull(h, one.MemoryID)
	memorytest.Want(t, "the text", one.Texts(), "a")
	memorytest.Want(t, "the text", far.Texts(), "a")
}

func TestADeviceWithTwoUsersKeepsThemApartInAnotherStore(t *testing.T) {
	t.Parallel()
	one, two := newSourceDesk(t), memorytest.NewDesk(t)
	one.Add("mine")
	other := memorytest.Must(one.AddUser(t.Context()))(t)
	c := memory.Caller{User: other.UserID}
	v, _, err := one.CreateVault(t.Context(), c, vaults.NewVault{Title: "v"})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := one.CreateMemory(t.Context(), c, vaults.NewMemory{VaultID: v.VaultID, Title: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := one.AddEntry(t.Context(), c, contents.NewEntry{MemoryID: m.MemoryID, RawEntry: "theirs"}); err != nil {
		t.Fatal(err)
	}
	takeLines(two, exported(one))
	memorytest.Want(t, "mine", two.With(one.MemoryID).Texts(), "mine")
	list := memorytest.Must(two.ListEntries(t.Context(), c, entries.ListArgs{MemoryID: m.MemoryID}))(t)
	memorytest.Want(t, "theirs", list.Entries[0].RawEntry, "theirs")
	if _, err := two.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: m.MemoryID}); err == nil {
		t.Error("the device's own user reads another one's memory")
	}
}

// FuzzLines imports valid lines and checks the store.
func FuzzLines(f *testing.F) {
	d := newSourceDesk(f)
	d.Add("a <b>")
	if _, _, err := d.UpdateContext(f.Context(), memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: rules.NewID(), Markdown: "c"}); err != nil {
		f.Fatal(err)
	}
	gone := d.Add("gone")
	if _, err := d.DeleteEntry(f.Context(), memory.Caller{}, d.MemoryID, gone.EntryID); err != nil {
		f.Fatal(err)
	}
	lines := exported(d)
	for i, l := range lines {
		f.Add(i, []byte(l.Doc))
	}
	f.Fuzz(func(t *testing.T, at int, doc []byte) {
		if at < 0 || at >= len(lines) {
			return
		}
		refs, sound := items.References{}, []items.Item{}
		for i, l := range lines {
			if i == at {
				l.Doc = json.RawMessage(doc)
			}
			if l.Check() != nil || refs.Check(&l, func(string) bool { return true }) != "" {
				return
			}
			sound = append(sound, l)
		}
		target := memorytest.NewDesk(t)
		r := target.NewDocuments()
		for _, l := range sound {
			if err := target.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return r.Apply(ctx, tx, &l) }); err != nil {
				t.Fatalf("%s %s: %v", l.Kind, l.Doc, err)
			}
		}
		if found := memorytest.Findings(t, target.Store); found != "" {
			t.Error(found)
		}
		if n := len(exported(target)); n < 3 {
			t.Errorf("%d lines", n)
		}
	})
}
