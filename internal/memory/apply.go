package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"cairn/internal/crashpoint"
	"cairn/internal/store"
)

// hubDevice is the name under which this log keeps the chain of what was pulled.
const hubDevice = "hub"

// Item is a change as a hub tells it.
type Item struct {
	HubSeq int64           `json:"hub_seq"`
	Kind   string          `json:"kind"`
	ID     string          `json:"id"`
	Op     string          `json:"op"`
	Key    string          `json:"key"` // hub key
	Doc    json.RawMessage `json:"doc"` // nil where it was blanked

	Device string `json:"device,omitempty"` // the device incarnation that sent it to the hub, "" if unknown
}

const (
	// A memory that a hub knows under its own id and whose title another has there now
	// was deleted there, which its own stream will tell.
	updateNewRemote = `UPDATE memory_streams SET remote_id = ?2 WHERE stream = ?1 AND remote_id IS NULL AND sent_seq = 0 AND pull_cursor = 0`

	selectTombstone  = `SELECT EXISTS (SELECT 1 FROM memory_tombstones WHERE memory_id = ? AND id = ?)`
	updateHubSeq     = `UPDATE memory_entries SET hub_seq = max(ifnull(hub_seq, 0), ?2) WHERE key = ?1`
	selectOwnPending = entryColumns + `WHERE e.memory_id = ? AND e.synced = 0 ORDER BY e.key`
	stopStream       = `UPDATE memory_streams SET acked_seq = head_seq WHERE stream = ?`
)

// Apply brings a page of what was pulled for a stream of a user to the rows, all in
// one transaction, and moves the pull cursor to next. stream is the hub's id or the
// local one. Own items are expected: an item whose key is that of an inflight row
// flips it. What is here already changes nothing, and what was deleted stays deleted,
// so that repeating it is safe (memories §10.3). Changes are logged as the hub's.
// Errors besides the store's: CodeLeft, CodeInvalid for an item that is not readable.
func (b *Service) Apply(ctx context.Context, m Membership, stream string, items []Item, next int64) error {
	return b.settling(ctx, m, nil, func(ctx context.Context, s *callTx) error {
		u, err := findUser(ctx, s.tx, m.User)
		if err != nil {
			return err
		}
		s.u = u
		local, err := s.localStream(ctx, stream)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := s.apply(ctx, local, item); err != nil {
				return err
			}
			if item.Kind != KindMemory && item.Kind != KindVault {
				continue
			}
			if local, err = s.localStream(ctx, stream); err != nil { // it may have become one of ours
				return err
			}
		}
		if err := s.tx.CountReturned(ctx, s.returned); err != nil {
			return err
		}
		return s.pulledTo(ctx, local, next)
	})
}

// pulledTo moves the pull cursor of a stream.
func (s *callTx) pulledTo(ctx context.Context, local string, next int64) error {
	if _, err := s.tx.Exec(ctx, upsertStream, local, s.u.ID, LaneOf(local), 0); err != nil {
		return err
	}
	crashpoint.Pass("mid_pull")
	_, err := s.tx.Exec(ctx, updateCursor, local, next)
	return firstError(err, s.tx.Recover(ctx, PullFollower, local))
}

// localStream is the id here of a stream that the hub names.
func (s *callTx) localStream(ctx context.Context, stream string) (string, error) {
	var m Stream
	err := m.scan(func(dest ...any) error { return s.tx.Get(ctx, dest, selectRemote, s.u.ID, stream) })
	if errors.Is(err, sql.ErrNoRows) {
		return stream, nil
	}
	return m.ID, err
}

func (s *callTx) apply(ctx context.Context, stream string, item Item) error {
	switch item.Kind {
	case KindVault:
		return s.applyVault(ctx, stream, item)
	case KindMemory:
		return s.applyMemory(ctx, stream, item)
	}
	found, err := s.find(ctx, selectAnyMemory, stream)
	if err != nil || !found {
		return err // deleted here, or foreign
	}
	switch item.Kind + " " + item.Op {
	case KindEntry + " " + store.OpPut:
		return s.applyEntry(ctx, item)
	case KindEntry + " " + OpPatch:
		return s.applyPatch(ctx, item)
	case KindEntry + " " + store.OpDelete:
		return s.applyDelete(ctx, item)
	case KindContext + " " + store.OpPut:
		return s.applyContext(ctx, item)
	}
	return nil
}

