package memory

import (
	"context"
	"encoding/json"
	"testing"

	"cairn/internal/memory/rules"
	"cairn/internal/project"
	"cairn/internal/store"
)

// exported returns the lines of all memories of a desk.
func (d *desk) exported() (out []Item) {
	d.Helper()
	err := d.read(d.Context(), func(ctx context.Context, tx *store.Tx) error {
		out = nil
		return ExportLines(ctx, tx, project.Scope{}, func(kind string, v any) error {
			l := v.(Item)
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
func (d *desk) takeLines(lines []Item) ImportedMemories {
	d.Helper()
	r, refs := d.NewDocuments(), References{}
	for _, l := range lines {
		err := l.Check()
		if why := refs.Check(&l, func(string) bool { return true }); err != nil || why != "" {
			d.Fatalf("%s %s: %v %s", l.Kind, l.Doc, err, why)
		}
		if err := d.write(d.Context(), func(ctx context.Context, tx *store.Tx) error { return r.Apply(ctx, tx, &l) }); err != nil {
			d.Fatal(err)
		}
	}
	if found, err := d.Check(d.Context()); err != nil || len(found) > 0 {
		d.Errorf("%v %v", found, err)
	}
	return r.Counts()
}

// newSourceDesk returns a desk with a memory that no other desk has.
func newSourceDesk(t testing.TB) *desk {
	d := newDesk(t)
	d.vault = d.newVault(Caller{}, "w")
	d.memory = d.newMemory(Caller{}, d.vault, "n")
	return d
}

func TestImportedMemoriesReachTheHubOfWhoHasJoinedOne(t *testing.T) {
	t.Parallel()
	one, two := newSourceDesk(t), newDesk(t).joined()
	a := one.add("a")
	if _, _, err := one.UpdateContext(t.Context(), Caller{}, NewDocument{one.memory, rules.NewID(), "as it was"}); err != nil {
		t.Fatal(err)
	}
	lines := one.exported()
	if got := two.takeLines(lines); got.Entries != 1 || got.Contexts != 1 {
		t.Errorf("%+v", got)
	}
	far := two.with(one.memory)
	want(t, "the text", far.texts(), "a")
	h := newHub(two)
	two.drain(h)
	want(t, "items at the hub", len(h.items[one.memory]), 3)
	want(t, "the id", must(far.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: one.memory}))(t).Entries[0].EntryID, a.EntryID)
	want(t, "the context", must(far.GetContext(t.Context(), Caller{}, one.memory))(t).Synced, true)
	if got := two.takeLines(lines); got.Entries+got.Contexts+got.Memories != 0 || got.Known != 2 {
		t.Errorf("again: %+v", got)
	}

	// The device that wrote it joins the same hub. There must be no duplicates.
	one.joined()
	one.drain(h)
	one.pull(h, one.memory)
	want(t, "the text", one.texts(), "a")
	two.pull(h, one.memory)
	want(t, "the text", far.texts(), "a")
}

func TestAnInflightEntryThatIsImportedElsewhereIsOneEntryAtTheHub(t *testing.T) {
	t.Parallel()
	one, two := newSourceDesk(t).joined(), newDesk(t)
	one.add("a")
	two.takeLines(one.exported())
	far := two.with(one.memory)
	want(t, "it is committed where there is no hub", far.texts(), "a")
	h := newHub(one)
	one.drain(h)
	two.joined()
	two.drain(h)
	one.pull(h, one.memory)
	two.pull(h, one.memory)
	want(t, "the text", one.texts(), "a")
	want(t, "the text", far.texts(), "a")
}

func TestADeviceWithTwoUsersKeepsThemApartInAnotherStore(t *testing.T) {
	t.Parallel()
	one, two := newSourceDesk(t), newDesk(t)
	one.add("mine")
	other := must(one.AddUser(t.Context()))(t)
	c := Caller{User: other.UserID}
	v, _, err := one.CreateVault(t.Context(), c, NewVault{Title: "v"})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := one.CreateMemory(t.Context(), c, NewMemory{VaultID: v.VaultID, Title: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := one.AddEntry(t.Context(), c, NewEntry{MemoryID: m.MemoryID, RawEntry: "theirs"}); err != nil {
		t.Fatal(err)
	}
	two.takeLines(one.exported())
	want(t, "mine", two.with(one.memory).texts(), "mine")
	list := must(two.ListEntries(t.Context(), c, ListArgs{MemoryID: m.MemoryID}))(t)
	want(t, "theirs", list.Entries[0].RawEntry, "theirs")
	if _, err := two.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: m.MemoryID}); err == nil {
		t.Error("the device's own user reads another one's memory")
	}
}

// FuzzLines imports valid lines and checks the store.
func FuzzLines(f *testing.F) {
	d := newSourceDesk(f)
	d.add("a <b>")
	if _, _, err := d.UpdateContext(f.Context(), Caller{}, NewDocument{d.memory, rules.NewID(), "c"}); err != nil {
		f.Fatal(err)
	}
	gone := d.add("gone")
	if _, err := d.DeleteEntry(f.Context(), Caller{}, d.memory, gone.EntryID); err != nil {
		f.Fatal(err)
	}
	lines := d.exported()
	for i, l := range lines {
		f.Add(i, []byte(l.Doc))
	}
	f.Fuzz(func(t *testing.T, at int, doc []byte) {
		if at < 0 || at >= len(lines) {
			return
		}
		refs, sound := References{}, []Item{}
		for i, l := range lines {
			if i == at {
				l.Doc = json.RawMessage(doc)
			}
			if l.Check() != nil || refs.Check(&l, func(string) bool { return true }) != "" {
				return
			}
			sound = append(sound, l)
		}
		target := newDesk(t)
		r := target.NewDocuments()
		for _, l := range sound {
			if err := target.write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return r.Apply(ctx, tx, &l) }); err != nil {
				t.Fatalf("%s %s: %v", l.Kind, l.Doc, err)
			}
		}
		if found, err := target.Check(t.Context()); err != nil || len(found) > 0 {
			t.Errorf("%v %v", found, err)
		}
		if n := len(target.exported()); n < 3 {
			t.Errorf("%d lines", n)
		}
	})
}
