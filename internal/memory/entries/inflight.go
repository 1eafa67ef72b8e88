package entries

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// Inflight is an entry that the hub has not confirmed yet. It has exactly five fields.
type Inflight struct {
	LocalID      string            `json:"localId"`
	CreationTime memory.Time       `json:"creationTime"`
	RawEntry     string            `json:"rawEntry"`
	Summary      string            `json:"summary"`
	Tags         map[string]string `json:"tags"` // never nil
}

// InflightList is the result of ListInflight. The array is never nil.
type InflightList struct {
	Entries      []Inflight `json:"entries"`
	Count        int        `json:"count"`
	AppliedLimit int        `json:"applied_limit"`
}

const (
	selectInflight = `SELECT key, creation_ns, raw_entry, summary, tags FROM memory_entries
WHERE user_id = ?1 AND memory_id = ?2 AND synced = 0 AND deleting_seq IS NULL
AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.memory_id = ?2 AND m.deleting_seq IS NOT NULL) ORDER BY creation_ns, key LIMIT +?3`
	selectMemoryHidden = `SELECT EXISTS (SELECT 1 FROM memories WHERE memory_id = ? AND deleting_seq IS NOT NULL)`
)

// ListInflight lists the oldest inflight entries of a memory. It does not wait for the shard's
// queue, so it also works while the queue is blocked. A memory that is missing or another user's
// gives an empty list (memories §6).
func (b *Entries) ListInflight(ctx context.Context, c memory.Caller, memoryID string, limit int64) (InflightList, error) {
	out := InflightList{Entries: []Inflight{}, AppliedLimit: clampLimit(limit)}
	began := time.Now()
	err := b.bypass(ctx, c, memoryID, func(ctx context.Context, s *memory.CallTx) error {
		return s.Tx.Each(ctx, func(rows *sql.Rows) error {
			e, err := scanInflight(rows)
			out.Entries = append(out.Entries, e)
			return err
		}, selectInflight, s.User.UserID, s.Memory.MemoryID, out.AppliedLimit)
	})
	out.Count = len(out.Entries)
	b.InflightRead(began, err)
	return out, err
}

func scanInflight(rows *sql.Rows) (e Inflight, err error) {
	var key int64
	var tags sql.RawBytes
	e.Tags = map[string]string{}
	if err = rows.Scan(&key, &e.CreationTime, &e.RawEntry, &e.Summary, &tags); err != nil {
		return e, err
	}
	e.LocalID = contents.LocalID(key)
	if string(tags) != "{}" {
		err = json.Unmarshal(tags, &e.Tags)
	}
	return e, err
}

// GetInflight returns one inflight entry. Errors: CodeLocalID (Invalid), CodeCommitted (NotFound)
// with details.entryId after the hub has confirmed the entry, CodeNotFound otherwise. It does not
// wait for the shard's queue.
func (b *Entries) GetInflight(ctx context.Context, c memory.Caller, memoryID, local string) (out Inflight, err error) {
	defer func(began time.Time) { b.InflightRead(began, err) }(time.Now())
	key, badLocal := contents.ParseLocalID(local)
	if memoryID, err = memory.MemoryArg(memoryID); err == nil {
		err = badLocal
	}
	if err != nil {
		return out, err
	}
	err = b.bypass(ctx, c, memoryID, func(ctx context.Context, s *memory.CallTx) error {
		var hidden bool
		e, found, err := contents.EntryByRow(ctx, s, key)
		if err == nil {
			err = s.Tx.Get(ctx, []any{&hidden}, selectMemoryHidden, s.Memory.MemoryID)
		}
		switch {
		case err != nil:
			return err
		case !found || e.ActorID != s.User.UserID || e.MemoryID != s.Memory.MemoryID || e.Deleting != 0 || hidden:
			return memory.NotFound("entry")
		case e.Synced:
			return rules.Failure(fault.NotFound, memory.CodeCommitted, "read it with get_entry", "the entry has been committed", "entryId", e.EntryID)
		}
		out = Inflight{local, e.CreationTime, e.RawEntry, e.Summary, e.Tags}
		return nil
	})
	return out, err
}

// bypass runs fn without waiting for a shard. Of the memory, s has only the id.
func (b *Entries) bypass(ctx context.Context, c memory.Caller, memoryID string, fn func(ctx context.Context, s *memory.CallTx) error) error {
	memoryID, err := memory.MemoryArg(memoryID)
	if err = cmp.Or(err, c.CheckArgs()); err != nil {
		return err
	}
	return b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.Enter(ctx, tx, c, false)
		if err != nil {
			return err
		}
		if s.Memory.MemoryID = memoryID; memoryID == memory.DefaultMemory {
			if err := s.OpenDefault(ctx); err != nil {
				return err
			}
		} else if s.User.IsJoined() {
			if s.Memory.MemoryID, err = s.LocalStream(ctx, memoryID); err != nil {
				return err
			}
		}
		return fn(ctx, s)
	})
}
