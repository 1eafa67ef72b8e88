package items

import (
	"cmp"
	"context"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

const (
	updateContextByKey = `UPDATE memory_contexts SET synced = 1, hub_seq = ?2, updated_ns = ?3, conflict_with = ?4 WHERE context_id = ?1`
	selectTimeTaken    = `SELECT EXISTS (SELECT 1 FROM memory_entries WHERE memory_id = ? AND canonical_ns = ? AND key <> ?)`
	selectContextHeld  = `SELECT seq FROM memory_contexts WHERE context_id = ? OR hub_key = ?`

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

// entryByKeyOrID finds the row of an entry by its key, else by its id.
func entryByKeyOrID(ctx context.Context, s *memory.CallTx, key, id string) (e contents.EntryRow, found bool, err error) {
	e, found, err = contents.EntryByHubKey(ctx, s, key)
	if err == nil && !found {
		e, found, err = contents.EntryByID(ctx, s, id)
	}
	return e, found, err
}

// entryByAnyName finds the row of an entry by its key, its id, or the number that it had.
func entryByAnyName(ctx context.Context, s *memory.CallTx, key, id string, local int64) (e contents.EntryRow, found bool, err error) {
	e, found, err = entryByKeyOrID(ctx, s, key, id)
	if err == nil && !found && local != 0 {
		e, found, err = contents.EntryByRow(ctx, s, local)
	}
	return e, found, err
}

// rowOf returns the row of an entry in the scope's memory.
func rowOf(s *memory.CallTx, d *contents.EntryDoc, key string) (e contents.EntryRow, err error) {
	e = contents.EntryRow{HubKey: key, Trace: d.Trace, CreationNS: d.CreationTime, Entry: d.In(s.Memory.Memory, s.User.UserID)}
	e.BodyHash, err = rules.BodyHash(contents.NewEntry{RawEntry: d.RawEntry, Summary: d.Summary, Tags: d.Tags, Metadata: d.Metadata, SessionID: d.SessionID})
	return e, err
}

// entry stores an entry, unless it is here or was deleted here.
func (d *Documents) entry(ctx context.Context, s *memory.CallTx, doc *Item, e contents.EntryDoc) (made []string, err error) {
	if d.from == fromHub {
		e.Key = doc.Key
	}
	local := doc.localKey(&e)
	row, found, err := entryByAnyName(ctx, s, e.Key, e.EntryID, local)
	switch {
	case err != nil:
		return nil, err
	case found && d.from == fromHub:
		return nil, contents.Flip(ctx, s, &row, e.EntryID, e.CreationTime, doc.HubSeq)
	case found:
		d.counts.Known++
		return nil, nil
	}
	if deleted, err := s.WasDeleted(ctx, e.EntryID, e.Key); err != nil || deleted {
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
func (doc *Item) localKey(e *contents.EntryDoc) int64 {
	for _, id := range []string{doc.ID, e.LocalID} {
		if key, err := contents.ParseLocalID(id); err == nil && doc.seq > 0 {
			return key
		}
	}
	return 0
}

func (d *Documents) pulledEntry(ctx context.Context, s *memory.CallTx, doc *Item, e *contents.EntryDoc) error {
	if e.EntryID == "" {
		return rules.Invalid("doc", "an entry of the hub has no entryId")
	}
	row, err := rowOf(s, e, e.Key)
	if err != nil {
		return rules.Invalid("doc", "an entry of the hub has a number that cannot be represented")
	}
	row.HubSeq, row.Synced = doc.HubSeq, true
	if row.Seq, err = d.logPulled(ctx, s, s.Memory.MemoryID, doc, e.EntryID, doc.Doc); err != nil {
		return err
	}
	return contents.InsertEntry(ctx, s, &row)
}

func (d *Documents) exportedEntry(ctx context.Context, s *memory.CallTx, e *contents.EntryDoc) error {
	d.clean(e)
	row, err := rowOf(s, e, e.Key)
	if err != nil {
		return err
	}
	row.Synced = e.EntryID != "" || !s.User.IsJoined()
	if row.Synced && row.EntryID == "" {
		row.EntryID = rules.NewID()
	}
	if row.CreationTime == 0 { // the lines of Import get new times
		row.CreationTime = contents.NextTime(s, row.Synced)
		row.CapturedTime = cmp.Or(row.CapturedTime, row.CreationTime)
	}
	if err := freeTime(ctx, s, &row); err != nil {
		return err
	}
	d.counts.Entries++
	return contents.AddEntry(ctx, s, &row)
}

// clean applies the present rules of redaction.
func (d *Documents) clean(e *contents.EntryDoc) {
	a := contents.Redacted(d.book, contents.NewEntry{RawEntry: e.RawEntry, Summary: e.Summary, Tags: e.Tags, Metadata: e.Metadata})
	reason := d.redact(e.CorrectionReason)
	if a.RawEntry != e.RawEntry || a.Summary != e.Summary || !sameEntry(&contents.Entry{Tags: a.Tags}, &contents.Entry{Tags: e.Tags}) ||
		string(a.Metadata) != string(e.Metadata) || reason != e.CorrectionReason {
		d.counts.Redacted++
	}
	e.RawEntry, e.Summary, e.Tags, e.Metadata, e.CorrectionReason = a.RawEntry, a.Summary, a.Tags, a.Metadata, reason
}

// loggedEntry restores an entry under its old number. It does not index the entry.
func (d *Documents) loggedEntry(ctx context.Context, s *memory.CallTx, doc *Item, e *contents.EntryDoc, local int64) (made []string, err error) {
	if _, err := contents.ParseLocalID(doc.ID); err != nil {
		e.EntryID = doc.ID
	}
	if e.CreationTime == 0 {
		e.CreationTime = e.CapturedTime // they are equal for entries of this device
	}
	row, err := rowOf(s, e, e.Key)
	if err != nil {
		return nil, nil // it cannot have been a row
	}
	row.Synced, row.Seq = e.EntryID != "", doc.seq
	if err := freeTime(ctx, s, &row); err != nil {
		return nil, err
	}
	if err := contents.InsertEntryRow(ctx, s, &row); err != nil {
		return nil, err
	}
	at := &madeRow{key: row.Key}
	if local != 0 {
		res, err := s.Tx.Exec(ctx, updateKey, row.Key, local)
		if err != nil {
			return nil, err
		}
		if n, err := res.RowsAffected(); err != nil {
			return nil, err
		} else if n > 0 {
			at.key = local
		}
		made = append(made, entryName(doc.Memory, contents.LocalID(local)))
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
func freeTime(ctx context.Context, s *memory.CallTx, e *contents.EntryRow) error {
	for taken := e.Synced; taken; {
		if err := s.Tx.Get(ctx, []any{&taken}, selectTimeTaken, e.MemoryID, e.CreationTime, e.Key); err != nil {
			return err
		}
		if taken {
			e.CreationTime++
		}
	}
	e.CreationNS = e.CreationTime
	return nil
}

// after returns the part of a change of the log that is later than the entry's present values. An
// entry that was not restored, for which m is nil, has all its changes already.
func (m *madeRow) after(seq int64, c contents.ChangeDoc) contents.ChangeDoc {
	if m == nil {
		return contents.ChangeDoc{}
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
func (d *Documents) patch(ctx context.Context, s *memory.CallTx, doc *Item, c *contents.ChangeDoc) (missing []string, err error) {
	e, found, err := contents.EntryByID(ctx, s, c.EntryID)
	if err != nil || found && e.MemoryID != s.Memory.MemoryID {
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
	change.Apply(&e.Entry)
	if sameEntry(&before, &e.Entry) {
		return nil, nil
	}
	if d.from == fromLog {
		err = contents.PatchRow(ctx, s, &e)
	} else {
		err = contents.Patch(ctx, s, &e)
	}
	if err == nil && e.CorrectedEntryID != "" {
		err = contents.Correct(ctx, s, &e)
	}
	if err == nil && d.from == fromHub {
		_, err = d.logPulled(ctx, s, s.Memory.MemoryID, doc, c.EntryID, doc.Doc)
	}
	return nil, err
}

// sameEntry compares what a patch can change.
func sameEntry(a, b *contents.Entry) bool {
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
func (d *Documents) confirm(ctx context.Context, s *memory.CallTx, doc *Item, c *contents.ConfirmDoc) (missing, made []string, err error) {
	names := []string{entryName(doc.Memory, c.LocalID), entryName(doc.Memory, c.EntryID)}
	at := d.made[names[0]]
	if at == nil {
		at = d.made[names[1]]
	}
	if at == nil {
		_, found, err := contents.EntryByID(ctx, s, c.EntryID)
		if found || err != nil {
			names = nil // it was not restored, so it has all its changes
		}
		return names, nil, err
	}
	if doc.seq < at.confirms {
		return nil, nil, nil
	}
	at.confirms = doc.seq
	e, found, err := contents.EntryByRow(ctx, s, at.key)
	if err != nil || !found {
		return nil, nil, err
	}
	e.Synced, e.CreationTime = true, c.CreationTime
	if err := freeTime(ctx, s, &e); err != nil {
		return nil, nil, err
	}
	err = contents.CommitRow(ctx, s, e.Key, c.EntryID, e.CreationTime, memory.Number(c.HubSeq))
	d.made[names[1]] = at
	return nil, names[1:], err
}

// deleteEntry deletes an entry that was deleted at the hub, or stores that it was deleted.
func (d *Documents) deleteEntry(ctx context.Context, s *memory.CallTx, doc *Item) error {
	id := doc.ID
	if v, ok := doc.parsed.(*contents.EntryDeleteDoc); ok && v.EntryID != "" {
		id = v.EntryID
	}
	e, found, err := contents.EntryByID(ctx, s, id)
	if err != nil {
		return err
	}
	if !found || e.MemoryID != s.Memory.MemoryID {
		return s.StoreTombstones(ctx, s.Memory.MemoryID, id)
	}
	if err := contents.RemoveEntry(ctx, s, &e); err != nil {
		return err
	}
	_, err = d.logPulled(ctx, s, s.Memory.MemoryID, doc, id, nil)
	return err
}

// context stores a version of a memory's context, unless it exists.
func (d *Documents) context(ctx context.Context, s *memory.CallTx, doc *Item, c contents.ContextDoc) error {
	if d.from == fromHub {
		c.Key = doc.Key
	}
	var seq int64
	switch err := memory.IgnoreNone(s.Tx.Get(ctx, []any{&seq}, selectContextHeld, c.ContextID, memory.Nullable(c.Key))); {
	case err != nil:
		return err
	case seq != 0 && d.from == fromHub:
		return s.Exec(ctx, updateContextByKey, c.ContextID, doc.HubSeq, c.UpdatedAt, memory.Nullable(c.ConflictWith))
	case seq != 0:
		d.counts.Known++
		return nil
	}
	switch d.from {
	case fromHub:
		change, err := d.logPulled(ctx, s, s.Memory.MemoryID, doc, c.ContextID, doc.Doc)
		if err != nil {
			return err
		}
		return contents.InsertContext(ctx, s, c, contents.ContextPlace{Key: c.Key, HubSeq: doc.HubSeq, Synced: true, Change: change})
	case fromLog:
		return bringBackContext(ctx, s, c, doc.seq)
	}
	if clean := d.redact(c.Markdown); clean != c.Markdown {
		c.Markdown = clean
		d.counts.Redacted++
	}
	c.SeenSeq = 0
	change, err := s.Log(ctx, memory.KindContext, c.ContextID, store.OpPut, c)
	if err != nil {
		return err
	}
	d.counts.Contexts++
	return contents.InsertContext(ctx, s, c, contents.ContextPlace{Key: c.Key, Synced: !s.User.IsJoined(), Change: change})
}

// bringBackContext restores a context of the log. It does not index the context.
func bringBackContext(ctx context.Context, s *memory.CallTx, c contents.ContextDoc, change int64) error {
	res, err := contents.InsertContextRow(ctx, s, c, contents.ContextPlace{Key: c.Key, Synced: true, Change: change})
	if err != nil {
		return err
	}
	seq, err := res.LastInsertId()
	if err == nil {
		err = s.Exec(ctx, lowerContext, seq)
	}
	return err
}
