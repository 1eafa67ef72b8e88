package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	// Memories that entries or contexts stand in and whose rows are lost, with the
	// newest put of each that the log still holds, and the project that it was made for.
	selectHomeless = `SELECT x.memory_id, x.user_id, max(x.vault_id), ifnull((SELECT text FROM symbols WHERE id = p.project), ''), p.doc
FROM (SELECT memory_id, user_id, vault_id FROM memory_entries UNION SELECT memory_id, user_id, '' FROM memory_contexts) x
LEFT JOIN changes p ON p.seq = (SELECT max(c.seq) FROM changes c JOIN symbols o ON o.id = c.op
WHERE c.kind = (SELECT id FROM symbols WHERE text = 'memory') AND c.id = x.memory_id AND c.doc IS NOT NULL AND o.text = 'put')
WHERE x.memory_id NOT IN (SELECT memory_id FROM memories)
AND NOT EXISTS (SELECT 1 FROM memory_tombstones t WHERE t.memory_id = x.memory_id AND t.id = x.memory_id) GROUP BY x.memory_id, x.user_id`
	// Memories of which the log has a put, the newest first, and which neither have a row nor
	// were deleted. Where no stream tells whose one is, it is of ?1, the device's own user.
	selectLoggedHomes = `SELECT c.id, coalesce((SELECT user_id FROM memory_streams WHERE stream = c.id), ?1, ''), '',
ifnull((SELECT text FROM symbols WHERE id = c.project), ''), c.doc
FROM changes c JOIN symbols o ON o.id = c.op
WHERE c.kind = (SELECT id FROM symbols WHERE text = 'memory') AND c.doc IS NOT NULL AND o.text = 'put' AND c.id NOT IN (SELECT memory_id FROM memories)
AND NOT EXISTS (SELECT 1 FROM memory_tombstones t WHERE t.memory_id = c.id AND t.id = c.id) ORDER BY c.seq DESC`
	// Vaults that are lost, or that a salvage has made up for the memories in them, with
	// their owner and what the log says of them.
	selectVaultless = `SELECT x.id, x.owner, (SELECT c.doc FROM changes c JOIN symbols o ON o.id = c.op WHERE c.kind = (SELECT id FROM symbols WHERE text = 'vault')
AND c.id = x.id AND c.doc IS NOT NULL AND o.text = 'put' ORDER BY c.seq DESC LIMIT 1)
FROM (SELECT m.vault_id AS id, m.user_id AS owner FROM memories m UNION
SELECT c.id, coalesce((SELECT user_id FROM memory_streams WHERE stream = c.id), ?1, '')
FROM changes c JOIN symbols o ON o.id = c.op WHERE c.kind = (SELECT id FROM symbols WHERE text = 'vault') AND c.doc IS NOT NULL AND o.text = 'put') x
WHERE x.owner <> '' AND x.id NOT IN (SELECT vault_id FROM memory_vaults WHERE creation_ns > 0) GROUP BY x.id ORDER BY x.id`
	deleteMadeUp   = `DELETE FROM memories WHERE creation_ns <= 0`
	adoptVault     = `UPDATE memory_vaults SET user_id = ?2, title = ?3, description = ?4, creation_ns = ?5 WHERE vault_id = ?1`
	dropVaults     = `DELETE FROM memory_vaults WHERE creation_ns <= 0 AND vault_id NOT IN (SELECT vault_id FROM memories)`
	selectMadeUp   = `SELECT creation_ns <= 0 FROM memory_vaults WHERE vault_id = ?`
	selectVaultAny = `SELECT EXISTS (SELECT 1 FROM memory_vaults WHERE vault_id = ?)`

	// Inflight rows that nothing would send any more.
	selectUnsent = entryColumns + `LEFT JOIN changes c ON c.seq = e.seq LEFT JOIN memory_streams s ON s.stream = e.memory_id
WHERE e.synced = 0 AND (c.doc IS NULL OR c.id <> 'pending-' || e.key OR s.acked_seq >= e.seq AND NOT EXISTS (SELECT 1 FROM set_aside f WHERE f.follower = 'replication' AND f.seq = e.seq))`
)