// logPulled appends a change as the hub's, which is never sent.
func (s *callTx) logPulled(ctx context.Context, stream string, item Item, id string, doc []byte) (int64, error) {
	if item.Device != "" {
		if s.returned == nil {
			s.returned = map[string]int64{}
		}
		s.returned[item.Device]++
	}
	return s.tx.Append(ctx, store.Change{Device: hubDevice, Project: s.m.project, Stream: stream, Kind: item.Kind, ID: id, Op: item.Op, Doc: doc})
}

func (s *callTx) buried(ctx context.Context, ids ...string) (bool, error) {
	for _, id := range ids {
		var yes bool
		if err := s.tx.Get(ctx, []any{&yes}, selectTombstone, s.m.MemoryID, id); err != nil || yes {
			return yes, err
		}
	}
	return false, nil
}

func (s *callTx) applyEntry(ctx context.Context, item Item) error {
	if item.Doc == nil {
		return nil
	}
	var d entryDoc
	if err := json.Unmarshal(item.Doc, &d); err != nil {
		return invalid("doc", "an entry of the hub is not readable")
	}
	id, ok := ParseID(d.EntryID)
	if !ok {
		return invalid("doc", "an entry of the hub has no entryId")
	}
	e, found, err := s.held(ctx, item.Key, id)
	if err != nil {
		return err
	}
	if found {
		return s.flip(ctx, &e, id, d.CreationTime, item.HubSeq)
	}
	if gone, err := s.buried(ctx, id, item.Key); err != nil || gone {
		return err
	}
	d.EntryID = id
	if e, err = s.rowOf(&d, item.Key); err != nil {
		return invalid("doc", "an entry of the hub has a number that cannot be represented")
	}
	e.hubSeq, e.synced = item.HubSeq, true
	if e.seq, err = s.logPulled(ctx, s.m.MemoryID, item, id, item.Doc); err != nil {
		return err
	}
	return s.insert(ctx, &e)
}

// held finds the row of an entry that comes from elsewhere: by its key, else by its id.
func (s *callTx) held(ctx context.Context, key, id string) (e entryRow, found bool, err error) {
	e, found, err = s.entry(ctx, selectByHub, key)
	if err == nil && !found {
		e, found, err = s.entry(ctx, selectByID, id)
	}
	return e, found, err
}

// rowOf is the row, in the scope's memory, of an entry that comes from elsewhere.
func (s *callTx) rowOf(d *entryDoc, key string) (e entryRow, err error) {
	e = entryRow{hubKey: key, trace: d.Trace, creationNS: d.CreationTime, Entry: d.in(s.m.Memory, s.u.ID)}
	e.bodyHash, err = bodyHash(NewEntry{RawEntry: d.RawEntry, Summary: d.Summary, Tags: d.Tags, Metadata: d.Metadata, SessionID: d.SessionID})
	return e, err
}

// in is the entry of a document, in a memory of an owner.
func (d *entryDoc) in(m Memory, owner string) Entry {
	return Entry{
		EntryID: d.EntryID, ActorID: owner, VaultID: m.VaultID, MemoryID: m.MemoryID, RawEntry: d.RawEntry, Summary: d.Summary, Tags: d.Tags,
		Metadata: d.Metadata, SessionID: d.SessionID, CreationTime: d.CreationTime, CapturedTime: d.CapturedTime,
		CorrectionTime: d.CorrectionTime, CorrectedEntryID: d.CorrectedEntryID, CorrectionReason: d.CorrectionReason,
	}
}

// changeDoc is a patch or a correction.
type changeDoc struct {
	patchDoc
	CorrectedEntryID string `json:"correctedEntryId"`
	CorrectionReason string `json:"correctionReason"`
	CorrectionTime   Time   `json:"correctionTime"`
}

// change makes it of an entry.
func (d *changeDoc) change(e *Entry) {
	if d.Tags != nil {
		e.Tags = d.Tags
	}
	if d.Summary != nil {
		e.Summary = *d.Summary
	}
	if d.CorrectedEntryID != "" {
		e.CorrectedEntryID, e.CorrectionReason, e.CorrectionTime = d.CorrectedEntryID, d.CorrectionReason, d.CorrectionTime
	}
}

func (s *callTx) applyPatch(ctx context.Context, item Item) error {
	if item.Doc == nil {
		return nil
	}
	var d changeDoc
	if err := json.Unmarshal(item.Doc, &d); err != nil {
		return invalid("doc", "a patch of the hub is not readable")
	}
	e, found, err := s.entry(ctx, selectByID, d.EntryID)
	if err != nil || !found || e.MemoryID != s.m.MemoryID {
		return err
	}
	before := e.Entry
	d.change(&e.Entry)
	if sameEntry(&before, &e.Entry) {
		return nil
	}
	if err := s.patch(ctx, &e); err != nil {
		return err
	}
	if e.CorrectedEntryID != "" {
		if err := s.correct(ctx, &e); err != nil {
			return err
		}
	}
	_, err = s.logPulled(ctx, s.m.MemoryID, item, d.EntryID, item.Doc)
	return err
}

