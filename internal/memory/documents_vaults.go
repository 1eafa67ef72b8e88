package memory

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/fault"
	"cairn/internal/memory/rules"
	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	// A stream with an id at the hub keeps it: its memory was deleted there, if the hub has
	// another memory of that title now, and the stream will contain the delete.
	updateNewRemote = `UPDATE memory_streams SET remote_id = ?2 WHERE stream = ?1 AND remote_id IS NULL AND sent_seq = 0 AND pull_cursor = 0`

	// A placeholder vault, which a salvage created for its memories, has no creation time.
	restoreVault = `INSERT INTO memory_vaults (vault_id, user_id, title, description, creation_ns) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (vault_id) DO UPDATE SET user_id = excluded.user_id, title = excluded.title, description = excluded.description,
creation_ns = excluded.creation_ns WHERE creation_ns <= 0`

	restoreStream = `INSERT OR IGNORE INTO memory_streams (stream, user_id, lane, head_seq, subscribed)
SELECT ?1, ?2, ?3, ifnull((SELECT max(c.seq) FROM changes c WHERE c.stream = (SELECT id FROM symbols WHERE text = ?1) AND c.doc IS NOT NULL), 0), 1`

	selectVaultAny = `SELECT EXISTS (SELECT 1 FROM memory_vaults WHERE vault_id = ?)`
)

// vault returns the vault here for a vault of the origin: the one with its id, else the one with
// its title, else a new one.
func (d *Documents) vault(ctx context.Context, s *callTx, doc vaultDoc) (v Vault, err error) {
	id := doc.VaultID
	v, err = s.vault(ctx, id)
	if err == nil && v.CreationTime <= 0 { // a placeholder
		err = notFound("vault")
	}
	if err == nil {
		d.vaults[id] = v
		return v, nil
	}
	if !fault.HasCode(err, CodeNotFound) {
		return v, err
	}
	other, found, err := s.vaultTitled(ctx, doc.Title)
	if err != nil {
		return v, err
	}
	switch {
	case d.from == fromLog:
		if found && other.VaultID != id || doc.Title == "" {
			doc.Title = recoveredTitle(id)
		}
	case found && d.from == fromExport:
		if other, err = s.vault(ctx, other.VaultID); err == nil { // it is not being deleted
			d.vaults[id] = other
		}
		return other, err
	case found:
		if other.VaultID != id {
			_, err = s.tx.Exec(ctx, updateRemote, other.VaultID, id)
		}
		return other, err
	}
	v = Vault{VaultID: id, ActorID: s.u.ID, Title: doc.Title, Description: d.redact(doc.Description), CreationTime: doc.CreationTime}
	v.VaultID, err = d.newVault(ctx, s, v, doc)
	d.vaults[id] = v
	return v, err
}

// newVault stores a vault and returns its id, which is a new one if another user's vault has the
// id.
func (d *Documents) newVault(ctx context.Context, s *callTx, v Vault, doc vaultDoc) (string, error) {
	switch d.from {
	case fromLog:
		_, err := s.tx.Exec(ctx, restoreVault, v.VaultID, v.ActorID, v.Title, v.Description, s.created(v.CreationTime))
		return v.VaultID, err
	case fromExport:
		var taken bool
		if err := s.tx.Get(ctx, []any{&taken}, selectVaultAny, v.VaultID); err != nil {
			return "", err
		}
		if taken {
			v.VaultID = rules.NewID()
		}
		return v.VaultID, s.putVault(ctx, v, hubKey("POST", "/v1/vaults", v.VaultID))
	}
	_, err := s.tx.Exec(ctx, insertVault, v.VaultID, v.ActorID, v.Title, v.Description, v.CreationTime)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(doc)
	if err == nil {
		_, err = s.tx.Append(ctx, store.Change{Device: hubDevice, Stream: v.VaultID, Kind: KindVault, ID: v.VaultID, Op: store.OpPut, Doc: text})
	}
	if err == nil {
		_, err = s.tx.Exec(ctx, upsertStream, v.VaultID, s.u.ID, LaneOf(v.VaultID), 0)
	}
	return v.VaultID, err
}

