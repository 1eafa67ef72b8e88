package memory

import (
	"context"
	"database/sql"

	"cairn/internal/store"
)

const (
	rewindStream = `UPDATE memory_streams SET acked_seq = 0, attempts = 0, next_attempt_ns = 0, state = 'ready', pull_cursor = min(pull_cursor, ?2) WHERE stream = ?1`

	// What was pulled and the hub has lost. Own rows are in the log as own changes.
	selectLost = entryColumns + `JOIN changes c ON c.seq = e.seq JOIN symbols d ON d.id = c.device
WHERE e.memory_id = ? AND e.hub_seq > ? AND e.deleting_seq IS NULL AND d.text = '` + hubDevice + `' ORDER BY e.canonical_ns`
	selectLostContexts = `SELECT x.seq, x.session_id, x.updated_ns, x.markdown, x.context_id, ifnull(x.hub_key, ''), ifnull(x.trace_id, '')
FROM memory_contexts x JOIN changes c ON c.seq = x.change_seq JOIN symbols d ON d.id = c.device
WHERE x.memory_id = ? AND x.hub_seq > ? AND d.text = '` + hubDevice + `' ORDER BY x.updated_ns, x.seq`
	unnumberEntries  = `UPDATE memory_entries SET hub_seq = NULL WHERE memory_id = ? AND hub_seq > ?`
	unnumberContexts = `UPDATE memory_contexts SET hub_seq = NULL WHERE memory_id = ? AND hub_seq > ?`
	updatePlace      = `UPDATE memory_contexts SET change_seq = ?2 WHERE seq = ?1`
)

// Rewind is for a hub that was restored from an old backup and has a stream up to head
// alone: everything own is sent again, which its keys make harmless, and so is what
// was pulled beyond head, under the old keys and ids (memories §13.2). stream is the
// hub's id or the local one; an unknown one changes nothing. Repeating it is safe.
func (b *Book) Rewind(ctx context.Context, userID, stream string, head int64) error {
	return b.settling(ctx, nil, func(ctx context.Context, s *scope) (err error) {
		if s.u, err = findUser(ctx, s.tx, userID); err != nil {
			return err
		}
		local, err := s.localStream(ctx, stream)
		if err != nil {
			return err
		}
		found, err := s.find(ctx, selectAnyMemory, local)
		if err == nil && found {
			err = s.relog(ctx, head)
		}
		if err == nil {
			_, err = s.tx.Exec(ctx, rewindStream, local, head)
		}
		return err
	})
}

// relog logs what was pulled beyond head as this device's own.
func (s *scope) relog(ctx context.Context, head int64) error {
	entries, err := s.rows(ctx, selectLost, s.m.MemoryID, head)
	if err != nil {
		return err
	}
	contexts, err := s.lostContexts(ctx, head)
	if err == nil && len(entries)+len(contexts) > 0 {
		err = s.relogMemory(ctx)
	}
	for i := range entries {
		e := &entries[i]
		if err == nil {
			e.seq, err = s.logOn(ctx, s.m.MemoryID, s.m.project, KindEntry, e.EntryID, store.OpPut, e.doc())
		}
		if err == nil {
			_, err = s.tx.Exec(ctx, updateSeq, e.seq, e.key)
		}
	}
	for _, x := range contexts {
		var seq int64
		if err == nil {
			seq, err = s.logOn(ctx, s.m.MemoryID, s.m.project, KindContext, x.doc.ContextID, store.OpPut, x.doc)
		}
		if err == nil {
			_, err = s.tx.Exec(ctx, updatePlace, x.number, seq)
		}
	}
	for _, query := range []string{unnumberEntries, unnumberContexts} {
		if err == nil {
			_, err = s.tx.Exec(ctx, query, s.m.MemoryID, head)
		}
	}
	return err
}

// relogMemory logs the put of a memory that was pulled, for a hub that may not have
// it any more.
func (s *scope) relogMemory(ctx context.Context) error {
	v, err := s.vault(ctx, s.m.VaultID)
	if err != nil {
		return err
	}
	m := s.m.Memory
	_, err = s.logOn(ctx, m.MemoryID, s.m.project, KindMemory, m.MemoryID, store.OpPut, memoryDoc{
		hubKey("POST", "/v1/vaults/"+v.VaultID+"/memories", m.MemoryID), m.MemoryID, m.VaultID, m.MemoryType, m.Title, m.Description, m.CreationTime, v.doc(""),
	})
	return err
}

// lostContext is a context that was pulled and the hub has lost.
type lostContext struct {
	number int64
	doc    contextDoc
}

func (s *scope) lostContexts(ctx context.Context, head int64) (out []lostContext, err error) {
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		var x lostContext
		d := &x.doc
		err := rows.Scan(&x.number, &d.SessionID, &d.UpdatedAt, &d.Markdown, &d.ContextID, &d.Key, &d.Trace)
		out = append(out, x)
		return err
	}, selectLostContexts, s.m.MemoryID, head)
	return out, err
}
