package hub

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/hub/database"
	"cairn/internal/memory"
	"cairn/internal/memory/rules"
	"cairn/internal/replica"
)

// stream is one stream of a tenant inside a transaction that holds the lock on its head. Items
// are applied in memory; save writes the results.
type stream struct {
	s      database.Statements
	id     string
	tenant string
	device string
	admin  bool
	now    int64

	head    head
	known   map[string]logged // by key, of the current items
	entries map[string]*entry // entries that the items name, and new ones
	fresh   []logged          // to be appended to the log
	blanked []int64           // items of the log from which documents are blanked, back along prev_seq
	sweep   bool              // the stream was deleted
	current currentContext    // of the memory, if one of the items is a context
}

// head is a row of hub_heads.
type head struct {
	kind                          string
	seq, lastNs                   int64
	deletedSeq, deletedNs, isGone int64
}

// logged is a row of hub_items.
type logged struct {
	seq, ns, prev     int64
	key, kind, op, id string
	hash, doc         string
}

// entry is a row of hub_entries.
type entry struct {
	id                       string
	ns, put, last, deletedNs int64
	doc                      string
	isNew, isChanged         bool
}

const (
	lockHead = `UPDATE hub_heads SET head_seq = head_seq WHERE memory_id = $1 AND tenant = $2
RETURNING kind, head_seq, last_ns, deleted_seq, deleted_ns, gone`
	insertHead = `INSERT INTO hub_heads (memory_id, tenant, kind, head_seq, last_ns, deleted_seq, deleted_ns, gone)
VALUES ($1, $2, $3, 0, 0, 0, 0, 0) ON CONFLICT DO NOTHING`
	raiseHead = `UPDATE hub_heads SET head_seq = $3, last_ns = $4, deleted_seq = $5, deleted_ns = $6, gone = $7
WHERE memory_id = $1 AND tenant = $2 RETURNING head_seq`
	selectKnown = `SELECT key, hub_seq, canonical_ns, kind, op, id, body_hash FROM hub_items
WHERE memory_id = $1 AND tenant = $2 AND key IN `
	selectEntries = `SELECT entry_id, canonical_ns, put_seq, last_seq, deleted_ns, doc FROM hub_entries
WHERE memory_id = $1 AND tenant = $2 AND entry_id IN `
)

// open locks the stream's head and loads the rows that the items name. It creates an unknown
// stream if its first item may create one.
func (st *stream) open(ctx context.Context, items []incoming) (found bool, err error) {
	if found, err = st.lock(ctx); err != nil {
		return false, err
	}
	if first := items[0]; !found && (first.kind == replica.KindVault || first.kind == replica.KindMemory && first.op == replica.OpPut) {
		if _, err := st.s.Exec(ctx, insertHead, st.id, st.tenant, first.kind); err != nil {
			return false, err
		}
		if found, err = st.lock(ctx); err != nil {
			return false, err
		}
	}
	if !found {
		return false, nil
	}
	if err := st.load(ctx, items); err != nil {
		return false, err
	}
	return true, nil
}

func (st *stream) lock(ctx context.Context) (bool, error) {
	h := &st.head
	return st.s.One(ctx, lockHead, []any{st.id, st.tenant}, &h.kind, &h.seq, &h.lastNs, &h.deletedSeq, &h.deletedNs, &h.isGone)
}

