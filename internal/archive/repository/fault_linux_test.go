package repository

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cairn/internal/fault"
)

// tmpfs mounts a small file system for the test, or skips it.
func tmpfs(t *testing.T, size string) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("cairn", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAFullDiskFailsClearlyAndIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, "4m")
	a := openArchive(t, filepath.Join(dir, "shop"), "")
	a.archive("first", "a", "1")
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	_ = f.Close()
	noise := strings.Repeat("0123456789abcdef", 4096) // packs well, so that only the work tree needs the room
	for i := range 3 {
		if _, err := a.WriteFiles(t.Context(), files("b", noise)); !fault.HasCode(err, CodeFiles) || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%d: %v", i, err)
		}
		a.fails(CodeGit, "space", files("b", noise)...)
		a.isIntact()
	}
	if got, err := os.ReadFile(filepath.Join(a.Dir(), "a")); string(got) != "1" {
		t.Error(string(got), err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	a.archive("second", "b", noise)
	a.holds("a", "1", "b", noise)
	a.clean()
}

func TestAReadOnlyFolderFailsClearlyAndIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, "16m")
	a := openArchive(t, filepath.Join(dir, "shop"), "")
	a.archive("first", "a", "1")
	_ = a.Close() // an open file would forbid it
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	a.fails(CodeGit, "ead-only file system", files("b", "2")...)
	if _, err := a.WriteFiles(t.Context(), files("b", "2")); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "read-only file system") {
		t.Error(err)
	}
	if _, err := Open(t.Context(), filepath.Join(dir, "other"), "", 0); fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
	if tree, err := a.Tree(t.Context()); err != nil || len(tree) != 2 {
		t.Error(tree, err)
	}
	_ = a.Close()
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	a.archive("second", "b", "2")
	a.holds("a", "1", "b", "2")
}