// sameEntry compares what a patch can change.
func sameEntry(a, b *Entry) bool {
	if len(a.Tags) != len(b.Tags) || a.Summary != b.Summary || a.CorrectedEntryID != b.CorrectedEntryID {
		return false
	}
	for k, v := range a.Tags {
		if other, ok := b.Tags[k]; !ok || other != v {
			return false
		}
	}
	return true
}

func (s *callTx) applyDelete(ctx context.Context, item Item) error {
	id := item.ID
	var d entryDeleteDoc
	if item.Doc != nil {
		if err := json.Unmarshal(item.Doc, &d); err != nil {
			return invalid("doc", "a delete of the hub is not readable")
		}
		if d.EntryID != "" {
			id = d.EntryID
		}
	}
	e, found, err := s.entry(ctx, selectByID, id)
	if err != nil {
		return err
	}
	if !found || e.MemoryID != s.m.MemoryID {
		return s.bury(ctx, s.m.MemoryID, id)
	}
	if err := s.removeEntry(ctx, &e); err != nil {
		return err
	}
	_, err = s.logPulled(ctx, s.m.MemoryID, item, id, nil)
	return err
}

func (s *callTx) applyContext(ctx context.Context, item Item) error {
	if item.Doc == nil {
		return nil
	}
	var d contextDoc
	if err := json.Unmarshal(item.Doc, &d); err != nil {
		return invalid("doc", "a context of the hub is not readable")
	}
	var seq int64
	err := s.tx.Get(ctx, []any{&seq}, selectContextByID, d.ContextID)
	if err == nil {
		_, err = s.tx.Exec(ctx, updateContextByKey, d.ContextID, item.HubSeq, d.UpdatedAt, nullable(d.ConflictWith))
		return err
	}
	if ignoreNone(err) != nil {
		return err
	}
	change, err := s.logPulled(ctx, s.m.MemoryID, item, d.ContextID, item.Doc)
	if err != nil {
		return err
	}
	return s.insertContextDoc(ctx, d, contextPlace{key: item.Key, hubSeq: item.HubSeq, synced: true, change: change})
}

// contextPlace is where a context that comes from elsewhere stands.
type contextPlace struct {
	key    string // under which the hub knows it
	hubSeq int64
	synced bool
	change int64 // of the log
}

// insertContextDoc stores and indexes a context that comes from elsewhere in the scope's
// memory.
func (s *callTx) insertContextDoc(ctx context.Context, d contextDoc, at contextPlace) error {
	res, err := s.insertContextRow(ctx, d, at)
	if err == nil {
		err = indexInserted(ctx, s.tx, s.m.MemoryID, res, d.Markdown)
	}
	return err
}

func (s *callTx) insertContextRow(ctx context.Context, d contextDoc, at contextPlace) (sql.Result, error) {
	res, err := s.tx.Exec(ctx, insertContext, s.u.ID, s.m.MemoryID, d.SessionID, d.UpdatedAt, d.Markdown, d.ContextID, at.synced, nil, nil,
		nullable(at.key), number(at.hubSeq), nullable(d.Trace), at.change, nullable(d.base()), nullable(d.ConflictWith), d.SeenSeq)
	if err == nil {
		_, err = s.tx.Exec(ctx, updateContextNS, s.m.MemoryID, d.UpdatedAt)
	}
	return res, err
}

func (s *callTx) applyVault(ctx context.Context, stream string, item Item) error {
	if item.Op == store.OpDelete {
		var held int64
		err := s.tx.Get(ctx, []any{&held}, selectInVault, stream)
		if err == nil && held == 0 {
			err = s.removeVault(ctx, stream)
		}
		return err
	}
	var d vaultDoc
	if item.Doc == nil {
		return nil
	}
	if err := json.Unmarshal(item.Doc, &d); err != nil {
		return invalid("doc", "a vault of the hub is not readable")
	}
	_, err := s.pulledVault(ctx, d)
	return err
}

