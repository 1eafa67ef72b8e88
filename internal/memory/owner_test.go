package memory

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// TestAForeignObjectAnswersAsAMissingOne tests P9: for each operation the error for another
// user's object equals that for a missing one, byte for byte.
func TestAForeignObjectAnswersAsAMissingOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	stranger := Caller{User: must(d.AddUser(ctx))(t).UserID, Level: Read}
	admin := Caller{User: stranger.User}
	e := d.add("mine")
	if _, _, err := d.UpdateContext(ctx, Caller{}, NewDocument{d.memory, rules.NewID(), "mine"}); err != nil {
		t.Fatal(err)
	}
	own := d.newMemory(admin, d.newVault(admin, "x"), "x")
	summary := "s"
	for what, call := range map[string]func(vault, memory, entry string, c Caller) error{
		"vault":         func(v, _, _ string, c Caller) error { _, err := d.Vault(ctx, c, v); return err },
		"memories":      func(v, _, _ string, c Caller) error { _, err := d.Memories(ctx, c, v); return err },
		"delete vault":  func(v, _, _ string, c Caller) error { _, err := d.DeleteVault(ctx, c, v); return err },
		"memory":        func(_, m, _ string, c Caller) error { _, err := d.Memory(ctx, c, m); return err },
		"delete memory": func(_, m, _ string, c Caller) error { _, err := d.DeleteMemory(ctx, c, m); return err },
		"create memory": func(v, _, _ string, c Caller) error {
			_, _, err := d.CreateMemory(ctx, c, NewMemory{VaultID: v, Title: "m"})
			return err
		},
		"add": func(_, m, _ string, c Caller) error {
			_, _, err := d.AddEntry(ctx, c, NewEntry{MemoryID: m, RawEntry: "x"})
			return err
		},
		"list": func(_, m, _ string, c Caller) error {
			_, err := d.ListEntries(ctx, c, ListArgs{MemoryID: m})
			return err
		},
		"get":     func(_, m, e string, c Caller) error { _, err := d.GetEntry(ctx, c, m, e); return err },
		"get own": func(_, _, e string, c Caller) error { _, err := d.GetEntry(ctx, c, own, e); return err },
		"patch own": func(_, _, e string, c Caller) error {
			_, _, err := d.PatchEntry(ctx, admin, own, e, Patch{Summary: &summary})
			return err
		},
		"correct": func(_, m, e string, c Caller) error {
			_, _, err := d.CorrectEntry(ctx, c, m, e, Correction{rules.NewID(), "r"})
			return err
		},
		"delete":      func(_, m, e string, c Caller) error { _, err := d.DeleteEntry(ctx, c, m, e); return err },
		"delete own":  func(_, _, e string, c Caller) error { _, err := d.DeleteEntry(ctx, admin, own, e); return err },
		"inflight":    func(_, m, _ string, c Caller) error { _, err := d.GetInflight(ctx, c, m, "pending-1"); return err },
		"get context": func(_, m, _ string, c Caller) error { _, err := d.GetContext(ctx, c, m); return err },
		"update context": func(_, m, _ string, c Caller) error {
			_, _, err := d.UpdateContext(ctx, c, NewDocument{m, rules.NewID(), "x"})
			return err
		},
		"await":  func(_, m, _ string, c Caller) error { return d.AwaitConsistency(ctx, c, m, 0) },
		"export": func(_, m, _ string, c Caller) error { _, err := d.Export(ctx, c, m, "", 0); return err },
		"import": func(_, m, _ string, c Caller) error {
			_, err := d.Import(ctx, c, m, strings.NewReader("{}"), nil)
			return err
		},
	} {
		foreign := call(d.vault, d.memory, e.EntryID, stranger)
		missing := call(rules.NewID(), rules.NewID(), rules.NewID(), stranger)
		same := fmt.Sprint(foreign) == fmt.Sprint(missing) && (foreign == nil || Status(foreign) == Status(missing) && Status(foreign) == 404)
		if !same {
			t.Errorf("%s: foreign %v (%d), missing %v (%d)", what, foreign, Status(foreign), missing, Status(missing))
		}
	}
	want(t, "list", d.texts(), "mine")
	want(t, "vaults of the stranger", must(d.Vaults(ctx, stranger))(t).Count, 1)
	_, err := d.DeleteMemory(ctx, stranger, own)
	wantError(t, "an own object, level too low", err, 403, CodeForbidden)
}

