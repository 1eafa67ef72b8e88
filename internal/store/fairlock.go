package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// line is where the processes that want to write queue. SQLite lets them sleep
// and try again, which starves some for seconds; the kernel serves this file
// lock in turn. It is a courtesy among processes of cairn: what protects the
// store is SQLite's lock, and a process that cannot queue tries its luck there.
type line struct {
	lock *flock.Flock
	came chan error // how the wait for the lock ended, for the one that wants it

	mu     sync.Mutex
	held   bool
	asking bool // a goroutine waits for the lock, which nothing can interrupt
	wanted bool // somebody still wants what it waits for
}

// errLine says that the lock did not come in time.
var errLine = errors.New("other processes are writing")

func newLine(path string) line {
	return line{
		lock: newLock(path + "-lock"),
		came: make(chan error, 1),
	}
}

// enter waits for the lock until a time or the end of ctx. Whoever entered
// leaves, whatever enter returned, before it enters again.
func (l *line) enter(ctx context.Context, until time.Time) error {
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
	err := errLine
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

// ask waits for the lock. If nobody wants it any more when it comes, it is
// given back at once; until then a later entrant takes over the wait.
func (l *line) ask() {
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

// leave lets the next one in.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		l.unlock()
	}
}

// unlock never fails for a lock that is held. If it did, the file would be
// closed, and the lock freed, once the collector finds it forgotten.
func (l *line) unlock() {
	l.held = false
	if l.lock.Unlock() != nil {
		l.lock = newLock(l.lock.Path())
	}
}
