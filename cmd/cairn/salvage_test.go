package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	mrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/store/salvage"
)

const pageSize = 4096

// written returns a store with many rows, as one file, and its rows.
func written(t *testing.T) (file []byte, rows []string) {
	t.Helper()
	h := newHome(t)
	turns := make([]int, 40)
	for i := range turns {
		turns[i] = 6
	}
	newStory(t, filepath.Join(h.dir, "old"), "tale", h.repo, turns...)
	h.cairn("import", filepath.Join(h.dir, "old"))
	h.recorded(h.shell("t1", "make refund"))
	rows = h.rows(everyRow)
	return h.storeFile(), rows
}

const everyRow = `SELECT content, id, timestamp, session_id, project_id, prompt_id, obs_type, source_event, tool_name, file_path,
path_key, metadata, tool_use_id, part FROM observations ORDER BY id`

// putStore writes a file as the store of a home.
func (h *home) putStore(file []byte) {
	h.t.Helper()
	err := errors.Join(os.MkdirAll(h.dataDir(), 0o700), os.WriteFile(h.db(), file, 0o600))
	for _, suffix := range []string{"-wal", "-shm"} { // a hook may have left them
		if rerr := os.Remove(h.db() + suffix); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// storeFile returns the store's file after the log that a hook may have left was moved into
// it.
func (h *home) storeFile() []byte {
	h.t.Helper()
	h.cairn("status") // closes the store
	file, err := os.ReadFile(h.db())
	if err != nil {
		h.t.Fatal(err)
	}
	return file
}

// salvage runs doctor --salvage, which must succeed, and compares the rows that it kept.
func (h *home) salvage(broken []byte) (r salvage.Report) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(h.cairn("doctor", "--salvage", "--json")), &r); err != nil {
		h.t.Fatal(err)
	}
	if len(r.Damage) == 0 {
		h.t.Fatal("nothing was found to salvage")
	}
	kept, err := os.ReadFile(r.Kept)
	if err != nil || broken != nil && !bytes.Equal(kept, broken) {
		h.t.Errorf("the damaged file is not kept as it was (%v)", err)
	}
	h.check()
	return r
}

// TestSalvageKeepsEveryRowThatStoodOutsideTheDamagedPage damages each page in turn. After
// the salvage, hooks, search and import work as before.
func TestSalvageKeepsEveryRowThatStoodOutsideTheDamagedPage(t *testing.T) {
	t.Parallel()
	file, rows := written(t)
	pages := len(file) / pageSize
	rounds := often(5, 3)
	if soaking() {
		rounds = pages
	}
	for round := range rounds {
		n := mrand.IntN(pages)
		if round < 3 || soaking() {
			n = round // header, pointer map, the first root
		}
		broken := bytes.Clone(file)
		page := broken[n*pageSize : (n+1)*pageSize]
		if round%2 == 0 {
			rand.Read(page) // never fails
		} else {
			clear(page)
		}
		h := newHome(t)
		h.putStore(broken)
		if e := h.run(h.command("doctor", "--deep"), nil); e.code != 1 {
			t.Logf("page %d: doctor exits %d", n+1, e.code)
			continue // for example a free page
		}
		r := h.salvage(broken)
		got := map[string]bool{}
		for _, row := range h.rows(everyRow) {
			got[row] = true
		}
		lost := 0
		for _, row := range rows {
			content, _, _ := strings.Cut(row, "|")
			if got[row] {
				continue
			}
			if lost++; !bytes.Contains(file[n*pageSize:(n+1)*pageSize], []byte(content)) {
				t.Fatalf("page %d: a row is lost or altered that did not stand there: %s", n+1, row)
			}
		}
		t.Logf("page %d of %d: %d rows lost, %d restored", n+1, pages, lost, r.Restored)
		for _, table := range r.Tables {
			if table.Name == "observation_rows" && (table.Lost != int64(lost) || table.Kept != int64(len(rows)-lost)) {
				t.Errorf("page %d: the report says %+v, and %d of %d are lost", n+1, table, lost, len(rows))
			}
		}
		h.recorded(h.shell("t2", "make more"))
		if ids := h.cairn("search", `"make more"`, "--ids"); strings.Count(ids, "\n") != 1 {
			t.Errorf("page %d: the row after the salvage is not found: %q", n+1, ids)
		}
		if hits := h.cairn("search", "totals", "--ids", "--limit", "100"); strings.Count(hits, "\n") != 100 {
			t.Errorf("page %d: %d hits", n+1, strings.Count(hits, "\n"))
		}
	}
}

// TestDamageIsSalvagedAndHooksGoOn covers each way in which hooks refuse a damaged store.
func TestDamageIsSalvagedAndHooksGoOn(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(file []byte) []byte{
		"no database":              func([]byte) []byte { return bytes.Repeat([]byte("once upon a time "), 3000) },
		"random bytes in the file": func(f []byte) []byte { return noise(f, 4096, len(f)) },
		"random bytes in its head": func(f []byte) []byte { return noise(f, 0, 4096) },
		"random bytes in schema":   func(f []byte) []byte { return noise(f, 100, 4096) },
		"zeroed header":            func(f []byte) []byte { return append(make([]byte, 100), f[100:]...) },
		"cut":                      func(f []byte) []byte { return f[:4096+1000] },
		"half":                     func(f []byte) []byte { return f[:len(f)/2] },
		"zeros":                    func(f []byte) []byte { return make([]byte, len(f)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.worked()
			file := h.storeFile()
			before := len(h.rows(everyRow))
			broken := damage(file)
			h.putStore(broken)
			h.fails("the hook", h.record(h.shell("t8", "make it")), 2, "cairn doctor --salvage")
			e := h.run(h.command("doctor"), nil)
			if e.code != 1 || !strings.Contains(e.stdout, "cairn doctor --salvage") {
				t.Errorf("doctor: exit %d\n%s%s", e.code, e.stdout, e.stderr)
			}
			h.salvage(broken)
			left := len(h.rows(everyRow))
			if strings.Contains(name, "head") || name == "random bytes in schema" {
				if left != before {
					t.Errorf("%d of %d rows are left", left, before)
				}
			}
			h.recorded(h.shell("t9", "make it again"))
			if again := h.cairn("doctor", "--salvage"); !strings.Contains(again, "nothing to salvage") {
				t.Errorf("again: %s", again)
			}
		})
	}
}

// TestSalvageIsRefusedWhileAServerHasTheStoreOpen also checks that it succeeds after the
// server has ended.
func TestSalvageIsRefusedWhileAServerHasTheStoreOpen(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file, _ := written(t)
	h.putStore(file)
	c := h.dial("", nil)
	c.rows("search", fields{"query": "refund"})
	broken := bytes.Clone(file)
	clear(broken[len(broken)/2/pageSize*pageSize:][:pageSize])
	clear(broken[:pageSize])
	h.putStore(broken)
	h.fails("salvage", h.run(h.command("doctor", "--salvage"), nil), 2, "another process has the store open", "agents' sessions")
	if now, err := os.ReadFile(h.db()); err != nil || !bytes.Equal(now, broken) {
		t.Errorf("the file was changed (%v)", err)
	}
	if err := c.Close(); err != nil {
		t.Logf("the server of a damaged store: %v", err)
	}
	h.salvage(nil) // the server wrote its archive state to the file when it closed it
}