func TestUsersAreMadeAtFirstUse(t *testing.T) {
	t.Parallel()
	b := New(nil, Config{Settings: Defaults()})
	want(t, "without a store nothing is found", asJSON(t, must(b.Vaults(t.Context(), Caller{}))(t)), `{"vaults":[],"count":0}`)
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	d := newDesk(t)
	me := d.me()
	want(t, "again", d.me(), me)
	want(t, "a UUIDv4", me[14], byte('4'))
	_, err := d.Whoami(t.Context(), Caller{User: rules.NewID()})
	wantError(t, "nobody", err, 404, CodeNotFound)
}

func TestAProjectsOwnMemoryIsMadeByItsFirstWriteUnderDerivedIDs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	c := Caller{Place: placeIn(t, "shop")}
	d.clock.Move(time.Second)
	for what, err := range map[string]error{
		"list":  second(d.ListEntries(ctx, c, ListArgs{MemoryID: DefaultMemory})),
		"await": d.AwaitConsistency(ctx, c, DefaultMemory, time.Second),
		"read":  second(d.ListInflight(ctx, c, DefaultMemory, 0)),
	} {
		if err != nil {
			t.Errorf("%s before the first write: %v", what, err)
		}
	}
	_, err := d.GetContext(ctx, c, DefaultMemory)
	wantError(t, "context before the first write", err, 404, CodeNotFound, "context not found")
	_, _, err = d.AddEntry(ctx, c, NewEntry{MemoryID: DefaultMemory, RawEntry: " "})
	wantError(t, "a refused write", err, 400, CodeInvalid)
	want(t, "it made nothing", must(d.Vaults(ctx, c))(t).Count, 1)
	if _, _, err := d.AddEntry(ctx, c, NewEntry{MemoryID: DefaultMemory, RawEntry: "x"}); err != nil {
		t.Fatal(err)
	}
	v := must(d.Vaults(ctx, c))(t).Vaults[1]
	m := must(d.Memories(ctx, c, v.VaultID))(t).Memories[0]
	var uid string
	d.query(&uid, `SELECT uid FROM projects WHERE id = 'shop'`)
	want(t, "vault", v.Title+" "+v.VaultID, "shop-"+uid+" "+rules.DerivedID(d.me(), "vault:shop-"+uid))
	want(t, "memory", m.Title+" "+m.MemoryType+" "+m.MemoryID, "main code "+rules.DerivedID(v.VaultID, "memory:main"))
	want(t, "version 5", m.MemoryID[14], byte('5'))
	want(t, "by name", must(d.Memory(ctx, Caller{ProjectID: "shop"}, DefaultMemory))(t).MemoryID, m.MemoryID)
	for _, c := range storetestChanges(t, d) {
		if c.Kind == KindEntry {
			want(t, "project of the change", c.Project, "shop")
		}
	}
	if _, err := d.DeleteMemory(ctx, c, DefaultMemory); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.AddEntry(ctx, c, NewEntry{MemoryID: DefaultMemory, RawEntry: "new"}); err != nil {
		t.Fatal(err)
	}
	want(t, "made again", must(d.ListEntries(ctx, c, ListArgs{MemoryID: DefaultMemory}))(t).Entries[0].RawEntry, "new")
}

