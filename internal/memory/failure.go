package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// Failed is a change that the hub has refused permanently. It is set aside until a person
// acts.
type Failed struct {
	Seq    int64  `json:"seq"`
	Stream string `json:"memory_id"`
	HubRefusal
	At Time `json:"at"`
}

// HubRefusal is why the hub has refused a change, as it is stored with the change.
type HubRefusal struct {
	LocalID string `json:"local_id"` // what the change is about: pending-N, context-N, an id
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// scan are the places of refusalColumns.
func (r *HubRefusal) scan() []any { return []any{&r.LocalID, &r.Status, &r.Code, &r.Message} }

// setAside sets a change of a stream aside that the hub has refused permanently.
func (s *callTx) setAside(ctx context.Context, stream string, seq int64, why HubRefusal) error {
	detail, err := json.Marshal(why)
	if err != nil {
		return err
	}
	return follow.SetAside(ctx, s.tx, PushFollower, stream, follow.Refusal{
		Seq: seq, Final: true, Detail: string(detail), Err: fmt.Errorf("%s: %d %s: %s", why.LocalID, why.Status, why.Code, why.Message),
	})
}

// Backlog counts what the hub does not have of a user's (metrics, memories §14).
type Backlog struct {
	Pending       int  `json:"pending"`                  // inflight entries and contexts
	Failed        int  `json:"failed"`                   // changes refused permanently
	Halted        int  `json:"halted"`                   // streams that are halted
	OldestPending Time `json:"oldest_pending,omitempty"` // 0 with nothing pending
}

const (
	selectFailures = `SELECT f.seq, f.lane, ` + refusalColumns + `, f.since
FROM set_aside f JOIN memory_streams s ON s.stream = f.lane WHERE f.follower = 'replication' AND (?1 = '' OR s.user_id = ?1) ORDER BY f.seq`
	refusalColumns = `f.detail ->> '$.local_id', f.detail ->> '$.status', f.detail ->> '$.code', f.detail ->> '$.message'`
	selectBacklog  = `SELECT (SELECT count(*) FROM memory_entries WHERE synced = 0 AND user_id = ?1),
(SELECT ifnull(min(creation_ns), 0) FROM memory_entries WHERE synced = 0 AND user_id = ?1),
(SELECT count(*) FROM memory_contexts WHERE synced = 0 AND user_id = ?1),
(SELECT count(*) FROM set_aside f JOIN memory_streams s ON s.stream = f.lane WHERE f.follower = 'replication' AND s.user_id = ?1),
(SELECT count(*) FROM memory_streams WHERE user_id = ?1 AND state = 'halted')`
	updateContextPlace = `UPDATE memory_contexts SET change_seq = ?2 WHERE change_seq = ?1`
	deleteContextAt    = `DELETE FROM memory_contexts WHERE change_seq = ?`
)

// Failures lists the refused changes of a user, or of all users for "", oldest first.
func (b *Service) Failures(ctx context.Context, user string) (out []Failed, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out, err = failures(ctx, tx, user)
		return err
	})
	return out, err
}

func failures(ctx context.Context, tx *store.Tx, user string) (out []Failed, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var f Failed
		err := rows.Scan(slices.Concat([]any{&f.Seq, &f.Stream}, f.scan(), []any{&f.At})...)
		out = append(out, f)
		return err
	}, selectFailures, user)
	return out, err
}

