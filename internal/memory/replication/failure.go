package replication

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// Failed is a change that the hub has refused permanently. It is set aside until a person
// acts.
type Failed struct {
	Seq    int64  `json:"seq"`
	Stream string `json:"memory_id"`
	memory.HubRefusal
	At memory.Time `json:"at"`
}

// Backlog counts what the hub does not have of a user's (metrics, memories §14).
type Backlog struct {
	Pending       int         `json:"pending"`                  // inflight entries and contexts
	Failed        int         `json:"failed"`                   // changes refused permanently
	Halted        int         `json:"halted"`                   // streams that are halted
	OldestPending memory.Time `json:"oldest_pending,omitempty"` // 0 with nothing pending
}

const (
	selectFailures = `SELECT f.seq, f.lane, ` + memory.RefusalColumns + `, f.since
FROM set_aside f JOIN memory_streams s ON s.stream = f.lane WHERE f.follower = 'replication' AND (?1 = '' OR s.user_id = ?1) ORDER BY f.seq`
	selectBacklog = `SELECT (SELECT count(*) FROM memory_entries WHERE synced = 0 AND user_id = ?1),
(SELECT ifnull(min(creation_ns), 0) FROM memory_entries WHERE synced = 0 AND user_id = ?1),
(SELECT count(*) FROM memory_contexts WHERE synced = 0 AND user_id = ?1),
(SELECT count(*) FROM set_aside f JOIN memory_streams s ON s.stream = f.lane WHERE f.follower = 'replication' AND s.user_id = ?1),
(SELECT count(*) FROM memory_streams WHERE user_id = ?1 AND state = 'halted')`
	updateContextPlace = `UPDATE memory_contexts SET change_seq = ?2 WHERE change_seq = ?1`
	deleteContextAt    = `DELETE FROM memory_contexts WHERE change_seq = ?`
)

// Failures lists the refused changes of a user, or of all users for "", oldest first.
func (b *Replication) Failures(ctx context.Context, user string) (out []Failed, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out, err = failures(ctx, tx, user)
		return err
	})
	return out, err
}

func failures(ctx context.Context, tx *store.Tx, user string) (out []Failed, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var f Failed
		err := rows.Scan(slices.Concat([]any{&f.Seq, &f.Stream}, f.Scan(), []any{&f.At})...)
		out = append(out, f)
		return err
	}, selectFailures, user)
	return out, err
}

// Backlog counts what the hub does not have of a user's.
func (b *Replication) Backlog(ctx context.Context, user string) (out Backlog, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		var contexts int
		err := tx.Get(ctx, []any{&out.Pending, &out.OldestPending, &contexts, &out.Failed, &out.Halted}, selectBacklog, user)
		out.Pending += contexts
		return err
	})
	return out, err
}

// Retry has refused changes of the caller sent again: those with the given local ids, or all
// without any. Each is sent at the end of its stream, under the same key. It returns their
// number. An entry or context whose memory was deleted cannot be sent. It keeps its failure,
// so that it can be discarded.
func (b *Replication) Retry(ctx context.Context, c memory.Caller, locals []string) (n int, err error) {
	return b.eachFailed(ctx, c, locals, func(ctx context.Context, s *memory.CallTx, f Failed, was store.Change) error {
		if was.Kind == memory.KindMemory && was.Op == store.OpPut {
			return nil // its stream has not passed it
		}
		if was.Doc == nil && was.Kind == memory.KindContext {
			return errStays
		}
		if was.Doc == nil {
			e, found, err := contents.EntryNamed(ctx, s, was.ID)
			if err == nil && found && !e.Synced {
				err = errStays
			}
			return err
		}
		own := store.Change{Project: was.Project, Stream: was.Stream, Kind: was.Kind, ID: was.ID, Op: was.Op, Doc: was.Doc, Session: was.Session, Agent: was.Agent}
		seq, err := s.Tx.Append(ctx, own)
		if err != nil {
			return err
		}
		switch key, bad := contents.ParseLocalID(was.ID); {
		case was.Kind == memory.KindContext:
			err = s.Exec(ctx, updateContextPlace, f.Seq, seq)
		case bad == nil && was.Op == store.OpPut:
			err = contents.SetSeq(ctx, s, key, seq)
		}
		return cmp.Or(err, s.Tx.BlankChange(ctx, f.Seq), s.Advance(ctx, was.Stream, seq))
	})
}

