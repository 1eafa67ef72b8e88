package store

import (
	"context"
	"os"
	"time"

	"github.com/gofrs/flock"

	"cairn/internal/regular"
)

// newLock returns the lock on a file, which is created (0600) when the lock is first
// taken. Taking it never blocks in opening the file: a FIFO in its place serves as well,
// because the kernel locks any open file.
func newLock(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDONLY|regular.OpenFlags), flock.SetPermissions(0o600))
}

// LockFile waits until nobody else, in this process or another, holds the
// kernel's lock on a file, which it makes (0600) if it is not there, and takes
// it. The kernel frees the lock of a process that dies, so a file that was left
// behind needs no clean-up. unlock gives it back; the file stays.
//
// Errors: ctx's when it ends first, else the system's when the file cannot be
// made or locked.
func LockFile(ctx context.Context, path string) (unlock func() error, err error) {
	lock := newLock(path)
	if _, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}