// recoveredTitle returns a title for a vault or memory whose own title is lost or in use.
func recoveredTitle(id string) string { return "recovered-" + id[:min(8, len(id))] }

// created returns a creation time, now if it is unknown.
func (s *callTx) created(at Time) Time {
	if at <= 0 {
		return Time(s.tx.Now().UnixNano())
	}
	return at
}

// memory stores a memory, unless it exists under its id, as the default memory of its project, or
// under its title.
func (d *Documents) memory(ctx context.Context, tx *store.Tx, doc *Item, m *memoryDoc) error {
	switch d.from {
	case fromHub:
		return d.pulledMemory(ctx, d.call, doc, m)
	case fromLog:
		s, err := d.owner(ctx, tx, doc.Owner)
		if err != nil {
			return err
		}
		return d.loggedMemory(ctx, s, doc, m)
	}
	v := d.vaults[m.VaultID]
	s, err := d.scope(ctx, tx, v.ActorID)
	if err != nil {
		return err
	}
	id, err := d.exportedMemory(ctx, s, doc.Project, v, m)
	d.memories[m.MemoryID] = id
	return err
}

// in returns the memory of a document in a vault of its owner.
func (m *memoryDoc) in(v Vault) Memory {
	return Memory{
		MemoryID: m.MemoryID, ActorID: v.ActorID, VaultID: v.VaultID, MemoryType: m.MemoryType, Title: m.Title, Description: m.Description,
		CreationTime: m.CreationTime,
	}
}

// insertMemory stores the row of a memory.
func (s *callTx) insertMemory(ctx context.Context, m Memory, projectKey int64, uid string) error {
	_, err := s.tx.Exec(ctx, insertMemory, m.MemoryID, m.ActorID, m.VaultID, m.MemoryType, m.Title, m.Description, m.CreationTime,
		number(projectKey), nullable(uid))
	return err
}

func (d *Documents) pulledMemory(ctx context.Context, s *callTx, doc *Item, m *memoryDoc) error {
	stream, err := d.here(ctx, s, doc.Memory)
	if err != nil {
		return err
	}
	found, err := s.find(ctx, selectAnyMemory, stream)
	if err != nil {
		return err
	}
	if found {
		if m.ProjectUIDs != nil && s.m.deleting == 0 {
			err = s.claimed(ctx, m.ProjectUIDs)
		}
		return err
	}
	s.m = memoryRow{}
	s.m.MemoryID = stream
	if deleted, err := s.wasDeleted(ctx, stream); err != nil || deleted {
		return err
	}
	delete(d.memories, doc.Memory) // it may become the remote id of a memory here
	q, met, err := s.meet(ctx, m)
	if err != nil || met {
		return err
	}
	v, err := d.vault(ctx, s, m.Vault)
	if err != nil {
		return err
	}
	var existing string
	err = s.tx.Get(ctx, []any{&existing}, selectTitled, v.VaultID, m.Title)
	if err == nil {
		_, err = s.tx.Exec(ctx, updateNewRemote, existing, m.MemoryID)
		return err
	}
	if ignoreNone(err) != nil {
		return err
	}
	row := m.in(v)
	row.MemoryID, row.ActorID = stream, s.u.ID
	if err = s.insertMemory(ctx, row, q.Key, m.projectUID()); err == nil {
		_, err = s.tx.Exec(ctx, upsertStream, stream, s.u.ID, LaneOf(stream), 0)
	}
	if err == nil {
		_, err = d.logPulled(ctx, s, stream, doc, stream, doc.Doc)
	}
	return err
}

// exportedMemory returns the local id of a memory of an export, "" if it was deleted here.
func (d *Documents) exportedMemory(ctx context.Context, s *callTx, projectID string, v Vault, m *memoryDoc) (string, error) {
	id, q, err := d.memoryHere(ctx, s, projectID, v, m)
	if err != nil || id != "" {
		return id, err
	}
	s.m.MemoryID = m.MemoryID
	if deleted, err := s.wasDeleted(ctx, m.MemoryID); err != nil || deleted {
		return "", err
	}
	var taken bool // by another user
	if err := s.tx.Get(ctx, []any{&taken}, selectMemoryExists, m.MemoryID); err != nil {
		return "", err
	}
	row := m.in(v)
	row.Description = d.redact(row.Description)
	if taken {
		row.MemoryID = rules.NewID()
	}
	d.counts.Memories++
	err = s.putMemory(ctx, row, v, q, hubKey("POST", "/v1/vaults/"+v.VaultID+"/memories", row.MemoryID))
	if err == nil && q == nil && m.projectUID() != "" {
		_, err = s.tx.Exec(ctx, updateUID, row.MemoryID, m.projectUID())
	}
	return row.MemoryID, err
}

