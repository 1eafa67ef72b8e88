package memory

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/store"
)

const (
	selectEntryDocs = `SELECT t.text, c.id, o.text, c.seq, c.doc FROM changes c JOIN symbols t ON t.id = c.stream JOIN symbols o ON o.id = c.op
WHERE c.kind = (SELECT id FROM symbols WHERE text = 'entry') AND c.doc IS NOT NULL
AND (o.text <> 'put' OR c.seq NOT IN (SELECT seq FROM memory_entries)) ORDER BY c.seq`
	selectContextDocs = `SELECT t.text, c.id, o.text, c.seq, c.doc FROM changes c JOIN symbols t ON t.id = c.stream JOIN symbols o ON o.id = c.op
WHERE c.kind = (SELECT id FROM symbols WHERE text = 'context') AND c.doc IS NOT NULL AND o.text = 'put'
AND c.id NOT IN (SELECT context_id FROM memory_contexts) ORDER BY c.seq`
	// A context gets the lowest number that is free: in the order of the log that is mostly
	// the one that it had.
	lowerContext = `UPDATE memory_contexts SET seq = f.n FROM (SELECT min(n) AS n FROM (SELECT 1 AS n UNION ALL SELECT seq + 1 FROM memory_contexts WHERE seq > 0)
WHERE n NOT IN (SELECT seq FROM memory_contexts)) f WHERE seq = ?1 AND f.n < ?1`
	updateKey = `UPDATE memory_entries SET key = ?2 WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM memory_entries WHERE key = ?2)`
)

// logged is a change of an entry or a context with its document.
type logged struct {
	memory, id, op string
	seq            int64
	doc            []byte
	context        contextDoc // of a context
}

func (l *logged) scan(rows *sql.Rows) error {
	return rows.Scan(&l.memory, &l.id, &l.op, &l.seq, &l.doc)
}

// bringBack makes the rows of entries and contexts that the log knows and the tables do
// not. What was deleted or purged has no document in the log any more.
func (s *callTx) bringBack(ctx context.Context) error {
	entries, err := s.entriesWithoutRow(ctx)
	for _, e := range entries {
		if err == nil {
			err = s.bringBackEntry(ctx, e)
		}
	}
	if err != nil {
		return err
	}
	contexts, err := s.contextsWithoutRow(ctx)
	for _, l := range contexts {
		if err == nil {
			err = s.bringBackContext(ctx, l)
		}
	}
	return err
}

// entriesWithoutRow are the entries that the log knows and the table does not, as the log
// leaves them. Those of lost memories are left out.
func (s *callTx) entriesWithoutRow(ctx context.Context) (out []*entryRow, err error) {
	lost := lostEntries{byID: map[string]*entryRow{}}
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		var l logged
		if err := l.scan(rows); err != nil {
			return err
		}
		return lost.follow(ctx, s, l)
	}, selectEntryDocs)
	for _, e := range lost.rows {
		if err != nil || lost.byID[e.name()] != e {
			continue
		}
		s.m.MemoryID = e.MemoryID
		var gone bool
		if gone, err = s.buried(ctx, e.EntryID, e.hubKey); !gone {
			out = append(out, e)
		}
	}
	return out, err
}

// contextsWithoutRow is the same for contexts.
func (s *callTx) contextsWithoutRow(ctx context.Context) (out []logged, err error) {
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		var l logged
		if err := l.scan(rows); err != nil {
			return err
		}
		var d contextDoc
		if json.Unmarshal(l.doc, &d) != nil || d.ContextID != l.id {
			return nil
		}
		l.context = d
		there, err := s.home(ctx, l.memory)
		if there {
			out = append(out, l)
		}
		return err
	}, selectContextDocs)
	return out, err
}

// home sets the scope's memory, with its owner; ok is false if it is not here.
func (s *callTx) home(ctx context.Context, memory string) (ok bool, err error) {
	var m memoryRow
	err = s.tx.Get(ctx, []any{&m.ActorID, &m.VaultID}, `SELECT user_id, vault_id FROM memories WHERE memory_id = ?`, memory)
	m.MemoryID, m.exists = memory, err == nil
	s.u, s.m = user{ID: m.ActorID}, m
	return m.exists, ignoreNone(err)
}

// lostEntries are entries of the log without a row, as the log's changes leave them.
type lostEntries struct {
	rows []*entryRow
	byID map[string]*entryRow // by memory and localId or entryId
}

