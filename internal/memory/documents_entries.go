package memory

import (
	"cmp"
	"context"
	"database/sql"

	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

const (
	selectTombstone   = `SELECT EXISTS (SELECT 1 FROM memory_tombstones WHERE memory_id = ? AND id = ?)`
	selectTimeTaken   = `SELECT EXISTS (SELECT 1 FROM memory_entries WHERE memory_id = ? AND canonical_ns = ? AND key <> ?)`
	selectContextHeld = `SELECT seq FROM memory_contexts WHERE context_id = ? OR hub_key = ?`

	updateKey = `UPDATE memory_entries SET key = ?2 WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM memory_entries WHERE key = ?2)`
	// A context gets the lowest free number. In the order of the log that is mostly the number
	// that it had.
	lowerContext = `UPDATE memory_contexts SET seq = f.n FROM (SELECT min(n) AS n FROM (SELECT 1 AS n UNION ALL SELECT seq + 1 FROM memory_contexts WHERE seq > 0)
WHERE n NOT IN (SELECT seq FROM memory_contexts)) f WHERE seq = ?1 AND f.n < ?1`
)

// madeRow is a memory or an entry restored from the log, with the positions of the changes that
// set its values. A change with a lower position than that of the present value is ignored.
type madeRow struct {
	key                                   int64 // of an entry's row
	put, tags, summary, correct, confirms int64
}

// entryName names an entry of the log, by its localId or by its entryId.
func entryName(memory, id string) string { return memory + " " + id }

// wasDeleted reports whether one of the ids or keys was deleted from the scope's memory.
func (s *callTx) wasDeleted(ctx context.Context, ids ...string) (bool, error) {
	for _, id := range ids {
		var yes bool
		if err := s.tx.Get(ctx, []any{&yes}, selectTombstone, s.m.MemoryID, id); err != nil || yes {
			return yes, err
		}
	}
	return false, nil
}

// entryByKeyOrID finds the row of an entry by its key, else by its id.
func (s *callTx) entryByKeyOrID(ctx context.Context, key, id string) (e entryRow, found bool, err error) {
	e, found, err = s.entry(ctx, selectByHub, key)
	if err == nil && !found {
		e, found, err = s.entry(ctx, selectByID, id)
	}
	return e, found, err
}

// entryByAnyName finds the row of an entry by its key, its id, or the number that it had.
func (s *callTx) entryByAnyName(ctx context.Context, key, id string, local int64) (e entryRow, found bool, err error) {
	e, found, err = s.entryByKeyOrID(ctx, key, id)
	if err == nil && !found && local != 0 {
		e, found, err = s.entry(ctx, selectByRow, local)
	}
	return e, found, err
}

// rowOf returns the row of an entry in the scope's memory.
func (s *callTx) rowOf(d *entryDoc, key string) (e entryRow, err error) {
	e = entryRow{hubKey: key, trace: d.Trace, creationNS: d.CreationTime, Entry: d.in(s.m.Memory, s.u.ID)}
	e.bodyHash, err = rules.BodyHash(NewEntry{RawEntry: d.RawEntry, Summary: d.Summary, Tags: d.Tags, Metadata: d.Metadata, SessionID: d.SessionID})
	return e, err
}

// in returns the entry of a document, in a memory of an owner.
func (d *entryDoc) in(m Memory, owner string) Entry {
	return Entry{
		EntryID: d.EntryID, ActorID: owner, VaultID: m.VaultID, MemoryID: m.MemoryID, RawEntry: d.RawEntry, Summary: d.Summary, Tags: d.Tags,
		Metadata: d.Metadata, SessionID: d.SessionID, CreationTime: d.CreationTime, CapturedTime: d.CapturedTime,
		CorrectionTime: d.CorrectionTime, CorrectedEntryID: d.CorrectedEntryID, CorrectionReason: d.CorrectionReason,
	}
}

// entry stores an entry, unless it is here or was deleted here.
func (d *Documents) entry(ctx context.Context, s *callTx, doc *Item, e entryDoc) (made []string, err error) {
	if d.from == fromHub {
		e.Key = doc.Key
	}
	local := doc.localKey(&e)
	row, found, err := s.entryByAnyName(ctx, e.Key, e.EntryID, local)
	switch {
	case err != nil:
		return nil, err
	case found && d.from == fromHub:
		return nil, s.flip(ctx, &row, e.EntryID, e.CreationTime, doc.HubSeq)
	case found:
		d.counts.Known++
		return nil, nil
	}
	if deleted, err := s.wasDeleted(ctx, e.EntryID, e.Key); err != nil || deleted {
		d.counts.Deleted++
		return nil, err
	}
	switch d.from {
	case fromHub:
		return nil, d.pulledEntry(ctx, s, doc, &e)
	case fromExport:
		return nil, d.exportedEntry(ctx, s, &e)
	}
	return d.loggedEntry(ctx, s, doc, &e, local)
}

// localKey returns the number of the row that an entry of the log had. It is 0 for an entry from
// a hub.
func (doc *Item) localKey(e *entryDoc) int64 {
	for _, id := range []string{doc.ID, e.LocalID} {
		if key, err := parseLocalID(id); err == nil && doc.seq > 0 {
			return key
		}
	}
	return 0
}

func (d *Documents) pulledEntry(ctx context.Context, s *callTx, doc *Item, e *entryDoc) error {
	if e.EntryID == "" {
		return invalid("doc", "an entry of the hub has no entryId")
	}
	row, err := s.rowOf(e, e.Key)
	if err != nil {
		return invalid("doc", "an entry of the hub has a number that cannot be represented")
	}
	row.hubSeq, row.synced = doc.HubSeq, true
	if row.seq, err = d.logPulled(ctx, s, s.m.MemoryID, doc, e.EntryID, doc.Doc); err != nil {
		return err
	}
	return s.insert(ctx, &row)
}

func (d *Documents) exportedEntry(ctx context.Context, s *callTx, e *entryDoc) error {
	d.clean(e)
	row, err := s.rowOf(e, e.Key)
	if err != nil {
		return err
	}
	row.synced = e.EntryID != "" || !s.u.hub()
	if row.synced && row.EntryID == "" {
		row.EntryID = rules.NewID()
	}
	if row.CreationTime == 0 { // the lines of Import get new times
		row.CreationTime = s.nextTime(row.synced)
		row.CapturedTime = cmp.Or(row.CapturedTime, row.CreationTime)
	}
	if err := s.freeTime(ctx, &row); err != nil {
		return err
	}
	d.counts.Entries++
	return s.insertLogged(ctx, &row)
}

// clean applies the present rules of redaction.
func (d *Documents) clean(e *entryDoc) {
	a := d.book.redacted(NewEntry{RawEntry: e.RawEntry, Summary: e.Summary, Tags: e.Tags, Metadata: e.Metadata})
	reason := d.redact(e.CorrectionReason)
	if a.RawEntry != e.RawEntry || a.Summary != e.Summary || !sameEntry(&Entry{Tags: a.Tags}, &Entry{Tags: e.Tags}) ||
		string(a.Metadata) != string(e.Metadata) || reason != e.CorrectionReason {
		d.counts.Redacted++
	}
	e.RawEntry, e.Summary, e.Tags, e.Metadata, e.CorrectionReason = a.RawEntry, a.Summary, a.Tags, a.Metadata, reason
}

// loggedEntry restores an entry under its old number. It does not index the entry.
func (d *Documents) loggedEntry(ctx context.Context, s *callTx, doc *Item, e *entryDoc, local int64) (made []string, err error) {
	if _, err := parseLocalID(doc.ID); err != nil {
		e.EntryID = doc.ID
	}
	if e.CreationTime == 0 {
		e.CreationTime = e.CapturedTime // they are equal for entries of this device
	}
	row, err := s.rowOf(e, e.Key)
	if err != nil {
		return nil, nil // it cannot have been a row
	}
	row.synced, row.seq = e.EntryID != "", doc.seq
	if err := s.freeTime(ctx, &row); err != nil {
		return nil, err
	}
	if err := s.insertRow(ctx, &row); err != nil {
		return nil, err
	}
	at := &madeRow{key: row.key}
	if local != 0 {
		res, err := s.tx.Exec(ctx, updateKey, row.key, local)
		if err != nil {
			return nil, err
		}
		if n, err := res.RowsAffected(); err != nil {
			return nil, err
		} else if n > 0 {
			at.key = local
		}
		made = append(made, entryName(doc.Memory, localID(local)))
	}
	if e.EntryID != "" {
		made = append(made, entryName(doc.Memory, e.EntryID))
	}
	for _, name := range made {
		d.made[name] = at
	}
	return made, nil
}

// freeTime increases the time of a committed row until no other entry of the memory has it.
func (s *callTx) freeTime(ctx context.Context, e *entryRow) error {
	for taken := e.synced; taken; {
		if err := s.tx.Get(ctx, []any{&taken}, selectTimeTaken, e.MemoryID, e.CreationTime, e.key); err != nil {
			return err
		}
		if taken {
			e.CreationTime++
		}
	}
	e.creationNS = e.CreationTime
	return nil
}

// changeDoc is a patch or a correction.
type changeDoc struct {
	patchDoc
	CorrectedEntryID string `json:"correctedEntryId"`
	CorrectionReason string `json:"correctionReason"`
	CorrectionTime   Time   `json:"correctionTime"`
}

// change applies c to an entry.
func (c *changeDoc) change(e *Entry) {
	if c.Tags != nil {
		e.Tags = c.Tags
	}
	if c.Summary != nil {
		e.Summary = *c.Summary
	}
	if c.CorrectedEntryID != "" {
		e.CorrectedEntryID, e.CorrectionReason, e.CorrectionTime = c.CorrectedEntryID, c.CorrectionReason, c.CorrectionTime
	}
}

// after returns the part of a change of the log that is later than the entry's present values. An
// entry that was not restored, for which m is nil, has all its changes already.
func (m *madeRow) after(seq int64, c changeDoc) changeDoc {
	if m == nil {
		return changeDoc{}
	}
	if c.Tags != nil && seq < m.tags {
		c.Tags = nil
	} else if c.Tags != nil {
		m.tags = seq
	}
	if c.Summary != nil && seq < m.summary {
		c.Summary = nil
	} else if c.Summary != nil {
		m.summary = seq
	}
	if seq < m.correct {
		c.CorrectedEntryID = ""
	} else if c.CorrectedEntryID != "" {
		m.correct = seq
	}
	return c
}

// patch changes an entry.
func (d *Documents) patch(ctx context.Context, s *callTx, doc *Item, c *changeDoc) (missing []string, err error) {
	e, found, err := s.entry(ctx, selectByID, c.EntryID)
	if err != nil || found && e.MemoryID != s.m.MemoryID {
		return nil, err
	}
	if !found {
		return []string{entryName(doc.Memory, c.EntryID)}, nil
	}
	change := *c
	if d.from == fromLog {
		change = d.made[entryName(doc.Memory, c.EntryID)].after(doc.seq, change)
	}
	before := e.Entry
	change.change(&e.Entry)
	if sameEntry(&before, &e.Entry) {
		return nil, nil
	}
	if d.from == fromLog {
		err = s.updatePatch(ctx, &e)
	} else {
		err = s.patch(ctx, &e)
	}
	if err == nil && e.CorrectedEntryID != "" {
		err = s.correct(ctx, &e)
	}
	if err == nil && d.from == fromHub {
		_, err = d.logPulled(ctx, s, s.m.MemoryID, doc, c.EntryID, doc.Doc)
	}
	return nil, err
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

// confirm commits a restored entry with the id and time that a hub had assigned.
func (d *Documents) confirm(ctx context.Context, s *callTx, doc *Item, c *confirmDoc) (missing, made []string, err error) {
	names := []string{entryName(doc.Memory, c.LocalID), entryName(doc.Memory, c.EntryID)}
	at := d.made[names[0]]
	if at == nil {
		at = d.made[names[1]]
	}
	if at == nil {
		_, found, err := s.entry(ctx, selectByID, c.EntryID)
		if found || err != nil {
			names = nil // it was not restored, so it has all its changes
		}
		return names, nil, err
	}
	if doc.seq < at.confirms {
		return nil, nil, nil
	}
	at.confirms = doc.seq
	e, found, err := s.entry(ctx, selectByRow, at.key)
	if err != nil || !found {
		return nil, nil, err
	}
	e.synced, e.CreationTime = true, c.CreationTime
	if err := s.freeTime(ctx, &e); err != nil {
		return nil, nil, err
	}
	_, err = s.tx.Exec(ctx, flipEntry, e.key, c.EntryID, e.CreationTime, number(c.HubSeq), s.tx.Now().UnixNano())
	d.made[names[1]] = at
	return nil, names[1:], err
}

// deleteEntry deletes an entry that was deleted at the hub, or stores that it was deleted.
func (d *Documents) deleteEntry(ctx context.Context, s *callTx, doc *Item) error {
	id := doc.ID
	if v, ok := doc.parsed.(*entryDeleteDoc); ok && v.EntryID != "" {
		id = v.EntryID
	}
	e, found, err := s.entry(ctx, selectByID, id)
	if err != nil {
		return err
	}
	if !found || e.MemoryID != s.m.MemoryID {
		return s.storeTombstones(ctx, s.m.MemoryID, id)
	}
	if err := s.removeEntry(ctx, &e); err != nil {
		return err
	}
	_, err = d.logPulled(ctx, s, s.m.MemoryID, doc, id, nil)
	return err
}

// context stores a version of a memory's context, unless it exists.
func (d *Documents) context(ctx context.Context, s *callTx, doc *Item, c contextDoc) error {
	if d.from == fromHub {
		c.Key = doc.Key
	}
	var seq int64
	switch err := ignoreNone(s.tx.Get(ctx, []any{&seq}, selectContextHeld, c.ContextID, nullable(c.Key))); {
	case err != nil:
		return err
	case seq != 0 && d.from == fromHub:
		_, err = s.tx.Exec(ctx, updateContextByKey, c.ContextID, doc.HubSeq, c.UpdatedAt, nullable(c.ConflictWith))
		return err
	case seq != 0:
		d.counts.Known++
		return nil
	}
	switch d.from {
	case fromHub:
		change, err := d.logPulled(ctx, s, s.m.MemoryID, doc, c.ContextID, doc.Doc)
		if err != nil {
			return err
		}
		return s.insertContextDoc(ctx, c, contextPlace{key: c.Key, hubSeq: doc.HubSeq, synced: true, change: change})
	case fromLog:
		return s.bringBackContext(ctx, c, doc.seq)
	}
	if clean := d.redact(c.Markdown); clean != c.Markdown {
		c.Markdown = clean
		d.counts.Redacted++
	}
	c.SeenSeq = 0
	change, err := s.log(ctx, KindContext, c.ContextID, store.OpPut, c)
	if err != nil {
		return err
	}
	d.counts.Contexts++
	return s.insertContextDoc(ctx, c, contextPlace{key: c.Key, synced: !s.u.hub(), change: change})
}

// bringBackContext restores a context of the log. It does not index the context.
func (s *callTx) bringBackContext(ctx context.Context, c contextDoc, change int64) error {
	res, err := s.insertContextRow(ctx, c, contextPlace{key: c.Key, synced: true, change: change})
	if err != nil {
		return err
	}
	seq, err := res.LastInsertId()
	if err == nil {
		_, err = s.tx.Exec(ctx, lowerContext, seq)
	}
	return err
}

// contextPlace is the state of a context that comes from elsewhere.
type contextPlace struct {
	key    string // the hub key
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
