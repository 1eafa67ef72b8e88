package items

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/shards"
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
)

// vault returns the vault here for a vault of the origin: the one with its id, else the one with
// its title, else a new one.
func (d *Documents) vault(ctx context.Context, s *memory.CallTx, doc memory.VaultDoc) (v memory.Vault, err error) {
	id := doc.VaultID
	v, err = s.Vault(ctx, id)
	if err == nil && v.CreationTime <= 0 { // a placeholder
		err = memory.NotFound("vault")
	}
	if err == nil {
		d.vaults[id] = v
		return v, nil
	}
	if !fault.HasCode(err, memory.CodeNotFound) {
		return v, err
	}
	other, found, err := s.VaultTitled(ctx, doc.Title)
	if err != nil {
		return v, err
	}
	switch {
	case d.from == fromLog:
		if found && other.VaultID != id || doc.Title == "" {
			doc.Title = recoveredTitle(id)
		}
	case found && d.from == fromExport:
		if other, err = s.Vault(ctx, other.VaultID); err == nil { // it is not being deleted
			d.vaults[id] = other
		}
		return other, err
	case found:
		if other.VaultID != id {
			err = s.SetRemote(ctx, other.VaultID, id)
		}
		return other, err
	}
	v = memory.Vault{VaultID: id, ActorID: s.User.UserID, Title: doc.Title, Description: d.redact(doc.Description), CreationTime: doc.CreationTime}
	v.VaultID, err = d.newVault(ctx, s, v, doc)
	d.vaults[id] = v
	return v, err
}

// newVault stores a vault and returns its id, which is a new one if another user's vault has the
// id.
func (d *Documents) newVault(ctx context.Context, s *memory.CallTx, v memory.Vault, doc memory.VaultDoc) (string, error) {
	switch d.from {
	case fromLog:
		err := s.Exec(ctx, restoreVault, v.VaultID, v.ActorID, v.Title, v.Description, created(s, v.CreationTime))
		return v.VaultID, err
	case fromExport:
		taken, err := s.VaultExists(ctx, v.VaultID)
		if err != nil {
			return "", err
		}
		if taken {
			v.VaultID = rules.NewID()
		}
		return v.VaultID, s.PutVault(ctx, v, memory.HubKey("POST", "/v1/vaults", v.VaultID))
	}
	if err := s.InsertVault(ctx, v); err != nil {
		return "", err
	}
	text, err := json.Marshal(doc)
	if err == nil {
		_, err = s.Tx.Append(ctx, store.Change{Device: memory.HubDevice, Stream: v.VaultID, Kind: memory.KindVault, ID: v.VaultID, Op: store.OpPut, Doc: text})
	}
	if err == nil {
		err = s.Advance(ctx, v.VaultID, 0)
	}
	return v.VaultID, err
}

// recoveredTitle returns a title for a vault or memory whose own title is lost or in use.
func recoveredTitle(id string) string { return "recovered-" + id[:min(8, len(id))] }

// created returns a creation time, now if it is unknown.
func created(s *memory.CallTx, at memory.Time) memory.Time {
	if at <= 0 {
		return memory.Time(s.Tx.Now().UnixNano())
	}
	return at
}