func (st *stream) load(ctx context.Context, items []incoming) error {
	var keys, ids []any
	for _, in := range items {
		keys = append(keys, in.key)
		if in.kind != replica.KindEntry {
			continue
		}
		for _, id := range []string{in.doc.EntryID, in.doc.CorrectedEntryID} {
			if id != "" {
				ids = append(ids, id)
			}
		}
	}
	if slices.ContainsFunc(items, func(in incoming) bool { return in.kind == replica.KindContext }) {
		if err := st.loadContext(ctx); err != nil {
			return err
		}
	}
	st.known, st.entries = map[string]logged{}, map[string]*entry{}
	err := st.s.EachOf(ctx, selectKnown, []any{st.id, st.tenant}, keys, func(scan func(...any) error) (bool, error) {
		var l logged
		err := scan(&l.key, &l.seq, &l.ns, &l.kind, &l.op, &l.id, &l.hash)
		st.known[l.key] = l
		return true, err
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	return st.s.EachOf(ctx, selectEntries, []any{st.id, st.tenant}, ids, func(scan func(...any) error) (bool, error) {
		var e entry
		err := scan(&e.id, &e.ns, &e.put, &e.last, &e.deletedNs, &e.doc)
		if e.put <= st.head.deletedSeq && e.deletedNs == 0 { // deleted with the memory
			e.deletedNs, e.doc = st.head.deletedNs, ""
		}
		st.entries[e.id] = &e
		return true, err
	})
}

// apply applies one item.
func (st *stream) apply(ctx context.Context, in incoming) (replica.Result, error) {
	if in.op == replica.OpDelete && !st.admin {
		return refused(in.seq, fault.New(fault.Denied, memory.CodeForbidden, "deleting requires a token of level admin")), nil
	}
	if l, ok := st.known[in.key]; ok {
		return replayed(in, l), nil
	}
	if isVault := in.kind == replica.KindVault; isVault != (st.head.kind == replica.KindVault) {
		return refused(in.seq, invalid("stream", "the stream is a %s", st.head.kind)), nil
	}
	switch in.kind {
	case replica.KindVault:
		return st.applyVault(ctx, in)
	case replica.KindMemory:
		return st.applyMemory(ctx, in)
	}
	if st.head.isGone != 0 {
		return refused(in.seq, missing("memory")), nil
	}
	if in.kind == replica.KindContext {
		return st.applyContext(in)
	}
	switch in.op {
	case replica.OpPut:
		return st.putEntry(in)
	case replica.OpPatch:
		return st.patchEntry(in)
	default:
		return st.deleteEntry(in)
	}
}

// replayed returns the result of an item whose key is known.
func replayed(in incoming, l logged) replica.Result {
	if l.kind != in.kind || l.op != in.op || l.hash != "" && l.hash != in.hash {
		return refused(in.seq, fault.New(fault.Conflict, memory.CodeMismatch, "the key was already used for a different operation"))
	}
	r := done(in, l)
	if r.Status == http.StatusCreated {
		r.Status = http.StatusOK
	}
	return r
}

// done returns the result of an item that was appended to the log.
func done(in incoming, l logged) replica.Result {
	r := replica.Result{Seq: in.seq, Status: http.StatusCreated, HubSeq: l.seq}
	switch {
	case in.op == replica.OpDelete:
		r.Status = http.StatusNoContent
	case in.op == replica.OpPatch:
		r.Status = http.StatusOK
	}
	if in.kind == replica.KindEntry {
		r.EntryID = l.id
	}
	if l.ns != 0 {
		r.CreationTime = timeText(l.ns)
	}
	return r
}

// refused returns the result of an item that is not accepted.
func refused(seq int64, why error) replica.Result {
	f := fault.As(why)
	return replica.Result{Seq: seq, Status: memory.Status(f), Error: &replica.Error{Code: f.Code, Message: f.Message, Details: f.Details}}
}

func missing(what string) error {
	return fault.New(fault.NotFound, memory.CodeNotFound, "there is no such "+what)
}

func exists(what, id string) error {
	e := fault.New(fault.Conflict, memory.CodeExists, what+" is taken")
	e.Details = map[string]any{"existing_id": id}
	return e
}

// log appends an item with the next number.
func (st *stream) log(in incoming, id string, ns, prev int64, doc document) (logged, error) {
	text, err := doc.canonical()
	if err != nil {
		return logged{}, err
	}
	st.head.seq++
	l := logged{seq: st.head.seq, ns: ns, prev: prev, key: in.key, kind: in.kind, op: in.op, id: id, hash: in.hash, doc: text}
	st.fresh = append(st.fresh, l)
	st.known[in.key] = l
	return l, nil
}

// canonicalTime returns the captured time where possible. The result is never in the future,
// and is later than every entry of the memory that other devices have read (memories §10.2).
func (st *stream) canonicalTime(captured int64) int64 {
	st.head.lastNs = max(min(captured, st.now), st.head.lastNs+1)
	return st.head.lastNs
}

func (st *stream) putEntry(in incoming) (replica.Result, error) {
	id := in.doc.EntryID
	if e := st.entries[id]; e != nil {
		if e.deletedNs != 0 {
			return refused(in.seq, missing("entry any more")), nil
		}
		return refused(in.seq, exists("entryId", id)), nil
	}
	if id == "" {
		id = rules.NewID()
	}
	ns := st.canonicalTime(in.at.UnixNano())
	l, err := st.log(in, id, ns, 0, in.doc.stored(st.id, id, ns))
	if err != nil {
		return replica.Result{}, err
	}
	st.entries[id] = &entry{id: id, ns: ns, put: l.seq, last: l.seq, doc: l.doc, isNew: true}
	return done(in, l), nil
}

func (st *stream) patchEntry(in incoming) (replica.Result, error) {
	e := st.entries[in.doc.EntryID]
	if e == nil || e.deletedNs != 0 {
		return refused(in.seq, missing("entry")), nil
	}
	var now document
	if err := json.Unmarshal([]byte(e.doc), &now); err != nil {
		return replica.Result{}, err
	}
	if now.CorrectedEntryID != "" {
		return refused(in.seq, fault.New(fault.Conflict, memory.CodeImmutable, "the entry has been corrected")), nil
	}
	if target := in.doc.CorrectedEntryID; target != "" {
		if t := st.entries[target]; t == nil || t.deletedNs != 0 {
			return refused(in.seq, missing("entry to correct")), nil
		}
	}
	text, err := now.patched(in.doc).canonical()
	if err != nil {
		return replica.Result{}, err
	}
	l, err := st.log(in, e.id, 0, e.last, in.doc)
	if err != nil {
		return replica.Result{}, err
	}
	e.doc, e.last, e.isChanged = text, l.seq, true
	return done(in, l), nil
}

// deleteEntry stores a tombstone, also for an entry that the hub has never received, so that a
// later put of it is refused.
func (st *stream) deleteEntry(in incoming) (replica.Result, error) {
	e := st.entries[in.doc.EntryID]
	if e != nil && e.deletedNs != 0 {
		return replica.Result{Seq: in.seq, Status: http.StatusNoContent, EntryID: e.id}, nil
	}
	if e == nil {
		e = &entry{id: in.doc.EntryID, isNew: true}
		st.entries[e.id] = e
	} else {
		st.blank(e.last)
	}
	l, err := st.log(in, e.id, 0, 0, in.doc)
	if err != nil {
		return replica.Result{}, err
	}
	if e.put == 0 {
		e.put = l.seq
	}
	e.doc, e.last, e.deletedNs, e.isChanged = "", l.seq, st.now, true
	return done(in, l), nil
}

// blank removes the documents of an entry's items, the newest first.
func (st *stream) blank(seq int64) {
	for seq > 0 {
		at := len(st.fresh) - int(st.head.seq-seq) - 1
		if at < 0 {
			st.blanked = append(st.blanked, seq)
			return
		}
		seq, st.fresh[at].doc, st.fresh[at].hash = st.fresh[at].prev, "", ""
	}
}
