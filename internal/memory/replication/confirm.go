package replication

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"cairn/internal/crashpoint"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/vaults"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// Outcome is the hub's response to one change.
type Outcome struct {
	Stream       string
	Seq          int64
	Status       int       // HTTP
	EntryID      string    // of a confirmed entry
	HubSeq       int64     // the hub's number of the change
	CreationTime time.Time // canonical, of a confirmed entry
	Code         string    // of a refusal
	Message      string
}

const (
	updateContextSynced = `UPDATE memory_contexts SET synced = 1, hub_seq = ?2, updated_ns = ifnull(?3, updated_ns) WHERE change_seq = ?1`
	selectOwner         = `SELECT user_id FROM memory_streams WHERE stream = ?`
	selectChangeOf      = `SELECT seq FROM memory_contexts WHERE change_seq = ?`
)

// replicatorTx runs a transaction of the replicator, which acts for the owners of streams. It fails
// with CodeLeft if the membership has ended, and with CodeLeaseLost if a lease was lost.
func (b *Replication) replicatorTx(ctx context.Context, m memory.Membership, leases []follow.Lease, fn func(ctx context.Context, s *memory.CallTx) error) error {
	defer b.Progress.Notify()
	var s *memory.CallTx
	err := b.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := cmp.Or(checkMember(ctx, tx, m), follow.CheckLeases(ctx, tx, memory.PushFollower, leases)); err != nil {
			return err
		}
		s = &memory.CallTx{Kernel: b.Kernel, Tx: tx}
		return fn(ctx, s)
	})
	if err == nil {
		for _, took := range s.Syncs {
			b.Measures.Syncs.Add(took)
		}
	}
	return err
}

// Confirm stores the outcomes of changes that the hub has accepted, in one transaction: entries
// become committed, deletes delete their rows, and positions advance. Outcomes of a stream are
// ascending. Confirm is idempotent. Errors besides the store's: CodeLeaseLost, CodeLeft; then
// nothing is stored.
func (b *Replication) Confirm(ctx context.Context, m memory.Membership, leases []follow.Lease, outcomes []Outcome) error {
	err := b.replicatorTx(ctx, m, leases, func(ctx context.Context, s *memory.CallTx) error {
		last, seen := map[string]int64{}, map[string]int64{}
		for _, o := range outcomes {
			c, ok, err := change(ctx, s, o)
			if err == nil && ok {
				err = confirm(ctx, s, c, o)
			}
			if err != nil {
				return err
			}
			last[o.Stream], seen[o.Stream] = o.Seq, max(seen[o.Stream], o.HubSeq)
		}
		for stream, seq := range last {
			if err := acked(ctx, s, stream, seq); err != nil {
				return err
			}
			if err := s.Exec(ctx, updateSeen, stream, seen[stream]); err != nil {
				return err
			}
		}
		crashpoint.Pass("before_flip_commit")
		return nil
	})
	if err == nil {
		crashpoint.Pass("after_flip_commit")
	}
	return err
}

// change reads the change of an outcome and sets the scope to its memory and owner.
func change(ctx context.Context, s *memory.CallTx, o Outcome) (c store.Change, ok bool, err error) {
	changes, err := s.Tx.Changes(ctx, o.Seq-1, 1)
	if err != nil || len(changes) == 0 || changes[0].Seq != o.Seq || changes[0].Stream != o.Stream {
		return c, false, err
	}
	owner := s.Memory.ActorID
	if s.Memory.MemoryID != o.Stream || owner == "" {
		if err = memory.IgnoreNone(s.Tx.Get(ctx, []any{&owner}, selectOwner, o.Stream)); err != nil {
			return c, false, err
		}
	}
	s.User = memory.User{UserID: owner}
	s.Memory = memory.MemoryRow{}
	s.Memory.MemoryID, s.Memory.ActorID, s.Memory.Project = o.Stream, owner, changes[0].Project
	return changes[0], true, nil
}

