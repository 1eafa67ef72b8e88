package locks

import (
	"errors"
	"os"
	"syscall"
)

const errSharing = syscall.Errno(32)

// Exclusive reports whether only this process has the database in f open. It takes no
// lock: Windows does not let an open file be replaced.
func Exclusive(f *os.File) (bool, error) {
	other, err := IsOpenElsewhere(f)
	return !other, err
}

// IsOpenElsewhere reports whether the database is open through a handle other than f.
func IsOpenElsewhere(f *os.File) (bool, error) {
	name, err := syscall.UTF16PtrFromString(f.Name())
	if err != nil {
		return false, err
	}
	// This succeeds only if the other handles only read. f only reads, but SQLite's
	// connections also write.
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ, syscall.FILE_SHARE_READ, nil,
		syscall.OPEN_EXISTING, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errSharing) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, syscall.CloseHandle(h)
}

// ReleaseToReplace closes the file: an open one cannot be replaced.
func ReleaseToReplace(f *os.File) error { return f.Close() }
