package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/encryption"
	"cairn/internal/store/salvage"
	"cairn/internal/store/storetest"
)

// damagedUnder returns an encrypted store with a bad page, and its rows.
func damagedUnder(t *testing.T, key []byte) (path string, want []string) {
	t.Helper()
	path, want = filled(t)
	encryptNow(t, path, key)
	broken := content(t, path)
	clear(broken[:pageSize])
	place(t, path, broken)
	return path, want
}

func everyFile(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range names(t, dir) {
		all[name] = content(t, filepath.Join(dir, name))
	}
	return all
}

func TestSalvageAndExamineWithoutTheKeySaySoAndChangeNothing(t *testing.T) {
	plainOnly(t)
	path, _ := damagedUnder(t, keyOf(1))
	before := everyFile(t, filepath.Dir(path))
	for code, key := range map[string][]byte{store.CodeKey: keyOf(2), store.CodeEncrypted: nil} {
		_, err := salvage.Run(t.Context(), salvage.Config{Path: path, Key: key})
		storetest.ExpectCode(t, err, code)
		_, err = store.Examine(t.Context(), store.Config{Path: path, Key: key})
		storetest.ExpectCode(t, err, code)
		_, _, err = store.Schema(path, key)
		storetest.ExpectCode(t, err, code)
	}
	_, err := salvage.Run(t.Context(), salvage.Config{Path: path, Key: []byte("short")})
	storetest.ExpectCode(t, err, store.CodeKey)
	for name, text := range before {
		expectUnchanged(t, filepath.Join(filepath.Dir(path), name), text)
	}
	if now := names(t, filepath.Dir(path)); len(now) != len(before) {
		t.Errorf("there is %q", now)
	}
}

