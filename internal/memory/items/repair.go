package items

import (
	"cmp"
	"context"
	"database/sql"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/shards"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

const (
	// Vaults and memories in the log that have no row. If no other row names the owner, it is
	// the device's own user.
	selectLostVaults = `SELECT k.text, o.text, c.id, '', c.seq, c.doc, '',
coalesce((SELECT user_id FROM memory_streams WHERE stream = c.id), (SELECT min(user_id) FROM memories WHERE vault_id = c.id), '') ` + fromDocs + `
WHERE k.text = 'vault' AND o.text = 'put' AND c.doc IS NOT NULL AND c.id NOT IN (SELECT vault_id FROM memory_vaults WHERE creation_ns > 0) ORDER BY c.seq DESC`
	selectLostMemories = `SELECT k.text, o.text, c.id, c.id, c.seq, c.doc, ifnull((SELECT text FROM symbols WHERE id = c.project), ''),
coalesce((SELECT user_id FROM memory_streams WHERE stream = c.id), (SELECT min(user_id) FROM memory_entries WHERE memory_id = c.id),
(SELECT min(user_id) FROM memory_contexts WHERE memory_id = c.id), '') ` + fromDocs + `
WHERE k.text = 'memory' AND o.text = 'put' AND c.doc IS NOT NULL AND c.id NOT IN (SELECT memory_id FROM memories) ORDER BY c.seq DESC`
	selectLostEntries = selectContent + `WHERE k.text = 'entry' AND o.text IN ('put', 'patch', 'confirm') AND c.doc IS NOT NULL
AND (o.text <> 'put' OR c.seq NOT IN (SELECT seq FROM memory_entries)) ORDER BY c.seq`
	selectLostContexts = selectContent + `WHERE k.text = 'context' AND o.text = 'put' AND c.doc IS NOT NULL
AND c.id NOT IN (SELECT context_id FROM memory_contexts) ORDER BY c.seq`
	selectContent = `SELECT k.text, o.text, c.id, ifnull((SELECT text FROM symbols WHERE id = c.stream), ''), c.seq, c.doc, '', '' ` + fromDocs
	fromDocs      = `FROM changes c JOIN symbols k ON k.id = c.kind JOIN symbols o ON o.id = c.op `

	// Memories without a row that entries or contexts belong to, and vaults without a row, or
	// with a placeholder of the salvage, that memories belong to.
	selectOrphans = `SELECT x.memory_id, x.user_id, max(x.vault_id)
FROM (SELECT memory_id, user_id, vault_id FROM memory_entries UNION SELECT memory_id, user_id, '' FROM memory_contexts) x
WHERE x.memory_id NOT IN (SELECT memory_id FROM memories) AND x.user_id <> ''
AND NOT EXISTS (SELECT 1 FROM memory_tombstones t WHERE t.memory_id = x.memory_id AND t.id = x.memory_id) GROUP BY x.memory_id`
	selectOrphanedVaults = `SELECT vault_id, user_id, '' FROM memories
WHERE user_id <> '' AND vault_id NOT IN (SELECT vault_id FROM memory_vaults WHERE creation_ns > 0) GROUP BY vault_id`

	deleteMadeUp = `DELETE FROM memories WHERE creation_ns <= 0`
	dropVaults   = `DELETE FROM memory_vaults WHERE creation_ns <= 0 AND vault_id NOT IN (SELECT vault_id FROM memories)`

	// repairLanes sets the lanes.
	insertStreams = `INSERT OR IGNORE INTO memory_streams (stream, user_id, lane, head_seq, subscribed)
SELECT i.id, i.user_id, 0, ifnull((SELECT max(c.seq) FROM changes c WHERE c.stream = (SELECT id FROM symbols WHERE text = i.id) AND c.doc IS NOT NULL), 0), 1
FROM (SELECT memory_id AS id, user_id FROM memories UNION ALL SELECT vault_id, user_id FROM memory_vaults) i`

	// Inflight rows that the replicator would not send.
	selectUnsent = contents.EntryColumns + `LEFT JOIN changes c ON c.seq = e.seq LEFT JOIN memory_streams s ON s.stream = e.memory_id
WHERE e.synced = 0 AND (c.doc IS NULL OR c.id <> 'pending-' || e.key OR s.acked_seq >= e.seq AND NOT EXISTS (SELECT 1 FROM set_aside f WHERE f.follower = 'replication' AND f.seq = e.seq))`
)

// textsFromLog returns the statements that repair texts of rows from the documents of the log. A
// salvage has deleted documents that differ from their hash, so the rest are intact.
func textsFromLog() []string {
	const own = `FROM changes c JOIN symbols k ON k.id = c.kind JOIN symbols o ON o.id = c.op
WHERE k.text = 'entry' AND o.text = 'put' AND c.doc IS NOT NULL AND c.id IN ('pending-' || memory_entries.key, memory_entries.entry_id)`
	return []string{
		// Entries whose seq is damaged.
		`UPDATE memory_entries SET seq = (SELECT max(c.seq) ` + own + `)
WHERE EXISTS (SELECT 1 ` + own + `) AND NOT EXISTS (SELECT 1 ` + own + ` AND c.seq = memory_entries.seq)
AND (SELECT c.doc FROM changes c WHERE c.seq = memory_entries.seq) IS NOT NULL`,

		`UPDATE memory_entries SET raw_entry = c.doc ->> '$.rawEntry' FROM changes c
WHERE c.seq = memory_entries.seq AND c.doc IS NOT NULL AND c.doc ->> '$.rawEntry' IS NOT NULL AND c.doc ->> '$.rawEntry' IS NOT raw_entry`,
		`UPDATE memory_contexts SET markdown = c.doc ->> '$.markdown' FROM changes c
WHERE c.seq = change_seq AND c.doc IS NOT NULL AND c.doc ->> '$.markdown' IS NOT NULL AND c.doc ->> '$.markdown' IS NOT markdown`,

		`UPDATE memory_entries SET tags = ifnull((SELECT c.doc -> '$.tags' FROM changes c
WHERE c.seq = memory_entries.seq AND c.doc IS NOT NULL AND json_type(c.doc, '$.tags') = 'object'), '{}') WHERE NOT json_valid(tags)`,
		`UPDATE memory_entries SET metadata = (SELECT c.doc -> '$.metadata' FROM changes c WHERE c.seq = memory_entries.seq AND c.doc IS NOT NULL)
WHERE metadata IS NOT NULL AND NOT json_valid(metadata)`,
		`UPDATE memory_entries SET synced = (entry_id IS NOT NULL AND canonical_ns IS NOT NULL) WHERE synced NOT IN (0, 1)`,
	}
}

// repairs returns the statements that derive rows from other rows, in their order.
func repairs() []string {
	return []string{
		`INSERT OR IGNORE INTO memory_users (user_id, created_ns) SELECT user_id, min(creation_ns) FROM memories GROUP BY user_id`,
		`UPDATE memories SET project_key = NULL WHERE project_key NOT IN (SELECT key FROM projects)`,
		`UPDATE memory_entries SET vault_id = m.vault_id, user_id = m.user_id FROM memories m WHERE m.memory_id = memory_entries.memory_id`,
		`UPDATE memory_streams SET
last_ns = max(last_ns, ifnull((SELECT max(creation_ns) FROM memory_entries WHERE memory_id = stream), 0)),
last_canonical_ns = max(last_canonical_ns, ifnull((SELECT max(canonical_ns) FROM memory_entries WHERE memory_id = stream), 0)),
context_ns = max(context_ns, ifnull((SELECT max(updated_ns) FROM memory_contexts WHERE memory_id = stream), 0)),
acked_seq = min(acked_seq, head_seq), sent_seq = min(sent_seq, head_seq)`,

		`UPDATE memory_entries SET deleting_seq = NULL WHERE deleting_seq NOT IN (SELECT c.seq FROM changes c JOIN symbols o ON o.id = c.op
WHERE o.text = 'delete' AND c.doc IS NOT NULL)`,
		`UPDATE memories SET deleting_seq = NULL WHERE deleting_seq NOT IN (SELECT c.seq FROM changes c JOIN symbols o ON o.id = c.op
WHERE o.text = 'delete' AND c.doc IS NOT NULL)`,
		`UPDATE memory_vaults SET deleting_seq = NULL WHERE deleting_seq NOT IN (SELECT c.seq FROM changes c JOIN symbols o ON o.id = c.op
WHERE o.text = 'delete' AND c.doc IS NOT NULL)`,
		`DELETE FROM memory_entries WHERE EXISTS (SELECT 1 FROM memory_tombstones t WHERE t.memory_id = memory_entries.memory_id
AND t.id IN (memory_entries.entry_id, memory_entries.hub_key))`,
	}
}

// Repair restores the memories after a salvage has lost rows. Vaults, memories, entries and
// contexts are restored from the log. Vaults and memories that are not in the log either get new
// titles. Entries and contexts that differ from the log get its text. Inflight rows that would not
// be sent are logged again under their old keys. Positions are corrected, and the index is rebuilt.
// Repair is idempotent.
func Repair(ctx context.Context, tx *store.Tx) error {
	s := &memory.CallTx{Kernel: &memory.Kernel{}, Tx: tx}
	if err := contents.ClearIndex(ctx, s); err != nil {
		return err
	}
	if err := execAll(ctx, s, append(textsFromLog(), deleteMadeUp, dropVaults)); err != nil {
		return err
	}
	if err := repairOwnUser(ctx, s); err != nil {
		return err
	}
	if err := restoreLost(ctx, s); err != nil {
		return err
	}
	if err := execAll(ctx, s, repairs()); err != nil {
		return err
	}
	if err := repairLanes(ctx, s); err != nil {
		return err
	}
	if err := cmp.Or(repairAccount(ctx, s), logUnsent(ctx, s)); err != nil {
		return err
	}
	return contents.FillIndex(ctx, s)
}

// restoreLost applies the documents of the log whose rows are lost.
func restoreLost(ctx context.Context, s *memory.CallTx) error {
	d := newDocuments(s.Kernel, fromLog)
	for _, read := range []func(context.Context, *memory.CallTx) ([]Item, error){
		func(ctx context.Context, s *memory.CallTx) ([]Item, error) {
			return lost(ctx, s, selectLostMemories, selectLostVaults)
		},
		orphanedMemories,
		orphanedVaults,
		func(ctx context.Context, s *memory.CallTx) ([]Item, error) {
			if err := s.Exec(ctx, insertStreams); err != nil {
				return nil, err
			}
			return lost(ctx, s, selectLostEntries, selectLostContexts)
		},
	} {
		docs, err := read(ctx, s)
		if err != nil {
			return err
		}
		for i := range docs {
			if err := d.Apply(ctx, s.Tx, &docs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// lost returns the items of the log that queries select, without unreadable ones.
func lost(ctx context.Context, s *memory.CallTx, queries ...string) (out []Item, err error) {
	for _, query := range queries {
		err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
			var d Item
			if err := rows.Scan(&d.Kind, &d.Op, &d.ID, &d.Memory, &d.seq, (*[]byte)(&d.Doc), &d.Project, &d.Owner); err != nil {
				return err
			}
			if d.Validate() == nil && d.belongs() {
				out = append(out, d)
			}
			return nil
		}, query)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// belongs reports whether a document matches the id of its change.
func (d *Item) belongs() bool {
	switch v := d.parsed.(type) {
	case *memory.VaultDoc:
		return v.VaultID == d.ID && rules.CheckTitle(v.Title) == nil
	case *memory.MemoryDoc:
		return v.MemoryID == d.ID && rules.CheckTitle(v.Title) == nil
	case *contents.ContextDoc:
		return v.ContextID == d.ID
	}
	return true
}

// orphanedMemories returns items for memories that are not in the log either.
func orphanedMemories(ctx context.Context, s *memory.CallTx) (out []Item, err error) {
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		d, m := Item{Kind: memory.KindMemory}, memory.MemoryDoc{MemoryType: "chat"}
		err := rows.Scan(&m.MemoryID, &d.Owner, &m.VaultID)
		if m.VaultID == "" {
			m.VaultID = rules.DerivedID(m.MemoryID, "vault:recovered")
		}
		d.ID, d.Memory, d.parsed = m.MemoryID, m.MemoryID, &m
		out = append(out, d)
		return err
	}, selectOrphans)
	return out, err
}

// orphanedVaults is the same for vaults.
func orphanedVaults(ctx context.Context, s *memory.CallTx) (out []Item, err error) {
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		d, v, unused := Item{Kind: memory.KindVault}, memory.VaultDoc{}, ""
		err := rows.Scan(&v.VaultID, &d.Owner, &unused)
		d.ID, d.parsed = v.VaultID, &v
		out = append(out, d)
		return err
	}, selectOrphanedVaults)
	return out, err
}

// logUnsent logs inflight entries again that the replicator would not send.
func logUnsent(ctx context.Context, s *memory.CallTx) error {
	unsent, err := contents.Entries(ctx, s, selectUnsent)
	for i := range unsent {
		e := &unsent[i]
		if err == nil {
			s.User = memory.User{UserID: e.ActorID}
			e.Seq, err = s.LogOn(ctx, e.MemoryID, "", memory.KindEntry, contents.LocalID(e.Key), store.OpPut, e.Doc())
		}
		if err == nil {
			err = contents.SetSeq(ctx, s, e.Key, e.Seq)
		}
	}
	return err
}

func execAll(ctx context.Context, s *memory.CallTx, statements []string) error {
	for _, query := range statements {
		if err := s.Exec(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

const selectFirstUser = `SELECT user_id FROM (SELECT user_id, created_ns AS at FROM memory_users
UNION ALL SELECT user_id, creation_ns FROM memories WHERE creation_ns > 0) WHERE user_id <> '' ORDER BY at LIMIT 1`

// repairOwnUser stores the device's own user again if the note is lost: the oldest user. Otherwise
// the next call would create a user, who owns nothing.
func repairOwnUser(ctx context.Context, s *memory.CallTx) error {
	own, err := memory.OwnUser(ctx, s.Tx, false)
	if err != nil || own != "" {
		return err
	}
	if err := memory.IgnoreNone(s.Tx.Get(ctx, []any{&own}, selectFirstUser)); err != nil || own == "" {
		return err
	}
	return memory.SetOwnUser(ctx, s.Tx, own)
}

const (
	selectLanes = `SELECT stream, lane FROM memory_streams`
	updateLane  = `UPDATE memory_streams SET lane = ?2 WHERE stream = ?1`
)

const (
	selectAllStreams = `SELECT stream FROM memory_streams`
	selectBadAsides  = `SELECT seq FROM set_aside WHERE follower = 'replication' AND NOT json_valid(ifnull(detail, ''))`
)

// repairAccount deletes the replication's notes of lost streams, and refusals whose reason is not
// readable: those changes are sent again.
func repairAccount(ctx context.Context, s *memory.CallTx) error {
	streams, err := s.Tx.Texts(ctx, selectAllStreams)
	for _, follower := range []string{memory.PushFollower, memory.PullFollower} {
		if err == nil {
			err = follow.KeepLanes(ctx, s.Tx, follower, streams)
		}
	}
	var bad []int64
	if err == nil {
		err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
			var seq int64
			err := rows.Scan(&seq)
			bad = append(bad, seq)
			return err
		}, selectBadAsides)
	}
	for _, seq := range bad {
		if err == nil {
			err = follow.Settle(ctx, s.Tx, memory.PushFollower, seq)
		}
	}
	return err
}

// repairLanes sets the lanes of streams.
func repairLanes(ctx context.Context, s *memory.CallTx) error {
	wrong := map[string]int{}
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var stream string
		var lane int
		err := rows.Scan(&stream, &lane)
		if right := shards.LaneOf(stream); right != lane {
			wrong[stream] = right
		}
		return err
	}, selectLanes)
	for stream, lane := range wrong {
		if err == nil {
			err = s.Exec(ctx, updateLane, stream, lane)
		}
	}
	return err
}
