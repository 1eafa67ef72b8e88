package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
)

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
	// The local id of a memory that is named by the hub's id.
	selectLocalOf = `SELECT stream FROM memory_streams WHERE remote_id = ? AND user_id = ?`
)

// ListInflight lists the oldest inflight entries of a memory. It does not wait for the shard's
// queue, so it also works while the queue is blocked. A memory that is missing or another user's
// gives an empty list (memories §6).
func (b *Service) ListInflight(ctx context.Context, c Caller, memory string, limit int64) (InflightList, error) {
	out := InflightList{Entries: []Inflight{}, AppliedLimit: Limit(limit)}
	began := time.Now()
	err := b.bypass(ctx, c, memory, func(ctx context.Context, s *callTx) error {
		return s.tx.Each(ctx, func(rows *sql.Rows) error {
			e, err := scanInflight(rows)
			out.Entries = append(out.Entries, e)
			return err
		}, selectInflight, s.u.ID, s.m.MemoryID, out.AppliedLimit)
	})
	out.Count = len(out.Entries)
	b.inflightRead(began, err)
	return out, err
}

func scanInflight(rows *sql.Rows) (e Inflight, err error) {
	var key int64
	var tags sql.RawBytes
	e.Tags = map[string]string{}
	if err = rows.Scan(&key, &e.CreationTime, &e.RawEntry, &e.Summary, &tags); err != nil {
		return e, err
	}
	e.LocalID = localID(key)
	if string(tags) != "{}" {
		err = json.Unmarshal(tags, &e.Tags)
	}
	return e, err
}

// GetInflight returns one inflight entry. Errors: CodeLocalID (Invalid), CodeCommitted (NotFound)
// with details.entryId after the hub has confirmed the entry, CodeNotFound otherwise. It does not
// wait for the shard's queue.
func (b *Service) GetInflight(ctx context.Context, c Caller, memory, local string) (out Inflight, err error) {
	defer func(began time.Time) { b.inflightRead(began, err) }(time.Now())
	key, badLocal := parseLocalID(local)
	if memory, err = memoryArg(memory); err == nil {
		err = badLocal
	}
	if err != nil {
		return out, err
	}
	err = b.bypass(ctx, c, memory, func(ctx context.Context, s *callTx) error {
		var hidden bool
		e, found, err := s.entry(ctx, selectByRow, key)
		if err == nil {
			err = s.tx.Get(ctx, []any{&hidden}, selectMemoryHidden, s.m.MemoryID)
		}
		switch {
		case err != nil:
			return err
		case !found || e.ActorID != s.u.ID || e.MemoryID != s.m.MemoryID || e.deleting != 0 || hidden:
			return notFound("entry")
		case e.synced:
			return failure(fault.NotFound, CodeCommitted, "read it with get_entry", "the entry has been committed", "entryId", e.EntryID)
		}
		out = Inflight{local, e.CreationTime, e.RawEntry, e.Summary, e.Tags}
		return nil
	})
	return out, err
}

// bypass runs fn without waiting for a shard. Of the memory, s has only the id.
func (b *Service) bypass(ctx context.Context, c Caller, memory string, fn func(ctx context.Context, s *callTx) error) error {
	memory, err := memoryArg(memory)
	if err = firstError(err, c.checkArgs()); err != nil {
		return err
	}
	return b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.enter(ctx, tx, c, false)
		if err != nil {
			return err
		}
		if s.m.MemoryID = memory; memory == DefaultMemory {
			if err := s.openDefault(ctx); err != nil {
				return err
			}
		} else if s.u.hub() {
			local := ""
			if err := ignoreNone(tx.Get(ctx, []any{&local}, selectLocalOf, memory, s.u.ID)); err != nil {
				return err
			}
			if local != "" {
				s.m.MemoryID = local
			}
		}
		return fn(ctx, s)
	})
}