func confirm(ctx context.Context, s *memory.CallTx, c store.Change, o Outcome) error {
	switch c.Kind + " " + c.Op {
	case memory.KindEntry + " " + store.OpPut:
		e, found, err := contents.EntryNamed(ctx, s, c.ID)
		if err != nil || !found {
			return err
		}
		return contents.Flip(ctx, s, &e, o.EntryID, memory.Clamped(o.CreationTime), o.HubSeq)
	case memory.KindEntry + " " + store.OpDelete:
		e, found, err := contents.EntryNamed(ctx, s, c.ID)
		if err != nil || !found {
			return err
		}
		return contents.RemoveEntry(ctx, s, &e)
	case memory.KindContext + " " + store.OpPut:
		var at any // the hub's time, if it differs
		if !o.CreationTime.IsZero() {
			at = memory.Clamped(o.CreationTime)
		}
		return s.Exec(ctx, updateContextSynced, c.Seq, o.HubSeq, at)
	case memory.KindMemory + " " + store.OpDelete:
		return contents.RemoveMemory(ctx, s, c.Stream, true)
	case memory.KindVault + " " + store.OpDelete:
		return contents.RemoveVault(ctx, s, c.ID)
	}
	return nil
}

// Fail stores that the hub has refused a change permanently. Its row stays inflight with a failure,
// and the stream continues after it, or halts. A refused delete is withdrawn. A refused put of a
// memory always halts its stream, because all other changes would fail.
func (b *Replication) Fail(ctx context.Context, m memory.Membership, leases []follow.Lease, o Outcome, halt bool) error {
	return b.replicatorTx(ctx, m, leases, func(ctx context.Context, s *memory.CallTx) error {
		c, ok, err := change(ctx, s, o)
		if err != nil || !ok {
			return err
		}
		local, err := localOf(ctx, s, c)
		if err != nil {
			return err
		}
		if err := s.SetAside(ctx, o.Stream, o.Seq, memory.HubRefusal{LocalID: local, Status: o.Status, Code: o.Code, Message: o.Message}); err != nil {
			return err
		}
		if c.Op == store.OpDelete {
			err = refuseDelete(ctx, s, c, local)
		} else if halt || c.Kind == memory.KindMemory && c.Op == store.OpPut {
			return haltStream(ctx, s, o.Stream, o.Code)
		}
		if err == nil {
			err = acked(ctx, s, o.Stream, o.Seq)
		}
		return err
	})
}

// refuseDelete makes visible what a refused delete has hidden.
func refuseDelete(ctx context.Context, s *memory.CallTx, c store.Change, local string) error {
	d := vaults.Deletion{Seq: c.Seq, Kind: c.Kind, ID: c.ID}
	if c.Kind == memory.KindEntry {
		e, found, err := contents.EntryNamed(ctx, s, local)
		if err != nil || !found {
			return err
		}
		d.ID = contents.LocalID(e.Key)
	}
	return d.Cancel(ctx, s)
}

// localOf returns the name that callers know for the object of a change: the localId of an entry,
// context-N, an entryId, or the id of the memory or vault.
func localOf(ctx context.Context, s *memory.CallTx, c store.Change) (string, error) {
	if c.Kind != memory.KindContext {
		return c.ID, nil
	}
	var n int64
	err := s.Tx.Get(ctx, []any{&n}, selectChangeOf, c.Seq)
	if errors.Is(err, sql.ErrNoRows) {
		return c.ID, nil
	}
	return contents.ContextName(n), err
}

// SetRemote stores the hub's id of a memory or vault whose title existed there, and confirms its
// put (memories §10.3).
func (b *Replication) SetRemote(ctx context.Context, m memory.Membership, leases []follow.Lease, stream string, seq int64, remote string) error {
	return b.replicatorTx(ctx, m, leases, func(ctx context.Context, s *memory.CallTx) error {
		return cmp.Or(s.SetRemote(ctx, stream, remote), acked(ctx, s, stream, seq))
	})
}
