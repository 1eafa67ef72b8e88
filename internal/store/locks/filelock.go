package locks

import (
	"context"
	"os"
	"time"

	"github.com/gofrs/flock"

	"cairn/internal/regular"
)

// New returns the lock on a file, which is created (0600) when the lock is first
// taken. Opening the file never blocks: even a FIFO works, because the kernel can lock
// any open file.
func New(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDONLY|regular.OpenFlags), flock.SetPermissions(0o600))
}

// LockFile acquires an exclusive kernel lock on a file, which it creates (0600) if
// necessary. It waits while this or another process holds the lock. The kernel releases
// the lock of a process that dies, so the file needs no clean-up. unlock releases the
// lock; the file stays.
//
// Errors: ctx's if it ends first, else the system's if the file cannot be created or
// locked.
func LockFile(ctx context.Context, path string) (unlock func() error, err error) {
	lock := New(path)
	if _, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}