func (e *entryRow) name() string {
	if e.synced {
		return e.MemoryID + " " + e.EntryID
	}
	return e.MemoryID + " " + localID(e.key)
}

// follow takes the log's next change of an entry.
func (x *lostEntries) follow(ctx context.Context, s *callTx, l logged) error {
	at := l.memory + " "
	switch l.op {
	case store.OpPut:
		var d entryDoc
		if json.Unmarshal(l.doc, &d) != nil || x.byID[at+l.id] != nil {
			return nil
		}
		return x.put(ctx, s, l, d)
	case OpConfirm:
		var d confirmDoc
		if e := x.byID[at+l.id]; json.Unmarshal(l.doc, &d) == nil {
			if local := x.byID[at+d.LocalID]; local != nil {
				e = local
			}
			if e != nil {
				e.synced, e.EntryID, e.CreationTime, e.hubSeq = true, d.EntryID, d.CreationTime, d.HubSeq
				x.byID[e.name()] = e
			}
		}
	case OpPatch:
		var d changeDoc
		if e := x.byID[at+l.id]; e != nil && json.Unmarshal(l.doc, &d) == nil {
			d.change(&e.Entry)
		}
	}
	return nil
}

func (x *lostEntries) put(ctx context.Context, s *callTx, l logged, d entryDoc) error {
	key, kerr := parseLocalID(l.id)
	if kerr != nil {
		key, _ = parseLocalID(d.LocalID)
		d.EntryID = l.id
	}
	_, found, err := s.held(ctx, d.Key, d.EntryID)
	if err == nil && !found && key != 0 {
		_, found, err = s.entry(ctx, selectByRow, key)
	}
	if err != nil || found {
		return err
	}
	there, err := s.home(ctx, l.memory)
	if err != nil || !there {
		return err
	}
	if d.CreationTime == 0 {
		d.CreationTime = d.CapturedTime // of entries of this device both are one
	}
	e, err := s.rowOf(&d, d.Key)
	if err != nil {
		return nil // it can never have been a row
	}
	e.key, e.synced, e.seq = key, d.EntryID != "", l.seq
	x.rows = append(x.rows, &e)
	x.byID[e.name()] = &e
	if key != 0 {
		x.byID[l.memory+" "+localID(key)] = &e
	}
	return nil
}

// bringBackEntry stores a lost entry under its old number. The index is filled afterwards.
func (s *callTx) bringBackEntry(ctx context.Context, e *entryRow) error {
	if there, err := s.home(ctx, e.MemoryID); err != nil || !there {
		return err
	}
	if err := s.freeTime(ctx, e); err != nil {
		return err
	}
	was := e.key
	if err := s.insertRow(ctx, e); err != nil || was == 0 {
		return err
	}
	_, err := s.tx.Exec(ctx, updateKey, e.key, was)
	return err
}

// bringBackContext stores a lost context. The index is filled afterwards.
func (s *callTx) bringBackContext(ctx context.Context, l logged) error {
	if _, err := s.home(ctx, l.memory); err != nil {
		return err
	}
	res, err := s.insertContextRow(ctx, l.context, contextPlace{key: l.context.Key, synced: true, change: l.seq})
	if err != nil {
		return err
	}
	seq, err := res.LastInsertId()
	if err == nil {
		_, err = s.tx.Exec(ctx, lowerContext, seq)
	}
	return err
}

// missing names, for people, what the change log tells of and no row holds.
func (s *callTx) missing(ctx context.Context) (findings []string, err error) {
	own, err := ownUser(ctx, s.tx, false)
	if err != nil {
		return nil, err
	}
	lost := func(what, id string) {
		findings = append(findings, "P11: "+what+" "+id+" is in the log and has no row")
	}
	memories, err := s.homeless(ctx, own)
	for _, h := range memories {
		lost("memory", h.memory)
	}
	if err != nil {
		return findings, err
	}
	vaults, err := s.vaultless(ctx, own)
	for _, v := range vaults {
		lost("vault", v.id)
	}
	if err != nil {
		return findings, err
	}
	entries, err := s.entriesWithoutRow(ctx)
	for _, e := range entries {
		lost("the entry", cmp.Or(e.EntryID, localID(e.key)))
	}
	if err != nil {
		return findings, err
	}
	contexts, err := s.contextsWithoutRow(ctx)
	for _, l := range contexts {
		lost("context", l.id)
	}
	return findings, err
}