// memory stores a memory, unless it exists under its id, as the default memory of its project, or
// under its title.
func (d *Documents) memory(ctx context.Context, tx *store.Tx, doc *Item, m *memory.MemoryDoc) error {
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

// rowIn returns the memory of a document in a vault of its owner.
func rowIn(m *memory.MemoryDoc, v memory.Vault) memory.Memory {
	return memory.Memory{
		MemoryID: m.MemoryID, ActorID: v.ActorID, VaultID: v.VaultID, MemoryType: m.MemoryType, Title: m.Title, Description: m.Description,
		CreationTime: m.CreationTime,
	}
}

func (d *Documents) pulledMemory(ctx context.Context, s *memory.CallTx, doc *Item, m *memory.MemoryDoc) error {
	stream, err := d.here(ctx, s, doc.Memory)
	if err != nil {
		return err
	}
	found, err := s.FindAny(ctx, stream)
	if err != nil {
		return err
	}
	if found {
		if m.ProjectUIDs != nil && s.Memory.Deleting == 0 {
			err = d.claimed(ctx, s, m.ProjectUIDs)
		}
		return err
	}
	s.Memory = memory.MemoryRow{}
	s.Memory.MemoryID = stream
	if deleted, err := s.WasDeleted(ctx, stream); err != nil || deleted {
		return err
	}
	delete(d.memories, doc.Memory) // it may become the remote id of a memory here
	q, met, err := meet(ctx, s, m)
	if err != nil || met {
		return err
	}
	v, err := d.vault(ctx, s, m.Vault)
	if err != nil {
		return err
	}
	existing, err := s.MemoryTitled(ctx, v.VaultID, m.Title)
	if err != nil {
		return err
	}
	if existing != "" {
		return s.Exec(ctx, updateNewRemote, existing, m.MemoryID)
	}
	row := rowIn(m, v)
	row.MemoryID, row.ActorID = stream, s.User.UserID
	if err = s.InsertMemory(ctx, row, q.Key, m.ProjectUID()); err == nil {
		err = s.Advance(ctx, stream, 0)
	}
	if err == nil {
		_, err = d.logPulled(ctx, s, stream, doc, stream, doc.Doc)
	}
	return err
}

// exportedMemory returns the local id of a memory of an export, "" if it was deleted here.
func (d *Documents) exportedMemory(ctx context.Context, s *memory.CallTx, projectID string, v memory.Vault, m *memory.MemoryDoc) (string, error) {
	id, q, err := d.memoryHere(ctx, s, projectID, v, m)
	if err != nil || id != "" {
		return id, err
	}
	s.Memory.MemoryID = m.MemoryID
	if deleted, err := s.WasDeleted(ctx, m.MemoryID); err != nil || deleted {
		return "", err
	}
	taken, err := s.MemoryExists(ctx, m.MemoryID) // another user's
	if err != nil {
		return "", err
	}
	row := rowIn(m, v)
	row.Description = d.redact(row.Description)
	if taken {
		row.MemoryID = rules.NewID()
	}
	d.counts.Memories++
	err = s.PutMemory(ctx, row, v, q, memory.HubKey("POST", "/v1/vaults/"+v.VaultID+"/memories", row.MemoryID))
	if err == nil && q == nil && m.ProjectUID() != "" {
		err = s.SetProjectUID(ctx, row.MemoryID, m.ProjectUID())
	}
	return row.MemoryID, err
}

// memoryHere finds the memory here for a memory of an export: by its id, as the default memory of
// its project, else by its title. If there is none, q is the project whose default memory it
// becomes, nil for none.
func (d *Documents) memoryHere(ctx context.Context, s *memory.CallTx, projectID string, v memory.Vault, m *memory.MemoryDoc) (id string, q *memory.Owner, err error) {
	found, err := s.FindMemory(ctx, m.MemoryID)
	if err != nil || found {
		return s.Memory.MemoryID, nil, err
	}
	if projectID != "" {
		s.Caller.ProjectID = projectID
		if err := s.OpenDefault(ctx); err != nil || s.Memory.Exists {
			return s.Memory.MemoryID, nil, err
		}
		at, err := project.Ensure(ctx, s.Tx, projectID)
		if err != nil {
			return "", nil, err
		}
		keys, err := project.KeysOf(ctx, s.Tx, at)
		if err != nil {
			return "", nil, err
		}
		q = &memory.Owner{Project: at, Keys: keys}
	}
	titled, err := s.MemoryTitled(ctx, v.VaultID, m.Title)
	if err != nil || titled == "" {
		return "", q, err
	}
	if found, err = s.FindMemory(ctx, titled); err == nil && !found {
		err = memory.NotFound("memory") // it is being deleted
	}
	return titled, nil, err
}

// loggedMemory restores a memory from the log. Its newest document determines the project.
func (d *Documents) loggedMemory(ctx context.Context, s *memory.CallTx, doc *Item, m *memory.MemoryDoc) error {
	seq, made := d.made[m.MemoryID]
	if made && doc.seq <= seq.put {
		return nil
	}
	if !made {
		s.Memory.MemoryID = m.MemoryID
		known, err := isKnownMemory(ctx, s, m.MemoryID)
		if err != nil || known {
			return err
		}
		if err := d.bringBackMemory(ctx, s, m); err != nil {
			return err
		}
	} else if err := s.Exec(ctx, relinkMemory, m.MemoryID, memory.Nullable(m.ProjectUID())); err != nil {
		return err
	}
	d.made[m.MemoryID] = &madeRow{put: doc.seq}
	if doc.Project == "" {
		return nil
	}
	return linkAgain(ctx, s, m.MemoryID, doc.Project)
}

const relinkMemory = `UPDATE memories SET project_key = NULL, project_uid = ?2 WHERE memory_id = ?1`

// isKnownMemory reports whether a memory exists or was deleted here.
func isKnownMemory(ctx context.Context, s *memory.CallTx, id string) (known bool, err error) {
	if known, err = s.MemoryExists(ctx, id); err == nil && !known {
		known, err = s.WasDeleted(ctx, id)
	}
	return known, err
}

// bringBackMemory restores a memory with its vault and its stream.
func (d *Documents) bringBackMemory(ctx context.Context, s *memory.CallTx, m *memory.MemoryDoc) error {
	in := m.Vault
	in.VaultID = m.VaultID
	v, err := d.vault(ctx, s, in)
	if err != nil {
		return err
	}
	row := rowIn(m, v)
	row.CreationTime = created(s, row.CreationTime)
	other, err := s.MemoryTitled(ctx, v.VaultID, row.Title)
	if err != nil {
		return err
	}
	if other != "" || row.Title == "" {
		row.Title = recoveredTitle(row.MemoryID)
	}
	if err := s.InsertMemory(ctx, row, 0, m.ProjectUID()); err != nil {
		return err
	}
	return s.Exec(ctx, restoreStream, row.MemoryID, s.User.UserID, shards.LaneOf(row.MemoryID))
}

// linkAgain makes a restored memory the default memory of its project, if a write of the project
// would find it as such.
func linkAgain(ctx context.Context, s *memory.CallTx, memoryID, projectID string) error {
	q, ok, err := project.Find(ctx, s.Tx, projectID)
	if err != nil || !ok || q.ID != projectID {
		return err
	}
	if found, err := s.FindDefault(ctx, q); err != nil || found {
		return err
	}
	keys, err := project.KeysOf(ctx, s.Tx, q)
	if err != nil {
		return err
	}
	found, err := s.FindFree(ctx, keys)
	if err != nil || !found || s.Memory.MemoryID != memoryID {
		return err
	}
	return cmp.Or(s.Link(ctx, q), s.SetProjectUID(ctx, memoryID, keys[0].UID))
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
	case memory.KindVault:
		held, err := s.MemoriesIn(ctx, id)
		if err == nil && held == 0 {
			err = contents.RemoveVault(ctx, s, id)
		}
		return err
	case memory.KindMemory:
		return d.deleteMemory(ctx, s, id, doc)
	}
	if found, err := s.FindAny(ctx, id); err != nil || !found {
		return err // it was deleted here, or is another user's
	}
	return d.deleteEntry(ctx, s, doc)
}