// memoryHere finds the memory here for a memory of an export: by its id, as the default memory of
// its project, else by its title. If there is none, q is the project whose default memory it
// becomes, nil for none.
func (d *Documents) memoryHere(ctx context.Context, s *callTx, projectID string, v Vault, m *memoryDoc) (id string, q *owner, err error) {
	found, err := s.find(ctx, selectMemory, m.MemoryID)
	if err != nil || found {
		return s.m.MemoryID, nil, err
	}
	if projectID != "" {
		s.c.ProjectID = projectID
		if err := s.openDefault(ctx); err != nil || s.m.exists {
			return s.m.MemoryID, nil, err
		}
		at, err := project.Ensure(ctx, s.tx, projectID)
		if err != nil {
			return "", nil, err
		}
		keys, err := project.KeysOf(ctx, s.tx, at)
		if err != nil {
			return "", nil, err
		}
		q = &owner{at, keys}
	}
	var titled string
	if err := ignoreNone(s.tx.Get(ctx, []any{&titled}, selectTitled, v.VaultID, m.Title)); err != nil || titled == "" {
		return "", q, err
	}
	if found, err = s.find(ctx, selectMemory, titled); err == nil && !found {
		err = notFound("memory") // it is being deleted
	}
	return titled, nil, err
}

// loggedMemory restores a memory from the log. Its newest document determines the project.
func (d *Documents) loggedMemory(ctx context.Context, s *callTx, doc *Item, m *memoryDoc) error {
	seq, made := d.made[m.MemoryID]
	if made && doc.seq <= seq.put {
		return nil
	}
	if !made {
		s.m.MemoryID = m.MemoryID
		known, err := s.isKnownMemory(ctx, m.MemoryID)
		if err != nil || known {
			return err
		}
		if err := d.bringBackMemory(ctx, s, m); err != nil {
			return err
		}
	} else if _, err := s.tx.Exec(ctx, relinkMemory, m.MemoryID, nullable(m.projectUID())); err != nil {
		return err
	}
	d.made[m.MemoryID] = &madeRow{put: doc.seq}
	if doc.Project == "" {
		return nil
	}
	return s.linkAgain(ctx, m.MemoryID, doc.Project)
}

const relinkMemory = `UPDATE memories SET project_key = NULL, project_uid = ?2 WHERE memory_id = ?1`

// isKnownMemory reports whether a memory exists or was deleted here.
func (s *callTx) isKnownMemory(ctx context.Context, id string) (known bool, err error) {
	if err = s.tx.Get(ctx, []any{&known}, selectMemoryExists, id); err == nil && !known {
		known, err = s.wasDeleted(ctx, id)
	}
	return known, err
}

// bringBackMemory restores a memory with its vault and its stream.
func (d *Documents) bringBackMemory(ctx context.Context, s *callTx, m *memoryDoc) error {
	in := m.Vault
	in.VaultID = m.VaultID
	v, err := d.vault(ctx, s, in)
	if err != nil {
		return err
	}
	row := m.in(v)
	row.CreationTime = s.created(row.CreationTime)
	var other string
	if err := ignoreNone(s.tx.Get(ctx, []any{&other}, selectTitled, v.VaultID, row.Title)); err != nil {
		return err
	}
	if other != "" || row.Title == "" {
		row.Title = recoveredTitle(row.MemoryID)
	}
	if err := s.insertMemory(ctx, row, 0, m.projectUID()); err != nil {
		return err
	}
	_, err = s.tx.Exec(ctx, restoreStream, row.MemoryID, s.u.ID, LaneOf(row.MemoryID))
	return err
}

