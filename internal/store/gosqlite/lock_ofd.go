//go:build linux || darwin

package gosqlite

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// lock waits for the bytes of a file, against other open files of this process or
// another.
func lock(fd uintptr, write bool, off int64, n int) error {
	if write {
		return setLock(fd, unix.F_WRLCK, off, n)
	}
	return setLock(fd, unix.F_RDLCK, off, n)
}

func unlock(fd uintptr, off int64, n int) error { return setLock(fd, unix.F_UNLCK, off, n) }

func setLock(fd uintptr, typ int16, off int64, n int) error {
	for {
		l := unix.Flock_t{Type: typ, Whence: io.SeekStart, Start: off, Len: int64(n)}
		if err := unix.FcntlFlock(fd, setLockWait, &l); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// isFull reports whether an error means that the volume is full.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }
