package memory

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrTimeout is the error of Pause after the timeout.
var ErrTimeout = errors.New("time is up")

// Pause waits until the replication in this process has changed something, or for a moment, after
// which the caller checks for changes by other processes.
func (b *Kernel) Pause(ctx context.Context, changed <-chan struct{}, over <-chan time.Time) error {
	look := time.NewTimer(25 * time.Millisecond)
	defer look.Stop()
	select {
	case <-changed:
	case <-look.C:
	case <-over:
		return ErrTimeout
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Progress wakes the goroutines that wait for a hub's response.
type Progress struct {
	mu   sync.Mutex
	next chan struct{}
}

// Changed returns a channel that the next Notify closes.
func (p *Progress) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = make(chan struct{})
	}
	return p.next
}

// Notify wakes the goroutines that wait.
func (p *Progress) Notify() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil {
		close(p.next)
		p.next = nil
	}
}
