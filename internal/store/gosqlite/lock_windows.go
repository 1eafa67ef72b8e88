package gosqlite

import (
	"errors"

	"golang.org/x/sys/windows"
)

// lock waits for the bytes of a file, against other open files of this process or
// another.
func lock(fd uintptr, write bool, off int64, n int) error {
	var flags uint32
	if write {
		flags = windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	return windows.LockFileEx(windows.Handle(fd), flags, 0, uint32(n), 0, at(off))
}

func unlock(fd uintptr, off int64, n int) error {
	return windows.UnlockFileEx(windows.Handle(fd), 0, uint32(n), 0, at(off))
}

func at(off int64) *windows.Overlapped {
	return &windows.Overlapped{Offset: uint32(off), OffsetHigh: uint32(off >> 32)}
}

// isFull reports whether an error means that the volume is full.
func isFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
