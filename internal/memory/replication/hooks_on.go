//go:build testhooks

package replication

import (
	"context"
	"errors"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

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
func (b *Replication) Counts(ctx context.Context, memoryID string) (c Counts, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&c.Entries, &c.Inflight, &c.Changes, &c.Failures, &c.Position}, countRows, memoryID)
	})
	return c, err
}

// ContextRows counts the rows of a memory's context, by its id here.
func (b *Replication) ContextRows(ctx context.Context, memoryID string) (n int, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&n}, countContextRows, memoryID)
	})
	return n, err
}

// Here returns the local id of a memory or vault that is named by its local id or the hub's, and
// its owner. CodeInvalid for a text that is not a UUID, CodeNotFound if there is none.
func (b *Replication) Here(ctx context.Context, memoryID string) (id string, owner memory.User, err error) {
	if memoryID, err = rules.UUIDArg("memory", memoryID); err != nil {
		return "", owner, err
	}
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return memory.IgnoreNone(tx.Get(ctx, []any{&id, &owner.UserID, &owner.HubURL}, selectStreamOf, memoryID))
	})
	if err == nil && id == "" {
		err = memory.NotFound("memory")
	}
	return id, owner, err
}

// WaitSynced waits until no change of a memory or vault is pending, including later changes.
// Without a hub no change is ever pending. CodeAwaitTimeout after the timeout, and the errors of
// Here.
func (b *Replication) WaitSynced(ctx context.Context, memoryID string, timeout time.Duration) error {
	stream, owner, err := b.Here(ctx, memoryID)
	if err != nil || owner.HubURL == "" {
		return err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		seen := b.Progress.Changed()
		s, _, err := b.Stream(ctx, stream)
		if err != nil {
			return err
		}
		done, err := b.consistent(ctx, stream, s.Head)
		if fault.HasCode(err, memory.CodeReplicationFailed) { // finished, with an error
			done, err = s.Acked >= s.Head, nil
		}
		if err == nil && !done {
			err = b.Pause(ctx, seen, timer.C)
		}
		if errors.Is(err, memory.ErrTimeout) {
			return b.awaited(ctx, stream, s.Head)
		}
		if done || err != nil {
			return err
		}
	}
}
