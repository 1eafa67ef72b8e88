package store_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// whereabouts opens the store in a folder, appends a change and returns the devices, the
// present one first, and the incarnations.
func whereabouts(t *testing.T, dir, change string) (devices []string, all []store.Incarnation) {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.Config(store.Config{Path: filepath.Join(dir, "cairn.db")}))
	if err != nil {
		t.Fatal(err)
	}
	storetest.MustWrite(t, s, change)
	err = s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		if devices, err = tx.Devices(ctx); err == nil {
			all, err = tx.Incarnations(ctx)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return devices, all
}

func TestACopiedStoreGoesOnAsANewIncarnationAndAMovedOneDoesNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home, moved, copied := filepath.Join(dir, "home"), filepath.Join(dir, "moved"), filepath.Join(dir, "copied")
	first, _ := whereabouts(t, home, "a")
	again, _ := whereabouts(t, home, "b")
	if len(first) != 1 || len(again) != 1 || first[0] != again[0] {
		t.Fatalf("the devices are %q, then %q", first, again)
	}
	if err := os.Rename(home, moved); err != nil {
		t.Fatal(err)
	}
	if got, _ := whereabouts(t, moved, "c"); len(got) != 1 || got[0] != first[0] {
		t.Errorf("a moved store is the device %q, want %q", got, first)
	}
	if err := os.CopyFS(copied, os.DirFS(moved)); err != nil {
		t.Fatal(err)
	}
	got, all := whereabouts(t, copied, "d")
	if len(got) != 2 || got[0] == first[0] || got[1] != first[0] {
		t.Fatalf("a copied store is the devices %q, want a new one after %q", got, first)
	}
	if len(all) != 1 || all[0].Reason != store.ReasonMoved || all[0].FromPath != filepath.Join(moved, "cairn.db") || all[0].Path != filepath.Join(copied, "cairn.db") {
		t.Errorf("the incarnations are %+v", all)
	}
	if later, _ := whereabouts(t, copied, "e"); len(later) != 2 || later[0] != got[0] {
		t.Errorf("the copy is later the devices %q, want %q", later, got)
	}
	if original, _ := whereabouts(t, moved, "f"); len(original) != 1 {
		t.Errorf("the original is the devices %q", original)
	}
	// A file is restored to its place, as by a backup tool.
	old, err := os.ReadFile(filepath.Join(moved, "cairn.db"))
	if err == nil {
		err = os.WriteFile(filepath.Join(moved, "new"), old, 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(moved, "new"), filepath.Join(moved, "cairn.db"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if original, _ := whereabouts(t, moved, "g"); len(original) != 1 {
		t.Errorf("a file that was put back is the devices %q", original)
	}
}

// Renew gives the changes that the hub has not confirmed an origin that no other copy of
// the store has used. The hash chain stays valid, which Open's cleanup checks.
func TestRenewGivesLaterChangesANewOrigin(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.MustWrite(t, s, "a", "b", "c")
	device, seq, hash, err := s.Origin(t.Context())
	if err != nil || seq != 3 {
		t.Fatal(device, seq, err)
	}
	for want, at := range map[bool]struct {
		seq  int64
		hash string
	}{true: {seq, hash}, false: {seq + 1, hash}} {
		if got, err := s.Continues(t.Context(), device, at.seq, at.hash); err != nil || got != want {
			t.Errorf("the store continues from %d: %v %v, want %v", at.seq, got, err, want)
		}
	}
	if got, err := s.Continues(t.Context(), device, 2, hash); err != nil || got {
		t.Errorf("another change with the number 2 is taken for the store's: %v", err)
	}
	i, err := s.Renew(t.Context(), device, 1)
	if err != nil || i == nil || i.Before != device || i.Renumbered != 2 || i.LastCommon.IsZero() {
		t.Fatalf("renewed: %+v %v", i, err)
	}
	if again, err := s.Renew(t.Context(), device, 1); err != nil || again != nil {
		t.Errorf("renewed twice: %+v %v", again, err)
	}
	storetest.MustWrite(t, s, "d")
	var got []store.Change
	err = s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		got, err = tx.Changes(ctx, 0, 10)
		return err
	})
	if err != nil || len(got) != 5 {
		t.Fatal(err, got)
	}
	for n, want := range []struct {
		device string
		seq    int64
	}{{device, 1}, {i.Device, 1}, {i.Device, 2}, {i.Device, 3}, {i.Device, 4}} {
		if got[n].Device != want.device || got[n].DeviceSeq != want.seq {
			t.Errorf("change %d has the origin %s/%d, want %s/%d", got[n].Seq, got[n].Device, got[n].DeviceSeq, want.device, want.seq)
		}
	}
}
