package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"time"

	"cairn/internal/crashpoint"
	"cairn/internal/fault"
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

// confirmDoc is the document of a confirm.
type confirmDoc struct {
	LocalID      string `json:"localId"`
	EntryID      string `json:"entryId"`
	CreationTime Time   `json:"creationTime"`
	HubSeq       int64  `json:"hubSeq"`
}

const (
	flipEntry = `UPDATE memory_entries SET entry_id = ?2, canonical_ns = ?3, hub_seq = ?4, synced = 1, synced_ns = ?5 WHERE key = ?1`
	// Another row with the same entryId, which was pulled under another key.
	selectTwin     = `SELECT key FROM memory_entries WHERE entry_id = ? AND key <> ?`
	selectBuried   = `SELECT EXISTS (SELECT 1 FROM memory_tombstones WHERE memory_id = ?1 AND id IN (?2, ?3))`
	selectOwner    = `SELECT user_id FROM memory_streams WHERE stream = ?`
	selectChangeOf = `SELECT seq FROM memory_contexts WHERE change_seq = ?`
)

// replicatorTx runs a transaction of the replicator, which acts for the owners of streams. It fails
// with CodeLeft if the membership has ended, and with CodeLeaseLost if a lease was lost.
func (b *Service) replicatorTx(ctx context.Context, m Membership, leases []follow.Lease, fn func(ctx context.Context, s *callTx) error) error {
	defer b.progress.notify()
	var s *callTx
	err := b.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := firstError(checkMember(ctx, tx, m), follow.CheckLeases(ctx, tx, PushFollower, leases)); err != nil {
			return err
		}
		s = &callTx{Service: b, tx: tx}
		return fn(ctx, s)
	})
	if err == nil {
		for _, took := range s.syncs {
			b.measures.syncs.Add(took)
		}
	}
	return err
}

