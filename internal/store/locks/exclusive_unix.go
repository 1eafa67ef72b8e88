//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package locks

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// The position of SQLite's locks in a database file: every open connection to a store
// holds a shared lock on these bytes.
const (
	lockStart = 1 << 30
	lockSize  = 512
)

func fileLock(kind int16) *syscall.Flock_t {
	return &syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: lockStart, Len: lockSize}
}

// Exclusive prevents other processes from opening the database in f. It returns false if
// another process has it open. The lock ends when this process closes any handle of the file.
func Exclusive(f *os.File) (bool, error) {
	err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, fileLock(syscall.F_WRLCK))
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// IsOpenElsewhere reports whether another process has the database open.
func IsOpenElsewhere(f *os.File) (bool, error) {
	lock := fileLock(syscall.F_WRLCK)
	err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, lock)
	return lock.Type != syscall.F_UNLCK, err
}

// ReleaseToReplace releases everything that prevents replacing a file. On Unix nothing does,
// so the lock stays.
func ReleaseToReplace(*os.File) error { return nil }
