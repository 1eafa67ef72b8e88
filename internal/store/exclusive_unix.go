//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package store

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Where SQLite's own locks lie in a database file: every open connection to a
// store holds a shared one on these bytes.
const (
	lockStart = 1 << 30
	lockSize  = 512
)

func fileLock(kind int16) *syscall.Flock_t {
	return &syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: lockStart, Len: lockSize}
}

// lockAlone keeps every other process from opening the database in f; false if
// one has it open. The lock ends when this process closes the file anywhere.
func lockAlone(f *os.File) (bool, error) {
	err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, fileLock(syscall.F_WRLCK))
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// held reports whether another process has the database open.
func held(f *os.File) (bool, error) {
	lock := fileLock(syscall.F_WRLCK)
	err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, lock)
	return lock.Type != syscall.F_UNLCK, err
}

// mayWrite reports whether the rights of a file or folder let this user write it.
func mayWrite(path string) bool {
	const toWrite = 2
	return syscall.Access(path, toWrite) == nil
}

// releaseToReplace gives up what would keep a file from being replaced: nothing
// here, and with it the lock stays.
func releaseToReplace(*os.File) error { return nil }