// A damaged encrypted store whose key check is lost or damaged is not treated as a plain
// one.
func TestSalvageOfAnEncryptedStoreWithoutItsKeyCheckKeepsItsRows(t *testing.T) {
	plainOnly(t)
	for name, check := range map[string][]byte{"missing": nil, "damaged": []byte("nonsense")} {
		path, want := damagedUnder(t, keyOf(1))
		if err := os.Remove(path + "-cipher"); err != nil {
			t.Fatal(err)
		}
		if check != nil {
			place(t, path+"-cipher", check)
		}
		if ok, err := store.KeyFits(path, keyOf(2)); ok || err != nil {
			t.Errorf("%s: another key fits: %v", name, err)
		}
		r, err := salvage.Run(t.Context(), salvage.Config{Path: path, Key: keyOf(1)})
		if err != nil || r.Kept == "" {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		expectNowhere(t, filepath.Dir(path), secretWord)
		if ok, err := encryption.Finish(t.Context(), path, 0); !ok || err != nil {
			t.Errorf("%s: it counts as plain: %v", name, err)
		}
		got := storetest.IDs(t, storetest.Open(t, store.Config{Path: path, Key: keyOf(1)}))
		if !slices.Equal(got[:len(got)-1], want) {
			t.Errorf("%s: %d of %d rows", name, len(got)-1, len(want))
		}
	}
}

// The kept file is the damaged one, so it can be salvaged again with its key.
func TestKeptFileOfAnEncryptedStoreIsEncryptedWithItsKey(t *testing.T) {
	plainOnly(t)
	path, _ := damagedUnder(t, keyOf(1))
	r, err := salvage.Run(t.Context(), salvage.Config{Path: path, Key: keyOf(1)})
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := store.KeyFits(r.Kept, keyOf(1)); !ok || err != nil {
		t.Errorf("the key does not fit what was kept: %v", err)
	}
	_, err = store.Examine(t.Context(), store.Config{Path: r.Kept})
	storetest.ExpectCode(t, err, store.CodeEncrypted)
}

// A plain store stays plain even if the data directory contains another store's key.
func TestSalvageOfAPlainStoreNextToAKeyIsPlain(t *testing.T) {
	plainOnly(t)
	for _, bad := range []int{0, 5} {
		path, want := filled(t)
		broken := content(t, path)
		clear(broken[bad*pageSize : (bad+1)*pageSize])
		place(t, path, broken)
		if _, err := salvage.Run(t.Context(), salvage.Config{Path: path, Key: keyOf(1)}); err != nil {
			t.Fatal(err)
		}
		if exists(path + "-cipher") {
			t.Error("a key check was made")
		}
		if got := storetest.IDs(t, storetest.Open(t, store.Config{Path: path})); bad == 0 && len(got) != len(want)+1 {
			t.Errorf("%d of %d rows", len(got)-1, len(want))
		}
	}
}

func TestCopiesAfterASalvageAreGoneWithAnEncryption(t *testing.T) {
	plainOnly(t)
	path, _ := filled(t)
	broken := content(t, path)
	clear(broken[5*pageSize : 6*pageSize])
	place(t, path, broken)
	r, err := salvage.Run(t.Context(), salvage.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(content(t, r.Kept), []byte(secretWord)) {
		t.Fatal("nothing plain was kept")
	}
	place(t, path+"-salvage-1", []byte(secretWord))
	place(t, filepath.Join(filepath.Dir(path), "backups", "cairn.db.3"), []byte(secretWord))
	done := encryptNow(t, path, keyOf(1))
	expectNowhere(t, filepath.Dir(path), secretWord)
	for _, name := range []string{filepath.Base(r.Kept), "cairn.db-salvage-1", "cairn.db.3"} {
		if !slices.Contains(done.Destroyed, name) {
			t.Errorf("%s is not among %q", name, done.Destroyed)
		}
	}
}

// In every state that a killed Encrypt can leave, Examine shows the complete store and
// changes nothing.
func TestExamineOfAnInterruptedEncryptionSeesTheCompleteStore(t *testing.T) {
	plainOnly(t)
	path, want := filled(t)
	before := content(t, path)
	encryptNow(t, path, keyOf(1))
	after, check := content(t, path), content(t, path+"-cipher")
	for name, files := range map[string]map[string][]byte{
		"copy ready":  {"": before, "-cipher": check, "-encrypted": after},
		"copy begun":  {"": before, "-cipher": check, "-encrypting": after[:5000]},
		"header over": {"": slices.Concat(after[:4096], before[4096:]), "-cipher": check, "-encrypted": after, "-wal": make([]byte, 40000)},
		"all over":    {"": after, "-cipher": check, "-encrypted": after},
		"file gone":   {"-cipher": check, "-encrypted": after},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "cairn.db")
		for suffix, text := range files {
			place(t, path+suffix, text)
		}
		s, err := store.Examine(t.Context(), store.Config{Path: path, Key: keyOf(1)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if found, err := s.Check(t.Context()); err != nil || len(found) > 0 {
			t.Errorf("%s: %q, %v", name, found, err)
		}
		storetest.ExpectIDs(t, s, want...)
		storetest.Closed(t, s)
		if found, known, err := store.Schema(path, keyOf(1)); err != nil || found != known {
			t.Errorf("%s: schema %d of %d, %v", name, found, known, err)
		}
		if now := names(t, dir); len(now) != len(files) {
			t.Errorf("%s: there is %q", name, now)
		}
		for suffix, text := range files {
			expectUnchanged(t, path+suffix, text)
		}
	}
}

// No page of a rewritten encrypted store contains deleted words, not even after
// decryption.
func TestRewrittenEncryptedStoreHoldsNoDeletedWordUnderItsKey(t *testing.T) {
	plainOnly(t)
	path, _ := filled(t)
	encryptNow(t, path, keyOf(1))
	s := storetest.Open(t, store.Config{Path: path, Key: keyOf(1)})
	under := func(word string) (found bool) {
		for _, suffix := range []string{"", "-wal"} {
			if text, err := os.ReadFile(path + suffix); err == nil {
				found = found || strings.Contains(string(decrypted(t, text, keyOf(1))), word)
			} else if !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		return found
	}
	storetest.Exec(t, s, `CREATE TABLE texts (body TEXT)`, `CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1)`,
		`INSERT INTO texts VALUES ('gingerbread')`, `INSERT INTO words (rowid, text) VALUES (1, 'gingerbread')`)
	if !under("gingerbread") || !under(secretWord) {
		t.Fatal("the key does not show what is stored")
	}
	storetest.Exec(t, s, `DELETE FROM texts`, `DELETE FROM words`, `INSERT INTO words (words) VALUES ('optimize')`)
	if err := s.Rewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	if under("gingerbread") || !under(secretWord) {
		t.Error("the deleted word is there, or the others are not")
	}
}
