package locks

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Fair is a lock for which writing processes queue. With SQLite's own lock they would
// sleep and retry, which starves some for seconds. The kernel grants this file lock in order.
// It only serves fairness among cairn's processes; SQLite's lock protects the store. A process
// that cannot queue tries SQLite's lock directly.
type Fair struct {
	lock *flock.Flock
	came chan error // result of the wait for the lock

	mu     sync.Mutex
	held   bool
	asking bool // a goroutine waits for the lock; the wait cannot be interrupted
	wanted bool // a goroutine still needs the lock
}

// ErrNotGranted means that the lock was not granted in time.
var ErrNotGranted = errors.New("other processes are writing")

// NewFair returns the lock for which the writers of the store at path queue.
func NewFair(path string) Fair {
	return Fair{
		lock: New(path + "-lock"),
		came: make(chan error, 1),
	}
}

// Enter waits for the lock until a time or the end of ctx. The caller must call Leave
// before it enters again, whatever Enter returned.
func (l *Fair) Enter(ctx context.Context, until time.Time) error {
	l.mu.Lock()
	if !l.asking {
		var err error
		if l.held, err = l.lock.TryLock(); l.held || err != nil {
			l.mu.Unlock()
			return err
		}
		l.asking = true
		go l.ask()
	}
	l.wanted = true
	l.mu.Unlock()

	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	err := ErrNotGranted
	select {
	case err := <-l.came:
		return err
	case <-ctx.Done():
		err = ctx.Err()
	case <-t.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.wanted {
		return <-l.came
	}
	l.wanted = false
	return err
}

// ask waits for the lock. If no goroutine needs it any more when it is granted, ask releases
// it immediately. Until then a later Enter takes over the wait.
func (l *Fair) ask() {
	err := l.lock.Lock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking = false
	if l.wanted {
		l.wanted, l.held = false, err == nil
		l.came <- err
	} else if err == nil {
		l.unlock()
	}
}

// Leave releases the lock for the next process.
func (l *Fair) Leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		l.unlock()
	}
}

// unlock never fails for a held lock. If it did, the garbage collector would close the
// file and so release the lock.
func (l *Fair) unlock() {
	l.held = false
	if l.lock.Unlock() != nil {
		l.lock = New(l.lock.Path())
	}
}
