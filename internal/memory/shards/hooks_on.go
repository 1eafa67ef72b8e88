//go:build testhooks

package shards

import (
	"context"
	"sync/atomic"
)

// shardHooks lets a test control a worker (memories §15).
type shardHooks struct{ trap atomic.Bool }

// enter is called by the worker before each job.
func (h *shardHooks) enter() {
	if h.trap.Swap(false) {
		panic("a test wants it")
	}
}

// PanicNext makes the next job on a memory's shard panic.
func (s *Shards) PanicNext(memory string) {
	s.all[shardOf(memory, len(s.all)-1)].hooks.trap.Store(true)
}

// Hold occupies the worker of a memory until the channel is closed. It returns when the worker is
// occupied. Errors are those of any job.
func (s *Shards) Hold(ctx context.Context, memory string, until <-chan struct{}) error {
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.Run(ctx, memory, func(context.Context) error {
			close(began)
			<-until
			return nil
		})
	}()
	select {
	case <-began:
		return nil
	case err := <-ended:
		return err
	}
}
