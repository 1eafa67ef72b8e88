//go:build unix

package regular

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The paths are a FIFO that has no writer, an endless device, a socket, a folder, links
// to them, and a link to itself. Another way of opening would block or never end.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path("socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := os.WriteFile(path("file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"to-fifo": "fifo", "to-zero": "/dev/zero", "to-null": "/dev/null", "to-dir": dir, "loop": "loop", "to-file": "file",
	} {
		if err := os.Symlink(to, path(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"fifo", "socket", "to-fifo", "to-zero", "to-null", "to-dir", "."} {
		if text, err := Read(path(name), 8); !errors.Is(err, ErrNotRegular) || text != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := Read(path("loop"), 8); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to itself: %v", err)
	}
	if _, err := Read(path("none"), 8); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if text, err := Read(path("to-file"), 8); string(text) != "text" || err != nil {
		t.Errorf("a link to a file: %q, %v", text, err)
	}
}

// The claimed size of a file can differ from its real size.
func TestReadingIsLimited(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{0, 1, 9, 10, 11, 3 << 20} {
		want := bytes.Repeat([]byte("x"), size)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := Read(path, 10)
		if large := size > 10; large != errors.Is(err, ErrTooLarge) || !large && (err != nil || text == nil || !bytes.Equal(text, want)) {
			t.Errorf("%d bytes: %q, %v", size, text, err)
		}
		if head, err := ReadHead(path, 10); err != nil || !bytes.Equal(head, want[:min(size, 10)]) {
			t.Errorf("the beginning of %d bytes: %q, %v", size, head, err)
		}
		if text, err := Read(path, 4<<20); err != nil || !bytes.Equal(text, want) {
			t.Errorf("%d bytes within 4 MiB: %d, %v", size, len(text), err)
		}
	}
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip("the file system has no sparse files of this size")
	}
	if _, err := Read(path, MaxSettings); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a sparse file of 1 TiB: %v", err)
	}
	if _, err := os.Stat("/proc/self/status"); err == nil { // claims to be empty
		if text, err := Read("/proc/self/status", MaxSettings); err != nil || !bytes.Contains(text, []byte("VmPeak")) {
			t.Errorf("a file that claims no size: %q, %v", text, err)
		}
	}
}