// Discard discards refused changes of the caller, selected as for Retry. It deletes inflight
// entries and contexts permanently, and a refused memory with all of its rows. A patch stays
// on this device only. It returns the number of changes.
func (b *Replication) Discard(ctx context.Context, c memory.Caller, locals []string) (n int, err error) {
	return b.eachFailed(ctx, c, locals, func(ctx context.Context, s *memory.CallTx, f Failed, was store.Change) error {
		switch was.Kind + " " + was.Op {
		case memory.KindEntry + " " + store.OpPut:
			e, found, err := contents.EntryNamed(ctx, s, was.ID)
			if err != nil || !found || e.Synced {
				return err
			}
			return cmp.Or(contents.RemoveEntry(ctx, s, &e), s.Note(ctx, was.Stream, memory.KindEntry, was.ID, store.OpDelete))
		case memory.KindContext + " " + store.OpPut:
			err := s.Exec(ctx, deleteContextAt, f.Seq)
			return cmp.Or(err, s.Tx.BlankChange(ctx, f.Seq))
		case memory.KindMemory + " " + store.OpPut:
			return cmp.Or(contents.RemoveMemory(ctx, s, was.Stream, true), s.Note(ctx, was.Stream, memory.KindMemory, was.ID, store.OpDelete))
		}
		return s.Tx.BlankChange(ctx, f.Seq)
	})
}

// errStays leaves a failure as it is.
var errStays = errors.New("the failure stays")

// eachFailed runs fn for refused changes of the caller and forgets their failures. It
// requires the level Admin.
func (b *Replication) eachFailed(ctx context.Context, c memory.Caller, locals []string,
	fn func(ctx context.Context, s *memory.CallTx, f Failed, was store.Change) error) (n int, err error) {
	if err := cmp.Or(c.CheckArgs(), c.May(memory.Admin)); err != nil {
		return 0, err
	}
	defer b.Progress.Notify()
	err = b.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		n = 0
		s, err := b.Enter(ctx, tx, c, false)
		if err != nil || s.User.UserID == "" {
			return err
		}
		all, err := failures(ctx, tx, s.User.UserID)
		if err != nil {
			return err
		}
		for _, f := range all {
			if len(locals) > 0 && !slices.Contains(locals, f.LocalID) {
				continue
			}
			was, found, err := change(ctx, s, Outcome{Stream: f.Stream, Seq: f.Seq})
			if err == nil && found {
				err = fn(ctx, s, f, was)
			}
			if errors.Is(err, errStays) {
				continue
			}
			if err == nil {
				err = cmp.Or(follow.Settle(ctx, tx, memory.PushFollower, f.Seq), ready(ctx, s, f.Stream))
			}
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n, err
}

// Waiting is a memory or vault that does not go on.
type Waiting struct {
	MemoryID    string    `json:"memory_id"`
	State       string    `json:"state"`
	Attempts    int       `json:"attempts"`
	NextAttempt time.Time `json:"next_attempt,omitzero"`
	Error       string    `json:"error,omitempty"`
}

// Waiting lists a user's streams that wait after a failed try, or that are halted or being
// restored; never nil.
func (b *Replication) Waiting(ctx context.Context, user string) ([]Waiting, error) {
	out, after := []Waiting{}, ""
	for {
		page, err := b.Streams(ctx, user, after, 1000)
		if err != nil || len(page) == 0 {
			return out, err
		}
		for _, s := range page {
			if after = s.ID; s.Attempts > 0 || s.State != StreamReady || s.LastError != "" {
				w := Waiting{MemoryID: s.ID, State: s.State, Attempts: s.Attempts, Error: s.LastError}
				if s.NextAttempt.Unix() > 0 {
					w.NextAttempt = s.NextAttempt.UTC()
				}
				out = append(out, w)
			}
		}
	}
}
