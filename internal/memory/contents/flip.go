package contents

import (
	"context"
	"encoding/json"
	"time"

	"cairn/internal/memory"
	"cairn/internal/store"
)

// ConfirmDoc is the document of a confirm.
type ConfirmDoc struct {
	LocalID      string      `json:"localId"`
	EntryID      string      `json:"entryId"`
	CreationTime memory.Time `json:"creationTime"`
	HubSeq       int64       `json:"hubSeq"`
}

const (
	flipEntry = `UPDATE memory_entries SET entry_id = ?2, canonical_ns = ?3, hub_seq = ?4, synced = 1, synced_ns = ?5 WHERE key = ?1`
	// Another row with the same entryId, which was pulled under another key.
	selectTwin   = `SELECT key FROM memory_entries WHERE entry_id = ? AND key <> ?`
	selectBuried = `SELECT EXISTS (SELECT 1 FROM memory_tombstones WHERE memory_id = ?1 AND id IN (?2, ?3))`
)

// Flip commits a row with the hub's id and time, in one statement (memories P5). It is idempotent.
// A row that was deleted meanwhile is removed (P10).
func Flip(ctx context.Context, s *memory.CallTx, e *EntryRow, id string, at memory.Time, hubSeq int64) error {
	if id == "" || e.Synced && e.EntryID == id && e.CreationTime == at && e.HubSeq == hubSeq {
		return nil
	}
	var buried bool
	if err := s.Tx.Get(ctx, []any{&buried}, selectBuried, e.MemoryID, id, e.HubKey); err != nil {
		return err
	}
	if buried {
		e.EntryID = id
		return RemoveEntry(ctx, s, e)
	}
	var twin int64
	err := s.Tx.Get(ctx, []any{&twin}, selectTwin, id, e.Key)
	if err == nil {
		err = DeleteRow(ctx, s, twin)
	}
	if memory.IgnoreNone(err) != nil {
		return err
	}
	if !e.Synced && hubSeq > 0 {
		s.Syncs = append(s.Syncs, time.Duration(s.Tx.Now().UnixNano()-int64(e.CreationNS)))
	}
	fresh := !e.Synced || e.EntryID != id
	moved := e.CreationTime != at
	e.Synced, e.EntryID, e.CreationTime, e.HubSeq = true, id, at, hubSeq
	if err := CommitRow(ctx, s, e.Key, id, at, hubSeq); err != nil {
		return err
	}
	s.Memory.MemoryID, s.Memory.LastNS, s.Memory.LastCanonicalNS = e.MemoryID, 0, int64(at)
	err = noteTimes(ctx, s)
	if err == nil && fresh {
		err = indexEntry(ctx, s, e)
	}
	if err == nil && (fresh || moved) {
		err = logConfirm(ctx, s, e)
	}
	return err
}

// CommitRow stores the hub's id, time and number of a row.
func CommitRow(ctx context.Context, s *memory.CallTx, key int64, id string, at memory.Time, hubSeq any) error {
	return s.Exec(ctx, flipEntry, key, id, at, hubSeq, s.Tx.Now().UnixNano())
}

func logConfirm(ctx context.Context, s *memory.CallTx, e *EntryRow) error {
	doc, err := json.Marshal(ConfirmDoc{LocalID(e.Key), e.EntryID, e.CreationTime, e.HubSeq})
	if err == nil {
		_, err = s.Tx.Append(ctx, store.Change{Project: s.Memory.Project, Stream: e.MemoryID, Kind: memory.KindEntry, ID: e.EntryID, Op: memory.OpConfirm, Doc: doc})
	}
	return err
}
