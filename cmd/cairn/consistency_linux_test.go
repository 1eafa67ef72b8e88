package main

import (
	"os"
	"path/filepath"
	"syscall"
)

// onSmallVolume puts the data folder on a separate small volume. By the settings, this volume has
// enough free space.
func (h *home) onSmallVolume() {
	h.tmpfs("16m")
	h.settle("[disk]\ncritical_mb = 0\nfatal_mb = 0\n")
}

// fillVolume uses up all space, including reusable space in the log: a reader prevents its reuse.
func (w *town) fillVolume() (gone func()) {
	db := w.raw()
	w.sqlite(db, "PRAGMA wal_checkpoint(TRUNCATE)", "CREATE TABLE forget (id)", "DROP TABLE forget", "BEGIN", "SELECT count(*) FROM changes")
	free := w.fill(0)
	return func() {
		free()
		w.sqlite(db, "ROLLBACK")
		w.closes(db)
	}
}

// faultsOfArchiveVolumes returns the faults of a volume that contains only the archive.
func faultsOfArchiveVolumes() map[string]archiveFault {
	root := func(w *town) string { return filepath.Join(w.dataDir(), "archive") }
	remount := func(flags uintptr) func(w *town) error {
		return func(w *town) error { return syscall.Mount("", root(w), "", syscall.MS_REMOUNT|flags, "") }
	}
	return map[string]archiveFault{
		"the root is read-only": {prepare: (*home).archiveOnSmallVolume, make: remount(syscall.MS_RDONLY), repair: remount(0), whole: true, anew: true},
		"the volume is full": {
			prepare: (*home).archiveOnSmallVolume, whole: true,
			make:   func(w *town) error { return fillUp(filepath.Join(root(w), ".filler")) },
			repair: func(w *town) error { return os.Remove(filepath.Join(root(w), ".filler")) },
		},
	}
}

func (h *home) archiveOnSmallVolume() {
	h.t.Helper()
	h.settle("[disk]\ncritical_mb = 0\nfatal_mb = 0\n")
	dir := filepath.Join(h.dataDir(), "archive")
	if err := os.Mkdir(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := syscall.Mount("cairn", dir, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		h.t.Skipf("a file system cannot be mounted here: %v", err)
	}
	h.t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			h.t.Error(err)
		}
	})
}

// fillUp uses up all space on a volume.
func fillUp(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	return f.Close()
}