// fromLog are the statements that restore rows from the documents of the change log.
// A salvage has deleted documents that differ from their hash, so the rest are intact.
func fromLog() []string {
	const own = `FROM changes c JOIN symbols k ON k.id = c.kind JOIN symbols o ON o.id = c.op
WHERE k.text = 'entry' AND o.text = 'put' AND c.doc IS NOT NULL AND c.id IN ('pending-' || memory_entries.key, memory_entries.entry_id)`
	return []string{
		// An entry whose number of its change is damaged.
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

// mends are the statements that derive rows from others again, in their order.
func mends() []string {
	return []string{
		`INSERT OR IGNORE INTO memory_users (user_id, created_ns) SELECT user_id, min(creation_ns) FROM memories GROUP BY user_id`,
		`UPDATE memories SET project_key = NULL WHERE project_key NOT IN (SELECT key FROM projects)`,
		`UPDATE memory_entries SET vault_id = m.vault_id, user_id = m.user_id FROM memories m WHERE m.memory_id = memory_entries.memory_id`,

		// mendLanes puts the lane right.
		`INSERT OR IGNORE INTO memory_streams (stream, user_id, lane, head_seq, subscribed)
SELECT i.id, i.user_id, 0, ifnull((SELECT max(c.seq) FROM changes c WHERE c.stream = (SELECT id FROM symbols WHERE text = i.id) AND c.doc IS NOT NULL), 0), 1
FROM (SELECT memory_id AS id, user_id FROM memories UNION ALL SELECT vault_id, user_id FROM memory_vaults) i`,
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

// Repair makes memories whole again after a salvage has lost rows: memories, vaults,
// entries and contexts come back from the log, memories and vaults otherwise under names
// of their own; entries and contexts that differ from the log get its text, inflight rows
// are logged again to be sent under their old keys, positions follow, and the index is
// built again. Repeating it is harmless.
func Repair(ctx context.Context, tx *store.Tx) error {
	s := &callTx{Service: &Service{}, tx: tx}
	if err := s.clearIndex(ctx); err != nil {
		return err
	}
	if err := s.execAll(ctx, fromLog()); err != nil {
		return err
	}
	if err := s.mendOwnUser(ctx); err != nil {
		return err
	}
	if err := s.mendHomes(ctx); err != nil {
		return err
	}
	if err := s.bringBack(ctx); err != nil {
		return err
	}
	if err := s.execAll(ctx, mends()); err != nil {
		return err
	}
	if err := firstError(s.mendLanes(ctx), s.mendAccount(ctx)); err != nil {
		return err
	}
	unsent, err := s.rows(ctx, selectUnsent)
	for i := range unsent {
		e := &unsent[i]
		if err == nil {
			s.u = user{ID: e.ActorID}
			e.seq, err = s.logOn(ctx, e.MemoryID, "", KindEntry, localID(e.key), store.OpPut, e.doc())
		}
		if err == nil {
			_, err = tx.Exec(ctx, updateSeq, e.seq, e.key)
		}
	}
	if err != nil {
		return err
	}
	return s.fillIndex(ctx)
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

// mendOwnUser notes again who the device's own user is: the first that there was. Without
// the note the next call would make another one, who sees nothing of what was kept.
func (s *callTx) mendOwnUser(ctx context.Context) error {
	own, err := ownUser(ctx, s.tx, false)
	if err != nil || own != "" {
		return err
	}
	if err := ignoreNone(s.tx.Get(ctx, []any{&own}, selectFirstUser)); err != nil || own == "" {
		return err
	}
	return s.tx.SetMeta(ctx, metaUser, own)
}

// homeless is a memory whose row is lost.
type homeless struct {
	memory, user, vault string
	project             string // whose default memory it was, "" for none
	doc                 memoryDoc
}

// mendHomes brings lost memories and vaults back, and those that a salvage has made up
// because other rows refer to them.
func (s *callTx) mendHomes(ctx context.Context) error {
	for _, query := range []string{deleteMadeUp, dropVaults} {
		if _, err := s.tx.Exec(ctx, query); err != nil {
			return err
		}
	}
	own, err := ownUser(ctx, s.tx, false)
	if err != nil {
		return err
	}
	lost, err := s.homeless(ctx, own)
	for _, h := range lost {
		if err == nil {
			err = s.mendVault(ctx, h.doc.VaultID, h.user, h.doc.Vault)
		}
		if err == nil {
			_, err = s.tx.Exec(ctx, insertMemory, h.memory, h.user, h.doc.VaultID, h.doc.MemoryType, h.doc.Title, h.doc.Description, h.doc.CreationTime, nil, nullable(h.doc.projectUID()))
		}
		if err == nil && h.project != "" {
			err = s.linkAgain(ctx, h)
		}
	}
	if err != nil {
		return err
	}
	return s.mendVaults(ctx, own)
}

// linkAgain makes a memory that is back the default memory of its project, if a write of
// that project would find it as such.
func (s *callTx) linkAgain(ctx context.Context, h homeless) error {
	q, ok, err := project.Find(ctx, s.tx, h.project)
	if err != nil || !ok || q.ID != h.project {
		return err
	}
	s.u = user{ID: h.user}
	if found, err := s.find(ctx, selectMemoryOf, h.user, q.Key); err != nil || found {
		return err
	}
	keys, err := project.KeysOf(ctx, s.tx, q)
	if err != nil {
		return err
	}
	found, err := s.findFree(ctx, keys)
	if err != nil || !found || s.m.MemoryID != h.memory {
		return err
	}
	if err := s.link(ctx, q); err != nil {
		return err
	}
	_, err = s.tx.Exec(ctx, updateUID, h.memory, keys[0].UID)
	return err
}

// homeless are the memories that are lost; own is the device's own user.
func (s *callTx) homeless(ctx context.Context, own string) (lost []homeless, err error) {
	add := func(rows *sql.Rows) error {
		var h homeless
		var doc sql.NullString
		if err := rows.Scan(&h.memory, &h.user, &h.vault, &h.project, &doc); err != nil {
			return err
		}
		if !doc.Valid || json.Unmarshal([]byte(doc.String), &h.doc) != nil || checkTitle(h.doc.Title) != nil {
			h.doc = memoryDoc{VaultID: h.vault, MemoryType: "chat", Title: "recovered-" + h.memory[:min(8, len(h.memory))]}
		}
		if h.doc.VaultID == "" {
			h.doc.VaultID = derivedID(h.memory, "vault:recovered")
		}
		h.doc.CreationTime = s.created(h.doc.CreationTime)
		if h.user != "" && !slices.ContainsFunc(lost, func(o homeless) bool { return o.memory == h.memory }) {
			lost = append(lost, h)
		}
		return nil
	}
	return lost, firstError(s.tx.Each(ctx, add, selectHomeless), s.tx.Each(ctx, add, selectLoggedHomes, own))
}

// created is a time of creation, now if it is not known.
func (s *callTx) created(at Time) Time {
	if at <= 0 {
		return Time(s.tx.Now().UnixNano())
	}
	return at
}

// lostVault is a vault without a row of its own, with what the log says of it.
type lostVault struct {
	id, owner string
	doc       vaultDoc
}

// vaultless are the vaults that are lost or made up; own is the device's own user.
func (s *callTx) vaultless(ctx context.Context, own string) (lost []lostVault, err error) {
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		var v lostVault
		var doc sql.NullString
		err := rows.Scan(&v.id, &v.owner, &doc)
		if doc.Valid && json.Unmarshal([]byte(doc.String), &v.doc) != nil {
			v.doc = vaultDoc{}
		}
		lost = append(lost, v)
		return err
	}, selectVaultless, own)
	return lost, err
}

// mendVaults brings the vaults back that no lost memory has named.
func (s *callTx) mendVaults(ctx context.Context, own string) error {
	lost, err := s.vaultless(ctx, own)
	for _, v := range lost {
		if err == nil {
			err = s.mendVault(ctx, v.id, v.owner, v.doc)
		}
	}
	return err
}

// mendVault brings a vault back if it is lost or made up.
func (s *callTx) mendVault(ctx context.Context, id, owner string, d vaultDoc) error {
	var madeUp bool
	err := s.tx.Get(ctx, []any{&madeUp}, selectMadeUp, id)
	if ignoreNone(err) != nil || err == nil && !madeUp {
		return err
	}
	s.u = user{ID: owner}
	other, taken, err := s.vaultTitled(ctx, d.Title)
	if err != nil {
		return err
	}
	if taken && other.VaultID != id || checkTitle(d.Title) != nil {
		d.Title = "recovered-" + id[:min(8, len(id))]
	}
	query := insertVault
	if madeUp {
		query = adoptVault
	}
	_, err = s.tx.Exec(ctx, query, id, owner, d.Title, d.Description, s.created(d.CreationTime))
	return err
}

const (
	selectLanes = `SELECT stream, lane FROM memory_streams`
	updateLane  = `UPDATE memory_streams SET lane = ?2 WHERE stream = ?1`
)

const (
	selectAllStreams = `SELECT stream FROM memory_streams`
	selectBadAsides  = `SELECT seq FROM set_aside WHERE follower = 'replication' AND NOT json_valid(ifnull(detail, ''))`
)

// mendAccount forgets what the replication has noted of streams that are lost, and
// refusals whose reason cannot be read: those changes are sent again.
func (s *callTx) mendAccount(ctx context.Context) error {
	streams, err := s.tx.Texts(ctx, selectAllStreams)
	for _, follower := range []string{PushFollower, PullFollower} {
		if err == nil {
			err = s.tx.KeepLanes(ctx, follower, streams)
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
			err = s.tx.Settle(ctx, PushFollower, seq)
		}
	}
	return err
}

// mendLanes gives streams their lanes.
func (s *callTx) mendLanes(ctx context.Context) error {
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
