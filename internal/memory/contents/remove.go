package contents

import (
	"cmp"
	"context"

	"cairn/internal/memory"
	"cairn/internal/store/follow"
)

// EntryDeleteDoc is the document of an entry's delete. Only the localId is known of an entry that
// was being sent when it was deleted.
type EntryDeleteDoc struct {
	Key     string `json:"key"`
	EntryID string `json:"entryId,omitempty"`
	LocalID string `json:"localId,omitempty"`
}

const (
	deleteEntry = `DELETE FROM memory_entries WHERE key = ?`
	// Entries of a project's own memory, because the memory's id may be used again.
	buryEntriesOf = `INSERT OR IGNORE INTO memory_tombstones (memory_id, id, deleted_ns)
SELECT e.memory_id, n.value, ?2 FROM memories m JOIN memory_entries e ON e.memory_id = m.memory_id JOIN json_each(json_array(e.entry_id, e.hub_key)) n
WHERE m.memory_id = ?1 AND m.project_key IS NOT NULL AND e.synced = 1 AND n.value IS NOT NULL`
	deleteEntriesOf  = `DELETE FROM memory_entries WHERE memory_id = ?1 AND (synced = 1 OR ?2)`
	deleteContextsOf = `DELETE FROM memory_contexts WHERE memory_id = ?1 AND (synced = 1 OR ?2)`
	deleteMemory     = `DELETE FROM memories WHERE memory_id = ?`
	deleteVault      = `DELETE FROM memory_vaults WHERE vault_id = ?`
)

// RemoveVault permanently deletes an empty vault, with its documents in the log.
func RemoveVault(ctx context.Context, s *memory.CallTx, id string) error {
	if err := s.Exec(ctx, deleteVault, id); err != nil {
		return err
	}
	return cmp.Or(s.ForgetTries(ctx, id), s.Tx.BlankStream(ctx, id))
}

// RemoveEntry permanently deletes an entry: it blanks the entry's documents in the log and stores
// tombstones of its id and key (memories P10).
func RemoveEntry(ctx context.Context, s *memory.CallTx, e *EntryRow) error {
	if err := DeleteRow(ctx, s, e.Key); err != nil {
		return err
	}
	if err := follow.Settle(ctx, s.Tx, memory.PushFollower, e.Seq); err != nil {
		return err
	}
	if err := BlankEntry(ctx, s, e); err != nil {
		return err
	}
	return s.StoreTombstones(ctx, e.MemoryID, e.EntryID, e.HubKey)
}

// DeleteRow deletes only the row of an entry.
func DeleteRow(ctx context.Context, s *memory.CallTx, key int64) error {
	return s.Exec(ctx, deleteEntry, key)
}

// BlankEntry blanks an entry's documents in the log, under its entryId and its localId.
func BlankEntry(ctx context.Context, s *memory.CallTx, e *EntryRow) error {
	for _, id := range []string{e.EntryID, LocalID(e.Key)} {
		if id == "" {
			continue
		}
		if _, err := s.Tx.Blank(ctx, e.MemoryID, memory.KindEntry, id); err != nil {
			return err
		}
	}
	return nil
}

// RemoveMemory permanently deletes a memory with its contents. Without inflight it keeps entries
// and contexts that no hub has. The stream stays.
func RemoveMemory(ctx context.Context, s *memory.CallTx, id string, inflight bool) error {
	err := s.Exec(ctx, buryEntriesOf, id, s.Tx.Now().UnixNano())
	if err == nil {
		err = s.Exec(ctx, deleteEntriesOf, id, inflight)
	}
	if err == nil {
		err = s.Exec(ctx, deleteContextsOf, id, inflight)
	}
	if err == nil {
		err = s.Exec(ctx, deleteMemory, id)
	}
	return cmp.Or(err, s.ForgetTries(ctx, id), s.Tx.BlankStream(ctx, id), s.StoreTombstones(ctx, id, id))
}
