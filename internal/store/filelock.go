package store

import (
	"context"
	"time"

	"github.com/gofrs/flock"
)

// LockFile waits until nobody else, in this process or another, holds the
// kernel's lock on a file, which it makes (0600) if it is not there, and takes
// it. The kernel frees the lock of a process that dies, so a file that was left
// behind needs no clean-up. unlock gives it back; the file stays.
//
// Errors: ctx's when it ends first, else the system's when the file cannot be
// made or locked.
func LockFile(ctx context.Context, path string) (unlock func() error, err error) {
	lock := flock.New(path, flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}
