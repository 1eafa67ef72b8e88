//go:build testhooks

package memory

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
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
func (b *Service) PanicNext(memory string) {
	b.shards.all[shardOf(memory, len(b.shards.all)-1)].hooks.trap.Store(true)
}

// Hold occupies the worker of a memory until the channel is closed. It returns when the worker is
// occupied. Errors are those of any job.
func (b *Service) Hold(ctx context.Context, memory string, until <-chan struct{}) error {
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- b.shards.run(ctx, memory, func(context.Context) error {
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

// Counts are numbers of one memory in the store.
type Counts struct {
	Entries  int   `json:"entries"`  // rows, inflight ones too
	Inflight int   `json:"inflight"` // of them, not confirmed
	Changes  int   `json:"changes"`  // in the log, confirms and pulled ones too
	Failures int   `json:"failures"` // refused permanently, neither retried nor discarded
	Position int64 `json:"position"` // acked_seq: the hub has the log up to here
}

const (
	countRows = `SELECT (SELECT count(*) FROM memory_entries WHERE memory_id = ?1),
(SELECT count(*) FROM memory_entries WHERE memory_id = ?1 AND synced = 0),
(SELECT count(*) FROM changes WHERE stream = (SELECT id FROM symbols WHERE text = ?1)),
(SELECT count(*) FROM set_aside WHERE follower = 'replication' AND lane = ?1), ifnull((SELECT acked_seq FROM memory_streams WHERE stream = ?1), 0)`
	countContextRows = `SELECT count(*) FROM memory_contexts WHERE memory_id = ?`
	selectStreamOf   = `SELECT s.stream, u.user_id, ifnull(u.hub_url, '') FROM memory_streams s JOIN memory_users u USING (user_id)
WHERE s.stream = ?1 OR s.remote_id = ?1`
)

// Counts counts the rows of a memory, by its id here; zeros for an unknown one.
func (b *Service) Counts(ctx context.Context, memory string) (c Counts, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&c.Entries, &c.Inflight, &c.Changes, &c.Failures, &c.Position}, countRows, memory)
	})
	return c, err
}

// ContextRows counts the rows of a memory's context, by its id here.
func (b *Service) ContextRows(ctx context.Context, memory string) (n int, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.Get(ctx, []any{&n}, countContextRows, memory) })
	return n, err
}

// Here returns the local id of a memory or vault that is named by its local id or the hub's, and
// its owner. CodeInvalid for a text that is not a UUID, CodeNotFound if there is none.
func (b *Service) Here(ctx context.Context, memory string) (id string, owner User, err error) {
	if memory, err = rules.UUIDArg("memory", memory); err != nil {
		return "", owner, err
	}
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return ignoreNone(tx.Get(ctx, []any{&id, &owner.UserID, &owner.HubURL}, selectStreamOf, memory))
	})
	if err == nil && id == "" {
		err = notFound("memory")
	}
	return id, owner, err
}

// WaitSynced waits until no change of a memory or vault is pending, including later changes.
// Without a hub no change is ever pending. CodeAwaitTimeout after the timeout, and the errors of
// Here.
func (b *Service) WaitSynced(ctx context.Context, memory string, timeout time.Duration) error {
	stream, owner, err := b.Here(ctx, memory)
	if err != nil || owner.HubURL == "" {
		return err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		seen := b.progress.changed()
		s, _, err := b.Stream(ctx, stream)
		if err != nil {
			return err
		}
		done, err := b.consistent(ctx, stream, s.Head)
		if fault.HasCode(err, CodeReplicationFailed) { // finished, with an error
			done, err = s.Acked >= s.Head, nil
		}
		if err == nil && !done {
			err = b.pause(ctx, seen, timer.C)
		}
		if errors.Is(err, errTime) {
			return b.awaited(ctx, stream, s.Head)
		}
		if done || err != nil {
			return err
		}
	}
}
