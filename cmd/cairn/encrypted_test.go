package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	mrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/doctor"
	"cairn/internal/store"
	"cairn/internal/store/gosqlite"
)

// plainAndEncrypted runs a test with a plain store and with an encrypted one. The test must call
// encrypt as soon as the store exists.
func plainAndEncrypted(t *testing.T, test func(t *testing.T, encrypt func(*home))) {
	t.Helper()
	for name, encrypt := range map[string]func(*home){
		"plain":     func(*home) {},
		"encrypted": func(h *home) { h.cairn("encrypt") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, encrypt)
		})
	}
}

// key returns the key in the data directory, or nil if there is no key.
func (h *home) key() []byte {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dataDir(), "key"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	key, kerr := hex.DecodeString(strings.TrimSpace(string(text)))
	if err := errors.Join(err, kerr); err != nil {
		h.t.Fatal(err)
	}
	return key
}

// decrypted returns all whole blocks of a file, decrypted with a key. Without a key it returns
// nothing.
func (h *home) decrypted(file, key []byte) []byte {
	h.t.Helper()
	if key == nil {
		return nil
	}
	out := make([]byte, gosqlite.Whole(int64(len(file))))
	if _, err := gosqlite.NewReader(bytes.NewReader(file), key).ReadAt(out, 0); err != nil {
		h.t.Fatal(err)
	}
	return out
}

// encryptedHome returns a home with many rows in an encrypted store.
func encryptedHome(t *testing.T) *home {
	t.Helper()
	h := newHome(t)
	h.ownTemp()
	turns := make([]int, 25)
	for i := range turns {
		turns[i] = 6
	}
	newStory(t, filepath.Join(h.dir, "old"), "tale", h.repo, turns...)
	h.cairn("import", filepath.Join(h.dir, "old"))
	h.recorded(h.shell("t1", "bake marzipan"))
	h.cairn("encrypt")
	return h
}

