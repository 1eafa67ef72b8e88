package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"cairn/internal/doctor"
)

func TestEncryptRefusesWhileAServerHasTheStoreOpen(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.recorded(h.shell("1", "bake marzipan"))
	c := h.connect("", nil)
	if rows := c.rows("search", map[string]any{"query": "marzipan"}); len(rows) != 1 {
		t.Fatalf("the server finds %v", rows)
	}
	h.fails("encrypt", h.run(h.command("encrypt"), nil), 1, "another process has the store open", "cairn serve")
	h.recorded(h.shell("2", "bake gingerbread")) // recording still works
	c.leave()
	h.cairn("encrypt")
	if found := h.cairn("search", "gingerbread"); !strings.Contains(found, "bake gingerbread") {
		t.Errorf("afterwards the search finds %s", found)
	}
}

func TestHooksDuringAnEncryptionLoseNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("first", "first command"))
	var mu sync.Mutex
	stored := []string{"first command"}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for n := range 8 {
				command := fmt.Sprintf("command %d of %d", n, g)
				e := h.record(h.shell(fmt.Sprint(g, "-", n), command))
				if e.code != 0 {
					t.Errorf("a hook: exit %d, %s", e.code, e.stderr)
					continue
				}
				mu.Lock()
				stored = append(stored, command)
				mu.Unlock()
			}
		})
	}
	h.cairn("encrypt")
	all.Wait()
	wantOnce(t, h.contents(), stored)
	h.check()
}

// In all cases, diagnosed checks that doctor changes nothing.
func TestDoctorOfAnEncryptedStoreIsGreenWithItsKeyAndNamesThePlacesWithoutIt(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.ownTemp()
	if err := os.MkdirAll(filepath.Join(h.dir, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.cairn("init")
	h.worked()
	h.cairn("encrypt")
	key := filepath.Join(h.dataDir(), "key")
	green := func() {
		t.Helper()
		d, _ := h.diagnosed("--deep")
		for _, c := range d.Checks {
			if c.State != doctor.OK {
				t.Errorf("not green: %+v", c)
			}
		}
		wants(t, d, "key", doctor.OK, key, "fits")
		wants(t, d, "schema", doctor.OK, "schema ")
		wants(t, d, "content", doctor.OK, "intact")
		wants(t, d, "claude.events", doctor.OK, "last event")
	}
	green()
	c := h.connect("", nil) // with this server running, readers share its memory of the log
	h.recorded(h.shell("1", "bake marzipan"))
	if said := h.cairn("doctor"); !strings.HasSuffix(said, "\nall is well\n") {
		t.Errorf("beside a server: %s", said)
	}
	c.leave()

	if runtime.GOOS != "windows" {
		h.give(key, 0o644)
		d, _ := h.diagnosed()
		wants(t, d, "key", doctor.Problem, key)
		h.give(key, 0o600)
	}
	keyless := func(what string) {
		t.Helper()
		d, code := h.diagnosed()
		wants(t, d, "key", doctor.Problem, what, "CAIRN_KEY", "store.key_file", "data directory")
		wants(t, d, "claude.events", doctor.Unknown, "cannot be read")
		if code != 1 {
			t.Errorf("%s: exit %d", what, code)
		}
	}
	h.vars["CAIRN_KEY"] = strings.Repeat("0", 64)
	keyless("the key does not fit the encrypted store")
	h.vars["CAIRN_KEY"] = "rubbish"
	keyless("CAIRN_KEY does not contain a valid key")
	h.vars["CAIRN_KEY"] = ""
	if err := os.Rename(key, key+"s"); err != nil {
		t.Fatal(err)
	}
	keyless("there is no key")
}
