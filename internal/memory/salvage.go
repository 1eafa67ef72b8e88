package memory

import (
	"context"
	"database/sql"

	"cairn/internal/memory/rules"
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
	selectUnsent = entryColumns + `LEFT JOIN changes c ON c.seq = e.seq LEFT JOIN memory_streams s ON s.stream = e.memory_id
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
	s := &callTx{Service: &Service{}, tx: tx}
	if err := s.clearIndex(ctx); err != nil {
		return err
	}
	if err := s.execAll(ctx, append(textsFromLog(), deleteMadeUp, dropVaults)); err != nil {
		return err
	}
	if err := s.repairOwnUser(ctx); err != nil {
		return err
	}
	if err := s.restoreLost(ctx); err != nil {
		return err
	}
	if err := s.execAll(ctx, repairs()); err != nil {
		return err
	}
	if err := s.repairLanes(ctx); err != nil {
		return err
	}
	if err := firstError(s.repairAccount(ctx), s.logUnsent(ctx)); err != nil {
		return err
	}
	return s.fillIndex(ctx)
}

// restoreLost applies the documents of the log whose rows are lost.
func (s *callTx) restoreLost(ctx context.Context) error {
	d := newDocuments(s.Service, fromLog)
	for _, read := range []func(context.Context) ([]Item, error){
		func(ctx context.Context) ([]Item, error) { return s.lost(ctx, selectLostMemories, selectLostVaults) },
		s.orphanedMemories,
		s.orphanedVaults,
		func(ctx context.Context) ([]Item, error) {
			if _, err := s.tx.Exec(ctx, insertStreams); err != nil {
				return nil, err
			}
			return s.lost(ctx, selectLostEntries, selectLostContexts)
		},
	} {
		docs, err := read(ctx)
		if err != nil {
			return err
		}
		for i := range docs {
			if err := d.Apply(ctx, s.tx, &docs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// lost returns the items of the log that queries select, without unreadable ones.
func (s *callTx) lost(ctx context.Context, queries ...string) (out []Item, err error) {
	for _, query := range queries {
		err = s.tx.Each(ctx, func(rows *sql.Rows) error {
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
	case *vaultDoc:
		return v.VaultID == d.ID && rules.CheckTitle(v.Title) == nil
	case *memoryDoc:
		return v.MemoryID == d.ID && rules.CheckTitle(v.Title) == nil
	case *contextDoc:
		return v.ContextID == d.ID
	}
	return true
}

// orphanedMemories returns items for memories that are not in the log either.
func (s *callTx) orphanedMemories(ctx context.Context) (out []Item, err error) {
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		d, m := Item{Kind: KindMemory}, memoryDoc{MemoryType: "chat"}
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
func (s *callTx) orphanedVaults(ctx context.Context) (out []Item, err error) {
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		d, v, unused := Item{Kind: KindVault}, vaultDoc{}, ""
		err := rows.Scan(&v.VaultID, &d.Owner, &unused)
		d.ID, d.parsed = v.VaultID, &v
		out = append(out, d)
		return err
	}, selectOrphanedVaults)
	return out, err
}

// logUnsent logs inflight entries again that the replicator would not send.
func (s *callTx) logUnsent(ctx context.Context) error {
	unsent, err := s.rows(ctx, selectUnsent)
	for i := range unsent {
		e := &unsent[i]
		if err == nil {
			s.u = user{ID: e.ActorID}
			e.seq, err = s.logOn(ctx, e.MemoryID, "", KindEntry, localID(e.key), store.OpPut, e.doc())
		}
		if err == nil {
			_, err = s.tx.Exec(ctx, updateSeq, e.seq, e.key)
		}
	}
	return err
}

func (s *callTx) execAll(ctx context.Context, statements []string) error {
	for _, query := range statements {
		if _, err := s.tx.Exec(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

const selectFirstUser = `SELECT user_id FROM (SELECT user_id, created_ns AS at FROM memory_users
UNION ALL SELECT user_id, creation_ns FROM memories WHERE creation_ns > 0) WHERE user_id <> '' ORDER BY at LIMIT 1`

// repairOwnUser stores the device's own user again if the note is lost: the oldest user. Otherwise
// the next call would create a user, who owns nothing.
func (s *callTx) repairOwnUser(ctx context.Context) error {
	own, err := ownUser(ctx, s.tx, false)
	if err != nil || own != "" {
		return err
	}
	if err := ignoreNone(s.tx.Get(ctx, []any{&own}, selectFirstUser)); err != nil || own == "" {
		return err
	}
	return s.tx.SetMeta(ctx, metaUser, own)
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
func (s *callTx) repairAccount(ctx context.Context) error {
	streams, err := s.tx.Texts(ctx, selectAllStreams)
	for _, follower := range []string{PushFollower, PullFollower} {
		if err == nil {
			err = follow.KeepLanes(ctx, s.tx, follower, streams)
		}
	}
	var bad []int64
	if err == nil {
		err = s.tx.Each(ctx, func(rows *sql.Rows) error {
			var seq int64
			err := rows.Scan(&seq)
			bad = append(bad, seq)
			return err
		}, selectBadAsides)
	}
	for _, seq := range bad {
		if err == nil {
			err = follow.Settle(ctx, s.tx, PushFollower, seq)
		}
	}
	return err
}

// repairLanes sets the lanes of streams.
func (s *callTx) repairLanes(ctx context.Context) error {
	wrong := map[string]int{}
	err := s.tx.Each(ctx, func(rows *sql.Rows) error {
		var stream string
		var lane int
		err := rows.Scan(&stream, &lane)
		if right := LaneOf(stream); right != lane {
			wrong[stream] = right
		}
		return err
	}, selectLanes)
	for stream, lane := range wrong {
		if err == nil {
			_, err = s.tx.Exec(ctx, updateLane, stream, lane)
		}
	}
	return err
}

// missing returns human-readable findings about rows that are in the log and not in the tables.
func (s *callTx) missing(ctx context.Context) (findings []string, err error) {
	reported := map[string]bool{}
	lost := func(what, id string) {
		if finding := "P11: " + what + " " + id + " is in the log and has no row"; !reported[finding] {
			reported[finding] = true
			findings = append(findings, finding)
		}
	}
	memories, err := s.lost(ctx, selectLostMemories)
	for _, d := range memories {
		s.m.MemoryID = d.ID
		if deleted, err := s.wasDeleted(ctx, d.ID); err != nil {
			return findings, err
		} else if !deleted {
			lost("memory", d.ID)
		}
	}
	if err != nil {
		return findings, err
	}
	for _, read := range []func(context.Context) ([]Item, error){
		s.orphanedMemories, s.orphanedVaults,
		func(ctx context.Context) ([]Item, error) { return s.lost(ctx, selectLostVaults) },
	} {
		docs, err := read(ctx)
		if err != nil {
			return findings, err
		}
		for _, d := range docs {
			lost(d.Kind, d.ID)
		}
	}
	contents, err := s.lost(ctx, selectLostEntries, selectLostContexts)
	if err != nil {
		return findings, err
	}
	for i := range contents {
		if err := s.missingContent(ctx, &contents[i], lost); err != nil {
			return findings, err
		}
	}
	return findings, nil
}

// missingContent reports an entry or a context of the log that has no row in its memory.
func (s *callTx) missingContent(ctx context.Context, d *Item, lost func(what, id string)) error {
	there, err := s.home(ctx, d.Memory)
	if err != nil || !there {
		return err
	}
	switch v := d.parsed.(type) {
	case *contextDoc:
		lost("context", d.ID)
	case *entryDoc:
		_, found, err := s.entryByAnyName(ctx, v.Key, v.EntryID, d.localKey(v))
		if err != nil || found {
			return err
		}
		if deleted, err := s.wasDeleted(ctx, v.EntryID, v.Key); err != nil || deleted {
			return err
		}
		lost("the entry", d.ID)
	}
	return nil
}

// home sets the scope's memory and its owner. ok is false if the memory is missing.
func (s *callTx) home(ctx context.Context, memory string) (ok bool, err error) {
	var m memoryRow
	err = s.tx.Get(ctx, []any{&m.ActorID, &m.VaultID}, `SELECT user_id, vault_id FROM memories WHERE memory_id = ?`, memory)
	m.MemoryID, m.exists = memory, err == nil
	s.u, s.m = user{ID: m.ActorID}, m
	return m.exists, ignoreNone(err)
}
