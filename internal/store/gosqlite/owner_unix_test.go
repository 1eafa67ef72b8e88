//go:build unix

package gosqlite

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Files that root creates next to another user's database belong to that user.
func TestFilesNextToADatabaseBelongToItsOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root creates files for others")
	}
	const owner = 65534
	path := filepath.Join(t.TempDir(), "x.db")
	for _, name := range []string{path, path + "-wal", path + "-shm", path + "-other"} {
		if err := makePrivate(name); err != nil {
			t.Fatal(err)
		}
		if name == path {
			if err := os.Chown(path, owner, owner); err != nil {
				t.Skip(err)
			}
		}
	}
	for suffix, want := range map[string]uint32{"-wal": owner, "-shm": owner, "-other": 0} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t).Uid; got != want || info.Mode().Perm() != 0o600 {
			t.Errorf("%s belongs to %d, want %d, and has the rights %v", suffix, got, want, info.Mode())
		}
	}
}
