package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestEncryptRefusesWhileAServerHasTheStoreOpen(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("1", "bake marzipan"))
	c := h.connect("", nil)
	if rows := c.rows("search", map[string]any{"query": "marzipan"}); len(rows) != 1 {
		t.Fatalf("the server finds %v", rows)
	}
	h.fails("encrypt", h.run(h.command("encrypt"), nil), 1, "another process has the store open", "cairn serve")
	h.recorded(h.shell("2", "bake gingerbread")) // it goes on as before
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
