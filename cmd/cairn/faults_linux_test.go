package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tmpfs mounts a small file system as the data directory, or skips the test.
func (h *home) tmpfs(size string) {
	h.t.Helper()
	dir := filepath.Join(h.dir, "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := syscall.Mount("cairn", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		h.t.Skipf("a file system cannot be mounted here: %v", err)
	}
	h.t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			h.t.Error(err)
		}
	})
	h.vars["CAIRN_HOME"] = dir
}

// fill uses up the space in the data directory except for leave bytes.
func (h *home) fill(leave int64) (free func()) {
	h.t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(h.dataDir(), &st); err != nil {
		h.t.Fatal(err)
	}
	path := filepath.Join(h.dataDir(), "filler")
	if err := os.WriteFile(path, make([]byte, int64(st.Bavail)*st.Bsize-leave), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return func() {
		h.t.Helper()
		if err := os.Remove(path); err != nil {
			h.t.Fatal(err)
		}
	}
}

// TestFullDiskLosesNothingThatWasAcknowledged records until the disk is full, frees some space and
// continues.
func TestFullDiskLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprintf("held open %v", held), func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.tmpfs("2m")
			h.recorded(h.shell("first", "make first"))
			stored := []string{"make first"}
			if held { // otherwise each hook, as the last process, would empty the log
				c := h.connect("", nil)
				c.rows("search", fields{"query": "first"})
			}
			free := h.fill(192 << 10)
			for i := 0; ; i++ {
				content := fmt.Sprintf("make %d %s", i, strings.Repeat("word ", 80))
				e := h.record(h.shell(fmt.Sprint("t", i), content))
				if e.code == 0 {
					stored = append(stored, strings.TrimSpace(content))
					continue
				}
				h.fails("a full disk", e, 1, "disk full")
				break
			}
			prompts := 0
			if e := h.record(h.payload("UserPromptSubmit", fields{"prompt": strings.Repeat("long prompt ", 300)})); e.code == 0 {
				prompts = 1 // it needs fewer pages
			} else {
				h.fails("a prompt", e, 1, "disk full")
			}
			if out := h.cairn("search", "first", "--ids"); out != "1\n" {
				t.Errorf("a reader finds %q", out)
			}
			t.Logf("%d events fitted", len(stored))
			free()
			h.recorded(h.shell("last", "make last"))
			h.check()
			seen := map[string]int{}
			for content, n := range h.contents() {
				seen[strings.TrimSpace(content)] += n
			}
			wantOnce(t, seen, append(stored, "make last"))
			h.wantRows(`SELECT count(*) FROM observations`, fmt.Sprint(len(stored)+1+prompts))
			h.wantRows(`SELECT count(*) FROM observations WHERE obs_type = 'user_prompt'`, fmt.Sprint(prompts))
		})
	}
}

// TestNotASingleFreeByteIsAFullDisk checks an existing store and a missing one.
func TestNotASingleFreeByteIsAFullDisk(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.tmpfs("2m")
	free := h.fill(0)
	h.fails("the first event", h.record(h.shell("t0", "make none")), 1, "disk full")
	free()
	h.recorded(h.shell("t1", "make first"))
	free = h.fill(0)
	h.fails("one more", h.record(h.shell("t2", "make second")), 1, "disk full")
	if out := h.cairn("search", "first", "--ids"); out != "1\n" {
		t.Errorf("a reader finds %q", out)
	}
	free()
	h.recorded(h.shell("t2", "make second"))
	h.check()
	wantOnce(t, h.contents(), []string{"make first", "make second"})
}

// TestAHookThatCannotPrintHasStoredItsEvent prints to a full device. The hook must not exit with 2,
// which would discard the user's prompt.
func TestAHookThatCannotPrintHasStoredItsEvent(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worked()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	cmd := h.command("record")
	cmd.Stdin = bytes.NewReader(h.payload("SessionStart", fields{"session_id": "s9", "source": "startup"}))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &said
	if err := cmd.Run(); err != nil || !strings.HasPrefix(said.String(), "cairn: record: the event is stored, but ") {
		t.Errorf("%v: %s", err, &said)
	}
	h.wantRows(`SELECT obs_type FROM observations WHERE session_id = 's9'`, "session_start")
}