func storetestChanges(t *testing.T, d *desk) (out []store.Change) {
	t.Helper()
	err := d.store.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = tx.Changes(ctx, 0, 1000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func second[T any](_ T, err error) error { return err }

func TestAProjectsIDBecomesATitle(t *testing.T) {
	t.Parallel()
	for id, title := range map[string]string{
		"shop":                  "shop",
		strings.Repeat("a", 50): strings.Repeat("a", 50),
		"my.shop_1":             "my-shop-1-" + fmt.Sprintf("%.4x", sha256.Sum256([]byte("my.shop_1"))),
		strings.Repeat("b", 64): strings.Repeat("b", 41) + "-" + fmt.Sprintf("%.4x", sha256.Sum256([]byte(strings.Repeat("b", 64)))),
	} {
		want(t, id, titleOf(id), title)
		if err := rules.CheckTitle(titleOf(id)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	want(t, "UUIDv5", rules.DerivedID("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.example.com"), "2ed6657d-e927-568b-95e1-2665a8aea6a2")
}

func TestVaultsAndMemoriesAreDeletedWhenTheyMay(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	_, err := d.DeleteVault(ctx, Caller{}, d.vault)
	wantError(t, "not empty", err, 409, CodeVaultNotEmpty)
	e := d.add("secret words")
	for range 2 {
		if _, err := d.DeleteEntry(ctx, Caller{}, d.memory, e.LocalID); err != nil {
			t.Fatal(err)
		}
		if _, err := d.DeleteEntry(ctx, Caller{}, d.memory, e.EntryID); err != nil {
			t.Fatal(err)
		}
	}
	d.add("other words")
	if _, err := d.DeleteMemory(ctx, Caller{}, d.memory); err != nil {
		t.Fatal(err)
	}
	_, err = d.DeleteMemory(ctx, Caller{}, d.memory)
	wantError(t, "gone", err, 404, CodeNotFound)
	var left int
	d.query(&left, `SELECT count(*) FROM changes WHERE instr(doc, 'words')`)
	want(t, "words in the log", left, 0)
	if _, err = d.DeleteVault(ctx, Caller{}, d.vault); err != nil {
		t.Fatal(err)
	}
	want(t, "vaults", must(d.Vaults(ctx, Caller{}))(t).Count, 0)
}

func TestACorrectionIsForOnceAndEndsPatches(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	a, b := d.add("a"), d.add("b")
	_, _, err := d.CorrectEntry(ctx, Caller{}, d.memory, a.EntryID, Correction{a.EntryID, "r"})
	wantError(t, "itself", err, 400, CodeInvalid)
	_, _, err = d.CorrectEntry(ctx, Caller{}, d.memory, a.EntryID, Correction{rules.NewID(), "r"})
	wantError(t, "no such target", err, 404, CodeNotFound)
	e, _, err := d.CorrectEntry(ctx, Caller{}, d.memory, a.EntryID, Correction{b.EntryID, "r"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "corrected", e.CorrectedEntryID+e.CorrectionReason+e.CorrectionTime.String(), b.EntryID+"r2023-11-14T22:13:20Z")
	_, _, err = d.CorrectEntry(ctx, Caller{}, d.memory, a.EntryID, Correction{b.EntryID, "r"})
	wantError(t, "twice", err, 409, CodeImmutable)
	summary := "x"
	_, _, err = d.PatchEntry(ctx, Caller{}, d.memory, a.EntryID, Patch{Summary: &summary})
	wantError(t, "a patch of a corrected one", err, 409, CodeImmutable)
	p, _, err := d.PatchEntry(ctx, Caller{}, d.memory, b.EntryID, Patch{Tags: map[string]string{"k": "v"}})
	want(t, "patched", fmt.Sprint(p.Tags, p.Summary, err), "map[k:v]<nil>")
	p, _, err = d.PatchEntry(ctx, Caller{}, d.memory, b.EntryID, Patch{Tags: map[string]string{}, Summary: &summary})
	want(t, "tags are replaced", fmt.Sprint(p.Tags, p.Summary, err), "map[]x<nil>")
}