func TestDoctorSaysWhatIsWithTheKeyOnceAndChangesNothing(t *testing.T) {
	t.Parallel()
	h := encryptedHome(t)
	keyFile := filepath.Join(h.dataDir(), "key")
	own := h.key()
	quiet := func(d doctor.Diagnosis) { // no other problem of the store is reported
		t.Helper()
		for _, c := range d.Checks {
			if c.Area == "store" && c.State != doctor.OK && c.Name != "key" || c.Name == "content" || c.Name == "schema" ||
				strings.Contains(c.What, "damage") || strings.Contains(c.Do, "salvage") {
				t.Errorf("without a key doctor says: %+v", c)
			}
		}
	}
	for _, deep := range [][]string{nil, {"--deep"}} {
		d, _ := h.diagnosed(deep...)
		wants(t, d, "key", doctor.OK, "encrypted", keyFile, "fits")
		wants(t, d, "content", doctor.OK, "intact")
		wants(t, d, "schema", doctor.OK, "schema")
		wants(t, d, "leftovers", doctor.OK)
	}
	if text := h.cairn("status"); !strings.Contains(text, ", encrypted\n") {
		t.Errorf("status: %s", text)
	}

	h.vars["CAIRN_KEY"] = hex.EncodeToString(bytes.Repeat([]byte{7}, store.KeySize))
	d, code := h.diagnosed()
	wants(t, d, "key", doctor.Problem, "does not fit", "CAIRN_KEY", "key_file", "data directory")
	quiet(d)
	if code != 1 {
		t.Errorf("exit %d with a wrong key", code)
	}
	h.vars["CAIRN_KEY"] = "rubbish"
	d, _ = h.diagnosed()
	wants(t, d, "key", doctor.Problem, "CAIRN_KEY does not contain a valid key")
	quiet(d)
	delete(h.vars, "CAIRN_KEY")
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	d, _ = h.diagnosed("--deep")
	wants(t, d, "key", doctor.Problem, "there is no key", "CAIRN_KEY")
	quiet(d)

	if err := errors.Join(os.WriteFile(keyFile, []byte(hex.EncodeToString(own)), 0o600), os.Chmod(keyFile, 0o644)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(keyFile); err != nil || info.Mode().Perm() != 0o644 {
		return // this system has no such permissions
	}
	d, _ = h.diagnosed()
	wants(t, d, "key", doctor.Problem, "644", "--fix")
	d, _ = h.diagnosed("--fix")
	wants(t, d, "key", doctor.Problem, "644")
	if info, err := os.Stat(keyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's rights were not repaired: %v", err)
	}
}

// Doctor examines and reports a damaged store with its key. It also checks a copy of the store
// without the key.
func TestDoctorFindsDamageOfAnEncryptedStore(t *testing.T) {
	t.Parallel()
	h := encryptedHome(t)
	file := h.storeFile()
	h.putStore(noise(file, 0, pageSize))
	d, _ := h.diagnosed()
	wants(t, d, "key", doctor.OK, "fits")
	wants(t, d, "content", doctor.Problem, "cairn doctor --salvage")
	if err := os.Remove(h.db() + "-cipher"); err != nil {
		t.Fatal(err)
	}
	d, _ = h.diagnosed()
	wants(t, d, "key", doctor.OK, "fits")
	wants(t, d, "content", doctor.Problem, "cairn doctor --salvage")
}

// An interrupted encryption is reported and left unchanged. The next command completes it.
func TestDoctorReportsAnInterruptedEncryption(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.ownTemp()
	h.recorded(h.shell("t1", "bake marzipan"))
	plain := h.storeFile()
	h.cairn("encrypt")
	encrypted := h.storeFile()
	for name, state := range map[string]struct {
		file  []byte
		after bool // whether the store is encrypted afterwards
	}{
		"copy ready":  {plain, false},
		"header over": {slices.Concat(encrypted[:pageSize], plain[pageSize:]), true},
	} {
		check, err := os.ReadFile(h.db() + "-cipher")
		if err != nil {
			t.Fatal(err)
		}
		h.putStore(state.file)
		if err := os.WriteFile(h.db()+"-encrypted", encrypted, 0o600); err != nil {
			t.Fatal(err)
		}
		d, code := h.diagnosed("--deep")
		wants(t, d, "encryption", doctor.Problem, "cairn status")
		wants(t, d, "content", doctor.OK, "intact")
		if code != 1 {
			t.Errorf("%s: exit %d", name, code)
		}
		if text := h.cairn("status"); strings.Contains(text, "encrypted") != state.after || !strings.Contains(text, "holds    1 observation,") {
			t.Errorf("%s: %s", name, text)
		}
		d, _ = h.diagnosed()
		wants(t, d, "leftovers", doctor.OK)
		if slices.ContainsFunc(d.Checks, func(c doctor.Check) bool { return c.Name == "encryption" }) {
			t.Errorf("%s: it is still reported", name)
		}
		h.putStore(encrypted)
		if err := os.WriteFile(h.db()+"-cipher", check, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEncryptedStoreIsSalvagedUnderItsKey checks that salvage works as for a plain store and writes
// no plain text to the disk.
func TestEncryptedStoreIsSalvagedUnderItsKey(t *testing.T) {
	t.Parallel()
	origin := encryptedHome(t)
	rows := origin.rows(everyRow)
	file := origin.storeFile()
	held := origin.decrypted(file, origin.key())
	pages := len(file) / pageSize
	rounds := often(5, 2)
	if soaking() {
		rounds = pages
	}
	for round := range rounds {
		n := mrand.IntN(pages)
		if round < 3 || soaking() {
			n = round
		}
		broken := bytes.Clone(file)
		rand.Read(broken[n*pageSize : (n+1)*pageSize]) // never fails
		h := newHome(t)
		h.putStore(broken)
		for _, name := range []string{"key", "cairn.db-cipher"} {
			text, err := os.ReadFile(filepath.Join(origin.dataDir(), name))
			if err := errors.Join(err, os.WriteFile(filepath.Join(h.dataDir(), name), text, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if e := h.run(h.command("doctor", "--deep"), nil); e.code != 1 || !strings.Contains(e.stdout, "--salvage") {
			continue // for example, a free page
		}
		before := h.tree()
		h.vars["CAIRN_KEY"] = hex.EncodeToString(bytes.Repeat([]byte{7}, store.KeySize))
		h.fails("salvage with a wrong key", h.run(h.command("doctor", "--salvage"), nil), 2, "the key does not fit", "CAIRN_KEY")
		delete(h.vars, "CAIRN_KEY")
		for path, text := range h.tree() {
			if before[path] != text && !strings.HasSuffix(path, "cairn.log") {
				t.Errorf("the wrong key has changed %s", path)
			}
		}
		h.salvage(broken)
		got := map[string]bool{}
		for _, row := range h.rows(everyRow) {
			got[row] = true
		}
		for _, row := range rows {
			content, _, _ := strings.Cut(row, "|")
			if !got[row] && !bytes.Contains(held[n*pageSize:(n+1)*pageSize], []byte(content)) {
				t.Fatalf("page %d: a row is lost that did not stand there: %s", n+1, row)
			}
		}
		h.recorded(h.shell("t2", "make more"))
		for _, word := range []string{"marzipan", "totals", "CREATE TABLE", "make more"} {
			h.nowhere(word)
		}
	}
}

// nowhere expects that no file of the data directory contains a text.
func (h *home) nowhere(text string) {
	h.t.Helper()
	err := filepath.WalkDir(h.dataDir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			h.t.Errorf("%s holds %q", filepath.Base(path), text)
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// keptCopies makes cairn keep plain copies of a store that contains words. One salvage finds a bad
// page, and another is interrupted.
func (h *home) keptCopies(words []string) (kept string) {
	h.t.Helper()
	file := h.storeFile()
	broken := bytes.Clone(file)
	rand.Read(broken[pageSize : 2*pageSize]) // the pointer map, which contains no rows
	h.putStore(broken)
	kept = h.salvage(broken).Kept
	if err := os.WriteFile(h.db()+"-salvage-20200101T000000.000000000Z", file, 0o600); err != nil {
		h.t.Fatal(err)
	}
	h.wantOnDisk(words)
	return kept
}

func TestPurgeTakesWhatSalvagesKeptAndLeft(t *testing.T) {
	t.Parallel()
	plainAndEncrypted(t, func(t *testing.T, encrypt func(*home)) {
		p := newPurgeHome(t)
		p.ownTemp()
		encrypt(p.home)
		kept := p.keptCopies(p.gone.words())
		d, _ := p.diagnosed()
		wants(t, d, "leftovers", doctor.Problem, "-salvage-2020")
		p.cairn("purge", "--session", "gone", "--confirm")
		p.wantGone(p.gone.words())
		p.wantOnDisk(p.kept.words())
		for _, path := range []string{kept, p.db() + "-salvage-20200101T000000.000000000Z"} {
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there", path)
			}
		}
		p.check()
	})
}

func TestEncryptAfterASalvageLeavesNoPlainCopy(t *testing.T) {
	t.Parallel()
	p := newPurgeHome(t)
	kept := p.keptCopies(p.gone.words())
	var done struct{ Destroyed []string }
	if err := json.Unmarshal([]byte(p.cairn("encrypt", "--json")), &done); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(done.Destroyed, filepath.Base(kept)) || len(done.Destroyed) < 2 {
		t.Errorf("destroyed %q", done.Destroyed)
	}
	p.wantOnDisk(slices.Concat(p.gone.words(), p.kept.words())) // only under the key
	p.check()
}

// TestPurgedTextIsNotUnderTheKeyEither decrypts every file of the data directory after a purge:
// rows, index, free pages and log.
func TestPurgedTextIsNotUnderTheKeyEither(t *testing.T) {
	t.Parallel()
	p := newPurgeHome(t)
	p.cairn("encrypt")
	p.wantOnDisk(slices.Concat(p.gone.words(), p.kept.words(), p.old.words()))
	p.cairn("purge", "--session", "gone", "--confirm")
	p.wantGone(p.gone.words())
	p.wantOnDisk(slices.Concat(p.kept.words(), p.old.words()))
	if n := added(t, p.cairn("import", "--json", p.transcripts)); n != 0 {
		t.Errorf("an import adds %d rows", n)
	}
	p.settle(inventedWords + "[retention.days]\ncommand = 1\n")
	p.cairn("sweep")
	p.wantRows(`SELECT count(*) FROM observations WHERE session_id = 'old' AND obs_type = 'command'`, "0")
	p.wantRows(`SELECT count(*) FROM observations WHERE session_id = 'kept' AND obs_type = 'command'`, "1")
	p.check()
}
