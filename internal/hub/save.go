package hub

import (
	"context"
	"strconv"

	"cairn/internal/hub/database"
)

const (
	insertItem = `INSERT INTO hub_items (memory_id, tenant, hub_seq, key, kind, op, id, canonical_ns, prev_seq, device_id, body_hash, doc)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
	insertEntry = `INSERT INTO hub_entries (memory_id, tenant, entry_id, canonical_ns, put_seq, last_seq, deleted_ns, doc)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	updateEntry = `UPDATE hub_entries SET last_seq = $4, deleted_ns = $5, doc = $6
WHERE memory_id = $1 AND tenant = $2 AND entry_id = $3`
	blankItem = `UPDATE hub_items SET doc = '', body_hash = ''
WHERE memory_id = $1 AND tenant = $2 AND hub_seq = $3 RETURNING prev_seq`
)

// The same two insertions as one statement for many rows. Only PostgreSQL uses them, because
// each statement is a round trip there: see BenchmarkPush.
const (
	insertItems = `INSERT INTO hub_items (memory_id, tenant, hub_seq, key, kind, op, id, canonical_ns, prev_seq, device_id, body_hash, doc)
SELECT $1, $2, v.hub_seq, v.key, v.kind, v.op, v.id, v.canonical_ns, v.prev_seq, $3, v.body_hash, v.doc
FROM unnest($4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::text[], $12::text[])
  AS v (hub_seq, key, kind, op, id, canonical_ns, prev_seq, body_hash, doc)`
	insertManyEntries = `INSERT INTO hub_entries (memory_id, tenant, entry_id, canonical_ns, put_seq, last_seq, deleted_ns, doc)
SELECT $1, $2, v.entry_id, v.canonical_ns, v.put_seq, v.last_seq, v.deleted_ns, v.doc
FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
  AS v (entry_id, canonical_ns, put_seq, last_seq, deleted_ns, doc)`
)

// save writes the results of the items to the database.
func (st *stream) save(ctx context.Context) error {
	if err := st.blankItems(ctx); err != nil {
		return err
	}
	var fresh []*entry
	for _, e := range st.entries {
		switch {
		case e.isNew:
			fresh = append(fresh, e)
		case e.isChanged:
			if _, err := st.s.Exec(ctx, updateEntry, st.id, st.tenant, e.id, e.last, e.deletedNs, e.doc); err != nil {
				return err
			}
		}
	}
	insert := st.insertEach
	if st.s.Postgres {
		insert = st.insertAll
	}
	if err := insert(ctx, fresh); err != nil {
		return err
	}
	if st.sweep {
		if _, err := st.s.Exec(ctx, database.SetMeta, database.MetaSweep+st.id+":"+st.tenant, strconv.FormatInt(st.head.deletedSeq, 10)); err != nil {
			return err
		}
	}
	if err := firstOf(st.saveContext(ctx), st.raiseCatalogue(ctx)); err != nil {
		return err
	}
	h := st.head
	found, err := st.s.One(ctx, raiseHead, []any{st.id, st.tenant, h.seq, h.lastNs, h.deletedSeq, h.deletedNs, h.isGone}, &h.seq)
	if err == nil && !found {
		err = database.ErrMeanwhile
	}
	return err
}

// blankItems removes the documents of deleted entries.
func (st *stream) blankItems(ctx context.Context) error {
	for _, seq := range st.blanked {
		for seq > 0 {
			found, err := st.s.One(ctx, blankItem, []any{st.id, st.tenant, seq}, &seq)
			if err != nil {
				return err
			}
			if !found {
				break
			}
		}
	}
	return nil
}

// insertEach inserts row by row, which works on any database.
func (st *stream) insertEach(ctx context.Context, entries []*entry) error {
	err := st.s.Many(ctx, insertItem, len(st.fresh), func(i int) []any {
		l := st.fresh[i]
		return []any{st.id, st.tenant, l.seq, l.key, l.kind, l.op, l.id, l.ns, l.prev, st.device, l.hash, l.doc}
	})
	if err != nil {
		return err
	}
	return st.s.Many(ctx, insertEntry, len(entries), func(i int) []any {
		e := entries[i]
		return []any{st.id, st.tenant, e.id, e.ns, e.put, e.last, e.deletedNs, e.doc}
	})
}

// insertAll inserts all rows with one statement.
func (st *stream) insertAll(ctx context.Context, entries []*entry) error {
	n := len(st.fresh)
	seqs, ns, prevs := make([]int64, n), make([]int64, n), make([]int64, n)
	keys, kinds, ops, ids, hashes, docs := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, l := range st.fresh {
		seqs[i], ns[i], prevs[i] = l.seq, l.ns, l.prev
		keys[i], kinds[i], ops[i], ids[i], hashes[i], docs[i] = l.key, l.kind, l.op, l.id, l.hash, l.doc
	}
	_, err := st.s.Exec(ctx, insertItems, st.id, st.tenant, st.device, seqs, keys, kinds, ops, ids, ns, prevs, hashes, docs)
	if n = len(entries); err != nil || n == 0 {
		return err
	}
	times, puts, lasts, deleted := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	ids, docs = make([]string, n), make([]string, n)
	for i, e := range entries {
		ids[i], times[i], puts[i], lasts[i], deleted[i], docs[i] = e.id, e.ns, e.put, e.last, e.deletedNs, e.doc
	}
	_, err = st.s.Exec(ctx, insertManyEntries, st.id, st.tenant, ids, times, puts, lasts, deleted, docs)
	return err
}
