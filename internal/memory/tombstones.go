package memory

import "context"

const (
	insertTombstone = `INSERT OR IGNORE INTO memory_tombstones (memory_id, id, deleted_ns) VALUES (?, ?, ?)`
	selectTombstone = `SELECT EXISTS (SELECT 1 FROM memory_tombstones WHERE memory_id = ? AND id = ?)`
)

// StoreTombstones stores that ids and keys were deleted from a memory now. It skips empty ones.
func (s *CallTx) StoreTombstones(ctx context.Context, memory string, ids ...string) error {
	for _, id := range ids {
		if id == "" {
			continue
		}
		if err := s.StoreTombstone(ctx, memory, id, Time(s.Tx.Now().UnixNano())); err != nil {
			return err
		}
	}
	return nil
}

// StoreTombstone stores that an id or a key was deleted from a memory at a time.
func (s *CallTx) StoreTombstone(ctx context.Context, memory, id string, at Time) error {
	return s.Exec(ctx, insertTombstone, memory, id, at)
}

// WasDeleted reports whether one of the ids or keys was deleted from the scope's memory.
func (s *CallTx) WasDeleted(ctx context.Context, ids ...string) (bool, error) {
	for _, id := range ids {
		var yes bool
		if err := s.Tx.Get(ctx, []any{&yes}, selectTombstone, s.Memory.MemoryID, id); err != nil || yes {
			return yes, err
		}
	}
	return false, nil
}