// pulledVault is the vault here of one that the hub knows: under its id, else its
// title, else made.
func (s *callTx) pulledVault(ctx context.Context, d vaultDoc) (v Vault, err error) {
	v, err = s.vault(ctx, d.VaultID)
	if err == nil {
		return v, nil
	}
	v, found, err := s.vaultTitled(ctx, d.Title)
	if err != nil {
		return v, err
	}
	if found {
		if v.VaultID != d.VaultID {
			_, err = s.tx.Exec(ctx, updateRemote, v.VaultID, d.VaultID)
		}
		return v, err
	}
	v = Vault{d.VaultID, s.u.ID, d.Title, d.Description, d.CreationTime}
	if _, err = s.tx.Exec(ctx, insertVault, v.VaultID, v.ActorID, v.Title, v.Description, v.CreationTime); err != nil {
		return v, err
	}
	doc, err := json.Marshal(d)
	if err == nil {
		_, err = s.tx.Append(ctx, store.Change{Device: hubDevice, Stream: v.VaultID, Kind: KindVault, ID: v.VaultID, Op: store.OpPut, Doc: doc})
	}
	if err == nil {
		_, err = s.tx.Exec(ctx, upsertStream, v.VaultID, s.u.ID, LaneOf(v.VaultID), 0)
	}
	return v, err
}

func (s *callTx) applyMemory(ctx context.Context, stream string, item Item) error {
	if item.Op == store.OpDelete {
		return s.applyMemoryDelete(ctx, stream, item)
	}
	found, err := s.find(ctx, selectAnyMemory, stream)
	if err != nil || item.Doc == nil {
		return err
	}
	var d memoryDoc
	if err := json.Unmarshal(item.Doc, &d); err != nil {
		return invalid("doc", "a memory of the hub is not readable")
	}
	if found {
		if d.ProjectUIDs != nil && s.m.deleting == 0 {
			err = s.claimed(ctx, d.ProjectUIDs)
		}
		return err
	}
	s.m = memoryRow{}
	s.m.MemoryID = stream
	if gone, err := s.buried(ctx, stream); err != nil || gone {
		return err
	}
	q, met, err := s.meet(ctx, &d)
	if err != nil || met {
		return err
	}
	v, err := s.pulledVault(ctx, d.Vault)
	if err != nil {
		return err
	}
	var existing string
	err = s.tx.Get(ctx, []any{&existing}, selectTitled, v.VaultID, d.Title)
	if err == nil {
		_, err = s.tx.Exec(ctx, updateNewRemote, existing, d.MemoryID)
		return err
	}
	if ignoreNone(err) != nil {
		return err
	}
	_, err = s.tx.Exec(ctx, insertMemory, stream, s.u.ID, v.VaultID, d.MemoryType, d.Title, d.Description, d.CreationTime,
		sql.NullInt64{Int64: q.Key, Valid: q.Key != 0}, nullable(d.projectUID()))
	if err == nil {
		_, err = s.tx.Exec(ctx, upsertStream, stream, s.u.ID, LaneOf(stream), 0)
	}
	if err == nil {
		_, err = s.logPulled(ctx, stream, item, stream, item.Doc)
	}
	return err
}

// selectPendingContexts lists the inflight contexts of a memory.
const selectPendingContexts = `SELECT change_seq, seq FROM memory_contexts WHERE memory_id = ? AND synced = 0`

// applyMemoryDelete is for a memory that another device has deleted: committed rows
// go, inflight entries and contexts stay readable, each with a failure, until they are
// discarded.
func (s *callTx) applyMemoryDelete(ctx context.Context, stream string, item Item) error {
	found, err := s.find(ctx, selectAnyMemory, stream)
	if err != nil || !found {
		return err
	}
	left, err := s.rows(ctx, selectOwnPending, stream)
	if err == nil {
		err = s.removeMemory(ctx, stream, false)
	}
	const why = "the memory was deleted on another device"
	failed := map[int64]string{} // changes, by what they are about
	for _, e := range left {
		failed[e.seq] = localID(e.key)
	}
	if err == nil {
		err = s.tx.Each(ctx, func(rows *sql.Rows) error {
			var seq, n int64
			err := rows.Scan(&seq, &n)
			failed[seq] = contextName(n)
			return err
		}, selectPendingContexts, stream)
	}
	for seq, local := range failed {
		if err == nil {
			err = s.setAside(ctx, stream, seq, HubRefusal{local, 404, CodeNotFound, why})
		}
	}
	if err == nil {
		_, err = s.tx.Exec(ctx, stopStream, stream)
	}
	if err == nil {
		_, err = s.logPulled(ctx, stream, item, stream, nil)
	}
	return err
}
