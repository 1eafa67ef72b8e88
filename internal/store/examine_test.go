package store_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/salvage"
	"cairn/internal/store/storetest"
)

// Without the key, an encrypted store looks like a damaged one.
func TestEncryptedStoreIsNotTakenForADamagedOne(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	text := []byte(strings.Repeat("no page of this can be read ", 1000))
	place(t, path, text)
	place(t, path+"-cipher", []byte("key check"))
	_, err := salvage.Run(t.Context(), salvage.Config{Path: path})
	storetest.ExpectCode(t, err, store.CodeEncrypted)
	expectUnchanged(t, path, text)
}

// Examining a store leaves its files unchanged, whatever state it is in.
func TestExamineChangesNoByte(t *testing.T) {
	t.Parallel()
	clean := populated(t)
	left, _ := heldOpen(t)
	held := populated(t)
	child(t, "keep open", order{Path: held}).Expect(t, "open")
	for name, path := range map[string]string{"closed": clean, "left by a killed process": left, "open elsewhere": held} {
		before := map[string][]byte{}
		for _, e := range entries(t, filepath.Dir(path)) {
			if !strings.HasSuffix(e, "-shm") { // it contains the marks of readers
				before[e] = content(t, filepath.Join(filepath.Dir(path), e))
			}
		}
		names := entries(t, filepath.Dir(path))
		s, err := examine(t.Context(), path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, check := range []func(context.Context) ([]string, error){s.Check, s.QuickCheck} {
			if found, err := check(t.Context()); err != nil || len(found) > 0 {
				t.Errorf("%s: %q, %v", name, found, err)
			}
		}
		storetest.ExpectCode(t, storetest.Write(t.Context(), s, store.Full, "new"), store.CodeReadOnly)
		storetest.Closed(t, s)
		for e, b := range before {
			expectUnchanged(t, filepath.Join(filepath.Dir(path), e), b)
		}
		if now := entries(t, filepath.Dir(path)); !slices.Equal(now, names) {
			t.Errorf("%s: %q, was %q", name, now, names)
		}
	}
}