// linkAgain makes a restored memory the default memory of its project, if a write of the project
// would find it as such.
func (s *callTx) linkAgain(ctx context.Context, memory, projectID string) error {
	q, ok, err := project.Find(ctx, s.tx, projectID)
	if err != nil || !ok || q.ID != projectID {
		return err
	}
	if found, err := s.find(ctx, selectMemoryOf, s.u.ID, q.Key); err != nil || found {
		return err
	}
	keys, err := project.KeysOf(ctx, s.tx, q)
	if err != nil {
		return err
	}
	found, err := s.findFree(ctx, keys)
	if err != nil || !found || s.m.MemoryID != memory {
		return err
	}
	if err := s.link(ctx, q); err != nil {
		return err
	}
	_, err = s.tx.Exec(ctx, updateUID, memory, keys[0].UID)
	return err
}

// delete deletes a vault, a memory or an entry that was deleted at the hub.
func (d *Documents) delete(ctx context.Context, tx *store.Tx, doc *Item) error {
	s := d.call
	if d.from != fromHub {
		return nil // deleted rows have no documents in the log
	}
	id, err := d.here(ctx, s, doc.Memory)
	if err != nil {
		return err
	}
	switch doc.Kind {
	case KindVault:
		var held int64
		err := tx.Get(ctx, []any{&held}, selectInVault, id)
		if err == nil && held == 0 {
			err = s.removeVault(ctx, id)
		}
		return err
	case KindMemory:
		return d.deleteMemory(ctx, s, id, doc)
	}
	if found, err := s.find(ctx, selectAnyMemory, id); err != nil || !found {
		return err // it was deleted here, or is another user's
	}
	return d.deleteEntry(ctx, s, doc)
}

const (
	selectOwnPending = entryColumns + `WHERE e.memory_id = ? AND e.synced = 0 ORDER BY e.key`
	stopStream       = `UPDATE memory_streams SET acked_seq = head_seq WHERE stream = ?`

	selectPendingContexts = `SELECT change_seq, seq FROM memory_contexts WHERE memory_id = ? AND synced = 0`
)

// deleteMemory deletes a memory that another device has deleted. Inflight entries and
// contexts stay readable, each with a failure, until they are discarded.
func (d *Documents) deleteMemory(ctx context.Context, s *callTx, id string, doc *Item) error {
	found, err := s.find(ctx, selectAnyMemory, id)
	if err != nil || !found {
		return err
	}
	left, err := s.rows(ctx, selectOwnPending, id)
	if err == nil {
		err = s.removeMemory(ctx, id, false)
	}
	const why = "the memory was deleted on another device"
	failed := map[int64]string{} // by change, the local id of its entry or context
	for _, e := range left {
		failed[e.seq] = localID(e.key)
	}
	if err == nil {
		err = s.tx.Each(ctx, func(rows *sql.Rows) error {
			var seq, n int64
			err := rows.Scan(&seq, &n)
			failed[seq] = contextName(n)
			return err
		}, selectPendingContexts, id)
	}
	for seq, local := range failed {
		if err == nil {
			err = s.setAside(ctx, id, seq, HubRefusal{local, 404, CodeNotFound, why})
		}
	}
	if err == nil {
		_, err = s.tx.Exec(ctx, stopStream, id)
	}
	if err == nil {
		_, err = d.logPulled(ctx, s, id, doc, id, nil)
	}
	return err
}

// tombstone stores what was deleted elsewhere, so that it does not come back. Existing rows stay.
func (d *Documents) tombstone(ctx context.Context, tx *store.Tx, memory string, t *tombstoneDoc) error {
	s := &callTx{Service: d.book, tx: tx}
	if id := d.memories[memory]; id != "" {
		memory = id
	}
	var there bool
	if err := tx.Get(ctx, []any{&there}, selectMemoryExists, t.ID); err != nil || there {
		return err
	}
	if _, found, err := s.entryByKeyOrID(ctx, t.ID, t.ID); err != nil || found {
		return err
	}
	_, err := tx.Exec(ctx, insertTombstone, memory, t.ID, t.At)
	return err
}
