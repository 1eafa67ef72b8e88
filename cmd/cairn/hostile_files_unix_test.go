//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// hostile returns the kinds of hostile file that can replace a regular one. Careless opening or
// reading blocks, never ends, or exhausts the memory.
func hostile() []string { return []string{"fifo", "endless", "sparse", "folder", "loop"} }

// plant replaces the file at a path by a hostile one.
func (h *home) plant(kind, path string) {
	h.t.Helper()
	err := errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o755))
	switch kind {
	case "fifo":
		err = errors.Join(err, syscall.Mkfifo(path, 0o644))
	case "endless":
		err = errors.Join(err, os.Symlink("/dev/zero", path))
	case "sparse":
		err = errors.Join(err, os.WriteFile(path, nil, 0o644), os.Truncate(path, 1<<30))
	case "folder":
		err = errors.Join(err, os.Mkdir(path, 0o755))
	case "loop":
		err = errors.Join(err, os.Symlink(filepath.Base(path), path))
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// peak runs the hook on a payload. It returns the exit code, the standard error and the peak memory
// in bytes.
func (h *home) peak(payload []byte) (code int, stderr string, bytes int64) {
	h.t.Helper()
	e := h.run(h.command("record", "--assist"), payload)
	return e.code, e.stderr, peakMemory(e.state)
}

// TestTheHookReadsNoHostileSettings covers the settings of a repository and of a user. The hook
// rejects them, names the file, and needs no more memory than usual.
func TestTheHookReadsNoHostileSettings(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	_, _, usual := h.peak(h.shell("usual", "make"))
	for _, place := range []string{filepath.Join(h.repo, ".cairn.toml"), filepath.Join(h.dataDir(), "config.toml")} {
		for _, kind := range hostile() {
			h.plant(kind, place)
			for _, event := range []string{"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"} {
				code, said, peak := h.peak(h.anyEvent(event))
				if code != 1 || !strings.Contains(said, filepath.Base(place)+": ") {
					t.Errorf("%s as %s, %s: exit %d, %s", filepath.Base(place), kind, event, code, said)
				}
				if !racing() && peak > usual+32<<20 {
					t.Errorf("%s as %s, %s: %d bytes of memory, usually %d", filepath.Base(place), kind, event, peak, usual)
				}
			}
		}
		if err := os.RemoveAll(place); err != nil {
			t.Fatal(err)
		}
	}
	h.wantRows(`SELECT count(*) FROM observations`, "1")
}

// TestTheHookRecordsInAHostileRepository replaces the repository's Git files. The hook ignores
// files that it cannot read, and stores the event.
func TestTheHookRecordsInAHostileRepository(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	_, _, usual := h.peak(h.shell("usual", "make"))
	n := 1
	for _, name := range []string{".git", ".git/config", ".git/HEAD", ".git/commondir", ".git/refs/remotes/origin/HEAD"} {
		for _, kind := range hostile() {
			repo := h.repository(filepath.Join(h.dir, fmt.Sprintf("%s-%s", kind, strings.ReplaceAll(name, "/", "-"))))
			h.plant(kind, filepath.Join(repo, filepath.FromSlash(name)))
			code, said, peak := h.peak(h.payload("PostToolUse", fields{
				"cwd": repo, "tool_name": "Bash", "tool_use_id": name + kind, "tool_input": fields{"command": "make"},
			}))
			if code != 0 || said != "" {
				t.Errorf("%s as %s: exit %d, %s", name, kind, code, said)
			}
			if !racing() && peak > usual+32<<20 {
				t.Errorf("%s as %s: %d bytes of memory, usually %d", name, kind, peak, usual)
			}
			n++
		}
	}
	h.wantRows(`SELECT count(*) FROM observations`, fmt.Sprint(n))
}

// TestOtherFilesOfAHomeAreReadWithCare checks the commands that read an agent's settings, a key,
// and a log that is not a regular file.
func TestOtherFilesOfAHomeAreReadWithCare(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"fifo", "endless"} {
		h := newHome(t)
		h.plant(kind, filepath.Join(h.dir, ".claude", "settings.json"))
		h.plant(kind, filepath.Join(h.dir, ".codex", "config.toml"))
		h.recorded(h.shell("t1", "make"))
		e := h.run(h.command("init", "--claude"), nil)
		if e.code == 0 || !strings.Contains(e.stderr, "settings.json") {
			t.Errorf("init with settings as %s: exit %d, %s", kind, e.code, e.stderr)
		}
		if e := h.run(h.command("doctor"), nil); e.code != 1 && e.code != 0 {
			t.Errorf("doctor with settings as %s: exit %d, %s", kind, e.code, e.stderr)
		}
		h.plant(kind, filepath.Join(h.dataDir(), "key"))
		h.fails("encrypt with a key as "+kind, h.run(h.command("encrypt"), nil), 2, "key")
		h.plant(kind, filepath.Join(h.dataDir(), "cairn.log"))
		h.plant(kind, filepath.Join(h.dataDir(), "config.toml"))
		h.fails("a log as "+kind, h.record(h.shell("t2", "make")), 1, "config.toml: cannot be read: it is not a regular file")
	}
}

// TestAnImportSkipsWhatIsNoRegularFile checks that an import skips such a file in a folder and
// reads the files next to it.
func TestAnImportSkipsWhatIsNoRegularFile(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	folder := filepath.Join(h.dir, "sessions")
	for _, kind := range []string{"fifo", "endless", "loop"} {
		h.plant(kind, filepath.Join(folder, kind+".jsonl"))
	}
	line := fmt.Sprintf(`{"type":"user","sessionId":"s1","cwd":%q,"uuid":"u1","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"hello there"}}`, h.repo)
	if err := os.WriteFile(filepath.Join(folder, "good.jsonl"), []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := h.cairn("import", folder); !strings.Contains(out, "from 1 files") {
		t.Errorf("import: %s", out)
	}
	if e := h.run(h.command("import", filepath.Join(folder, "fifo.jsonl")), nil); e.code != 1 || !strings.Contains(e.stderr, "is not a regular file") {
		t.Errorf("import of a FIFO by name: exit %d, %s", e.code, e.stderr)
	}
}

// TestTheHookRecordsWithHostileFilesBesideTheStore replaces the write lock's file. The lock is only
// advisory, so the event is stored.
func TestTheHookRecordsWithHostileFilesBesideTheStore(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("usual", "make"))
	n := 1
	for _, kind := range hostile() {
		h.plant(kind, h.db()+"-lock")
		h.recorded(h.shell(kind, "make "+kind))
		n++
	}
	h.wantRows(`SELECT count(*) FROM observations`, fmt.Sprint(n))
}
