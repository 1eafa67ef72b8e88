package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// holds checks that the folder of path contains one file, with the given text and mode.
func holds(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	all, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(all) != 1 || all[0].Name() != filepath.Base(path) {
		t.Fatalf("the folder holds %v, %v", all, err)
	}
	data, err := os.ReadFile(path)
	info, gone := os.Stat(path)
	if errors.Join(err, gone) != nil || string(data) != text || runtime.GOOS != "windows" && info.Mode().Perm() != mode {
		t.Errorf("%s holds %q with %v, %v", path, data, info.Mode(), errors.Join(err, gone))
	}
}

func TestAFileIsReplacedAsAWholeOrStays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, []byte("one"), 0o755); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "one", 0o755)
	f, err := Create(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("half"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "one" {
		t.Errorf("before Commit there is %q, %v", data, err)
	}
	if err := f.Discard(); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "one", 0o755)
	if err := Write(path, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "two", 0o600)
}

func TestAFailureLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inTheWay := filepath.Join(dir, "folder", "inside")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Dir(inTheWay), []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("left: %v, %v", all, err)
	}
	if err := Write(filepath.Join(dir, "none", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without its folder: %v", err)
	}
}

func TestOneOfManyMakesAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "private", "file")
	var makers atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			made, err := MakePrivate(path, []byte("the first"))
			if err != nil {
				t.Error(err)
			}
			if made {
				makers.Add(1)
			}
		})
	}
	all.Wait()
	if makers.Load() != 1 {
		t.Errorf("%d made it", makers.Load())
	}
	if made, err := MakePrivate(path, []byte("later")); made || err != nil {
		t.Errorf("again: %v, %v", made, err)
	}
	holds(t, path, "the first", 0o600)
	if err := WritePrivate(path, []byte("replaced")); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "replaced", 0o600)
	if info, err := os.Stat(filepath.Dir(path)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
}