const (
	selectOwnPending = contents.EntryColumns + `WHERE e.memory_id = ? AND e.synced = 0 ORDER BY e.key`
	stopStream       = `UPDATE memory_streams SET acked_seq = head_seq WHERE stream = ?`

	selectPendingContexts = `SELECT change_seq, seq FROM memory_contexts WHERE memory_id = ? AND synced = 0`
)

// deleteMemory deletes a memory that another device has deleted. Inflight entries and
// contexts stay readable, each with a failure, until they are discarded.
func (d *Documents) deleteMemory(ctx context.Context, s *memory.CallTx, id string, doc *Item) error {
	found, err := s.FindAny(ctx, id)
	if err != nil || !found {
		return err
	}
	left, err := contents.Entries(ctx, s, selectOwnPending, id)
	if err == nil {
		err = contents.RemoveMemory(ctx, s, id, false)
	}
	const why = "the memory was deleted on another device"
	failed := map[int64]string{} // by change, the local id of its entry or context
	for _, e := range left {
		failed[e.Seq] = contents.LocalID(e.Key)
	}
	if err == nil {
		err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
			var seq, n int64
			err := rows.Scan(&seq, &n)
			failed[seq] = contents.ContextName(n)
			return err
		}, selectPendingContexts, id)
	}
	for seq, local := range failed {
		if err == nil {
			err = s.SetAside(ctx, id, seq, memory.HubRefusal{LocalID: local, Status: 404, Code: memory.CodeNotFound, Message: why})
		}
	}
	if err == nil {
		err = s.Exec(ctx, stopStream, id)
	}
	if err == nil {
		_, err = d.logPulled(ctx, s, id, doc, id, nil)
	}
	return err
}

// tombstone stores what was deleted elsewhere, so that it does not come back. Existing rows stay.
func (d *Documents) tombstone(ctx context.Context, tx *store.Tx, memoryID string, t *tombstoneDoc) error {
	s := &memory.CallTx{Kernel: d.book, Tx: tx}
	if id := d.memories[memoryID]; id != "" {
		memoryID = id
	}
	if there, err := s.MemoryExists(ctx, t.ID); err != nil || there {
		return err
	}
	if _, found, err := entryByKeyOrID(ctx, s, t.ID, t.ID); err != nil || found {
		return err
	}
	return s.StoreTombstone(ctx, memoryID, t.ID, t.At)
}