// Confirm stores the outcomes of changes that the hub has accepted, in one transaction: entries
// become committed, deletes delete their rows, and positions advance. Outcomes of a stream are
// ascending. Confirm is idempotent. Errors besides the store's: CodeLeaseLost, CodeLeft; then
// nothing is stored.
func (b *Service) Confirm(ctx context.Context, m Membership, leases []follow.Lease, outcomes []Outcome) error {
	err := b.replicatorTx(ctx, m, leases, func(ctx context.Context, s *callTx) error {
		last, seen := map[string]int64{}, map[string]int64{}
		for _, o := range outcomes {
			c, ok, err := s.change(ctx, o)
			if err == nil && ok {
				err = s.confirm(ctx, c, o)
			}
			if err != nil {
				return err
			}
			last[o.Stream], seen[o.Stream] = o.Seq, max(seen[o.Stream], o.HubSeq)
		}
		for stream, seq := range last {
			if err := s.acked(ctx, stream, seq); err != nil {
				return err
			}
			if _, err := s.tx.Exec(ctx, updateSeen, stream, seen[stream]); err != nil {
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
func (s *callTx) change(ctx context.Context, o Outcome) (c store.Change, ok bool, err error) {
	changes, err := s.tx.Changes(ctx, o.Seq-1, 1)
	if err != nil || len(changes) == 0 || changes[0].Seq != o.Seq || changes[0].Stream != o.Stream {
		return c, false, err
	}
	owner := s.m.ActorID
	if s.m.MemoryID != o.Stream || owner == "" {
		if err = ignoreNone(s.tx.Get(ctx, []any{&owner}, selectOwner, o.Stream)); err != nil {
			return c, false, err
		}
	}
	s.u = user{ID: owner}
	s.m = memoryRow{}
	s.m.MemoryID, s.m.ActorID, s.m.project = o.Stream, owner, changes[0].Project
	return changes[0], true, nil
}

func (s *callTx) confirm(ctx context.Context, c store.Change, o Outcome) error {
	switch c.Kind + " " + c.Op {
	case KindEntry + " " + store.OpPut:
		e, found, err := s.named(ctx, c.ID)
		if err != nil || !found {
			return err
		}
		return s.flip(ctx, &e, o.EntryID, clamped(o.CreationTime), o.HubSeq)
	case KindEntry + " " + store.OpDelete:
		e, found, err := s.named(ctx, c.ID)
		if err != nil || !found {
			return err
		}
		return s.removeEntry(ctx, &e)
	case KindContext + " " + store.OpPut:
		var at any // the hub's time, if it differs
		if !o.CreationTime.IsZero() {
			at = clamped(o.CreationTime)
		}
		_, err := s.tx.Exec(ctx, updateContextSynced, c.Seq, o.HubSeq, at)
		return err
	case KindMemory + " " + store.OpDelete:
		return s.removeMemory(ctx, c.Stream, true)
	case KindVault + " " + store.OpDelete:
		return s.removeVault(ctx, c.ID)
	}
	return nil
}

// named finds the row of an entry by the id of a change: an entryId or a localId.
func (s *callTx) named(ctx context.Context, id string) (entryRow, bool, error) {
	if key, err := parseLocalID(id); err == nil {
		return s.entry(ctx, selectByRow, key)
	}
	return s.entry(ctx, selectByID, id)
}

// flip commits a row with the hub's id and time, in one statement (memories P5). It is idempotent.
// A row that was deleted meanwhile is removed (P10).
func (s *callTx) flip(ctx context.Context, e *entryRow, id string, at Time, hubSeq int64) error {
	if id == "" || e.synced && e.EntryID == id && e.CreationTime == at && e.hubSeq == hubSeq {
		return nil
	}
	var buried bool
	if err := s.tx.Get(ctx, []any{&buried}, selectBuried, e.MemoryID, id, e.hubKey); err != nil {
		return err
	}
	if buried {
		e.EntryID = id
		return s.removeEntry(ctx, e)
	}
	var twin int64
	err := s.tx.Get(ctx, []any{&twin}, selectTwin, id, e.key)
	if err == nil {
		err = s.deleteRow(ctx, twin)
	}
	if ignoreNone(err) != nil {
		return err
	}
	if !e.synced && hubSeq > 0 {
		s.syncs = append(s.syncs, time.Duration(s.tx.Now().UnixNano()-int64(e.creationNS)))
	}
	fresh := !e.synced || e.EntryID != id
	moved := e.CreationTime != at
	e.synced, e.EntryID, e.CreationTime, e.hubSeq = true, id, at, hubSeq
	if _, err := s.tx.Exec(ctx, flipEntry, e.key, id, at, hubSeq, s.tx.Now().UnixNano()); err != nil {
		return err
	}
	s.m.MemoryID, s.m.lastNS, s.m.lastCanonicalNS = e.MemoryID, 0, int64(at)
	err = s.noteTimes(ctx)
	if err == nil && fresh {
		err = s.index(ctx, e)
	}
	if err == nil && (fresh || moved) {
		err = s.logConfirm(ctx, e)
	}
	return err
}

func (s *callTx) logConfirm(ctx context.Context, e *entryRow) error {
	doc, err := confirmation(e)
	if err == nil {
		_, err = s.tx.Append(ctx, store.Change{Project: s.m.project, Stream: e.MemoryID, Kind: KindEntry, ID: e.EntryID, Op: OpConfirm, Doc: doc})
	}
	return err
}

// Fail stores that the hub has refused a change permanently. Its row stays inflight with a failure,
// and the stream continues after it, or halts. A refused delete is withdrawn. A refused put of a
// memory always halts its stream, because all other changes would fail.
func (b *Service) Fail(ctx context.Context, m Membership, leases []follow.Lease, o Outcome, halt bool) error {
	return b.replicatorTx(ctx, m, leases, func(ctx context.Context, s *callTx) error {
		c, ok, err := s.change(ctx, o)
		if err != nil || !ok {
			return err
		}
		local, err := s.localOf(ctx, c)
		if err != nil {
			return err
		}
		if err := s.setAside(ctx, o.Stream, o.Seq, HubRefusal{local, o.Status, o.Code, o.Message}); err != nil {
			return err
		}
		if c.Op == store.OpDelete {
			err = s.refuseDelete(ctx, c, local)
		} else if halt || c.Kind == KindMemory && c.Op == store.OpPut {
			return s.halt(ctx, o.Stream, o.Code)
		}
		if err == nil {
			err = s.acked(ctx, o.Stream, o.Seq)
		}
		return err
	})
}

// refuseDelete makes visible what a refused delete has hidden.
func (s *callTx) refuseDelete(ctx context.Context, c store.Change, local string) error {
	d := deletion{Seq: c.Seq, Kind: c.Kind, ID: c.ID}
	if c.Kind == KindEntry {
		e, found, err := s.named(ctx, local)
		if err != nil || !found {
			return err
		}
		d.ID = localID(e.key)
	}
	shown, err := d.show(ctx, s.tx)
	if err != nil || !shown {
		return err
	}
	return s.undelete(ctx, d)
}

// localOf returns the name that callers know for the object of a change: the localId of an entry,
// context-N, an entryId, or the id of the memory or vault.
func (s *callTx) localOf(ctx context.Context, c store.Change) (string, error) {
	if c.Kind != KindContext {
		return c.ID, nil
	}
	var n int64
	err := s.tx.Get(ctx, []any{&n}, selectChangeOf, c.Seq)
	if errors.Is(err, sql.ErrNoRows) {
		return c.ID, nil
	}
	return contextName(n), err
}

// contextName returns the name of the nth context for callers.
func contextName(n int64) string { return fmt.Sprint("context-", n) }

// SetRemote stores the hub's id of a memory or vault whose title existed there, and confirms its
// put (memories §10.3).
func (b *Service) SetRemote(ctx context.Context, m Membership, leases []follow.Lease, stream string, seq int64, remote string) error {
	return b.replicatorTx(ctx, m, leases, func(ctx context.Context, s *callTx) error {
		_, err := s.tx.Exec(ctx, updateRemote, stream, remote)
		if err == nil {
			err = s.acked(ctx, stream, seq)
		}
		return err
	})
}

// refusedByHub returns a hub's error for the caller of a delete.
func refusedByHub(status int, code, message string) error {
	kind := fault.Unavailable
	switch {
	case status == http.StatusNotFound:
		kind = fault.NotFound
	case status == http.StatusConflict:
		kind = fault.Conflict
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		kind = fault.Denied
	case status >= 400 && status < 500:
		kind = fault.Invalid
	}
	return failure(kind, code, "the hub has refused the delete; nothing was deleted", message)
}