// Backlog counts what the hub does not have of a user's.
func (b *Service) Backlog(ctx context.Context, user string) (out Backlog, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
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
func (b *Service) Retry(ctx context.Context, c Caller, locals []string) (n int, err error) {
	return b.eachFailed(ctx, c, locals, func(ctx context.Context, s *callTx, f Failed, was store.Change) error {
		if was.Kind == KindMemory && was.Op == store.OpPut {
			return nil // its stream has not passed it
		}
		if was.Doc == nil && was.Kind == KindContext {
			return errStays
		}
		if was.Doc == nil {
			e, found, err := s.named(ctx, was.ID)
			if err == nil && found && !e.synced {
				err = errStays
			}
			return err
		}
		own := store.Change{Project: was.Project, Stream: was.Stream, Kind: was.Kind, ID: was.ID, Op: was.Op, Doc: was.Doc, Session: was.Session, Agent: was.Agent}
		seq, err := s.tx.Append(ctx, own)
		if err != nil {
			return err
		}
		switch key, bad := parseLocalID(was.ID); {
		case was.Kind == KindContext:
			_, err = s.tx.Exec(ctx, updateContextPlace, f.Seq, seq)
		case bad == nil && was.Op == store.OpPut:
			_, err = s.tx.Exec(ctx, updateSeq, seq, key)
		}
		return firstError(err, s.tx.BlankChange(ctx, f.Seq), s.advance(ctx, was.Stream, seq))
	})
}

// advance moves a stream's head.
func (s *callTx) advance(ctx context.Context, stream string, seq int64) error {
	_, err := s.tx.Exec(ctx, upsertStream, stream, s.u.ID, LaneOf(stream), seq)
	return err
}

// Discard discards refused changes of the caller, selected as for Retry. It deletes inflight
// entries and contexts permanently, and a refused memory with all of its rows. A patch stays
// on this device only. It returns the number of changes.
func (b *Service) Discard(ctx context.Context, c Caller, locals []string) (n int, err error) {
	return b.eachFailed(ctx, c, locals, func(ctx context.Context, s *callTx, f Failed, was store.Change) error {
		switch was.Kind + " " + was.Op {
		case KindEntry + " " + store.OpPut:
			e, found, err := s.named(ctx, was.ID)
			if err != nil || !found || e.synced {
				return err
			}
			return firstError(s.removeEntry(ctx, &e), s.note(ctx, was.Stream, KindEntry, was.ID, store.OpDelete))
		case KindContext + " " + store.OpPut:
			_, err := s.tx.Exec(ctx, deleteContextAt, f.Seq)
			return firstError(err, s.tx.BlankChange(ctx, f.Seq))
		case KindMemory + " " + store.OpPut:
			return firstError(s.removeMemory(ctx, was.Stream, true), s.note(ctx, was.Stream, KindMemory, was.ID, store.OpDelete))
		}
		return s.tx.BlankChange(ctx, f.Seq)
	})
}

// errStays leaves a failure as it is.
var errStays = errors.New("the failure stays")

// eachFailed runs fn for refused changes of the caller and forgets their failures. It
// requires the level Admin.
func (b *Service) eachFailed(ctx context.Context, c Caller, locals []string, fn func(ctx context.Context, s *callTx, f Failed, was store.Change) error) (n int, err error) {
	if err := firstError(c.checkArgs(), c.may(Admin)); err != nil {
		return 0, err
	}
	defer b.progress.notify()
	err = b.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		n = 0
		s, err := b.enter(ctx, tx, c, false)
		if err != nil || s.u.ID == "" {
			return err
		}
		all, err := failures(ctx, tx, s.u.ID)
		if err != nil {
			return err
		}
		for _, f := range all {
			if len(locals) > 0 && !slices.Contains(locals, f.LocalID) {
				continue
			}
			was, found, err := s.change(ctx, Outcome{Stream: f.Stream, Seq: f.Seq})
			if err == nil && found {
				err = fn(ctx, s, f, was)
			}
			if errors.Is(err, errStays) {
				continue
			}
			if err == nil {
				err = firstError(follow.Settle(ctx, tx, PushFollower, f.Seq), s.ready(ctx, f.Stream))
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

// confirmation returns the document of a row's confirm.
func confirmation(e *entryRow) ([]byte, error) {
	return json.Marshal(confirmDoc{localID(e.key), e.EntryID, e.CreationTime, e.hubSeq})
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
func (b *Service) Waiting(ctx context.Context, user string) ([]Waiting, error) {
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
