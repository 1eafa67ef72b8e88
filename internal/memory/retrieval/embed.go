package retrieval

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"cairn/internal/memory"
	"cairn/internal/memory/embedding"
	"cairn/internal/memory/ranking"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

const (
	// Entries without a vector of the model and the length at hand, by number.
	withoutVector = `SELECT e.key, e.entry_id, e.memory_id, e.summary, e.raw_entry FROM memory_entries e LEFT JOIN memory_vectors v ON v.key = e.key
WHERE e.synced = 1 AND e.deleting_seq IS NULL AND (v.key IS NULL OR v.model <> ?2 OR length(v.vector) <> ?3) `
	selectUnembedded = withoutVector + `AND e.key > ?1 ORDER BY e.key LIMIT 64`
	selectChanged    = withoutVector + `AND e.entry_id IN (SELECT value FROM json_each(?1))`

	// Does nothing if the entry was deleted or its summary has changed in the meantime.
	upsertVector = `INSERT OR REPLACE INTO memory_vectors (key, model, vector)
SELECT key, ?2, ?3 FROM memory_entries WHERE key = ?1 AND synced = 1 AND deleting_seq IS NULL AND summary = ?4`

	selectEntrySeq = `SELECT ifnull(max(seq), 0) FROM changes WHERE stream = (SELECT id FROM symbols WHERE text = ?)
AND kind = (SELECT id FROM symbols WHERE text = ?) AND id = ?`

	selectVectors = `SELECT e.place, v.vector FROM memory_entries e JOIN memory_vectors v ON v.key = e.key
WHERE e.memory_id = ?1 AND e.user_id = ?2 AND e.synced = 1 AND e.deleting_seq IS NULL AND v.model = ?3 AND length(v.vector) = ?4`
)

// EmbedFollower is the name under which the follower of the embedder is reported.
const EmbedFollower = "memory-embed"

// Embed maintains the vectors of all committed entries until ctx ends, then returns nil. One
// process of a store does so at a time. Without an embedder it returns immediately. At its
// start it embeds entries without a vector, or with one of another model or dimension;
// afterwards entries that change. If the embedder does not answer, it is asked again with
// back-off, and searches use words only. An entry that the embedder refuses is set aside.
func (b *Retrieval) Embed(ctx context.Context) error {
	if b.embedder == nil || b.Store == nil {
		return nil
	}
	return follow.Run(ctx, b.Store, b.embedFollower())
}

// embedFollower returns the follower of the embedder.
func (b *Retrieval) embedFollower() follow.Follower {
	return follow.Follower{Name: EmbedFollower, Begin: b.embedMissing, Batch: b.embedChanged}
}

// embedMissing embeds the entries without a valid vector.
func (b *Retrieval) embedMissing(ctx context.Context) (refused []follow.Refusal, err error) {
	probe, err := b.embedder.Vectors(ctx, []string{embedding.ProbeText})
	if err != nil {
		return nil, err
	}
	for after := int64(0); ; {
		todo, err := b.unembedded(ctx, selectUnembedded, after, len(probe[0]))
		if err != nil || len(todo) == 0 {
			return refused, err
		}
		some, err := b.embedRows(ctx, todo)
		if err != nil {
			return nil, err
		}
		refused = append(refused, some...)
		after = todo[len(todo)-1].key
	}
}

// embedChanged embeds the entries of some changes.
func (b *Retrieval) embedChanged(ctx context.Context, changes []store.Change) (refused []follow.Refusal, err error) {
	ids := []string{}
	for _, c := range changes {
		if c.Kind == memory.KindEntry && c.Op != store.OpDelete {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	// Changed entries have no vector yet, so the dimension does not matter.
	todo, err := b.unembedded(ctx, selectChanged, string(list), 0)
	for part := range slices.Chunk(todo, 64) {
		if err == nil {
			var some []follow.Refusal
			some, err = b.embedRows(ctx, part)
			refused = append(refused, some...)
		}
	}
	return refused, err
}

// unembeddedRow is an entry that needs a vector.
type unembeddedRow struct {
	key        int64
	id, memory string
	summary    string
	text       string // what is embedded: the summary, else the entry itself
}

func (b *Retrieval) unembedded(ctx context.Context, query string, which any, dimension int) (todo []unembeddedRow, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(rows *sql.Rows) error {
			var r unembeddedRow
			var raw string
			err := rows.Scan(&r.key, &r.id, &r.memory, &r.summary, &raw)
			r.text = cmp.Or(r.summary, raw)
			todo = append(todo, r)
			return err
		}, query, which, b.embedder.Model, 4*dimension)
	})
	return todo, err
}

// embedRows embeds entries in one request, or one by one if the embedder refuses that. An
// entry is refused if the embedder refuses it and accepts other texts.
func (b *Retrieval) embedRows(ctx context.Context, todo []unembeddedRow) (refused []follow.Refusal, err error) {
	texts := make([]string, len(todo))
	for i, r := range todo {
		texts[i] = r.text
	}
	vectors, err := b.embedder.Vectors(ctx, texts)
	switch {
	case errors.Is(err, embedding.ErrRefused) && len(todo) > 1:
		for i := range todo {
			some, err := b.embedRows(ctx, todo[i:i+1])
			if err != nil {
				return nil, err
			}
			refused = append(refused, some...)
		}
		return refused, nil
	case errors.Is(err, embedding.ErrRefused):
		return b.refusedRow(ctx, todo[0], err)
	case err != nil:
		return nil, err
	}
	return nil, b.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for i, r := range todo {
			if _, err := tx.Exec(ctx, upsertVector, r.key, b.embedder.Model, embedding.Bytes(vectors[i]), r.summary); err != nil {
				return err
			}
		}
		return nil
	})
}

// refusedRow returns the refusal of an entry's newest change, or the embedder's error if it
// accepts no other text either.
func (b *Retrieval) refusedRow(ctx context.Context, row unembeddedRow, why error) ([]follow.Refusal, error) {
	if _, err := b.embedder.Vectors(ctx, []string{embedding.ProbeText}); err != nil {
		return nil, err
	}
	var seq int64
	err := b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&seq}, selectEntrySeq, row.memory, memory.KindEntry, row.id)
	})
	if err != nil || seq == 0 {
		return nil, err
	}
	return []follow.Refusal{{Seq: seq, Err: fmt.Errorf("entry %s: %w", row.id, why)}}, nil
}

// byVector adds the similarity of their vectors to v to candidates by words, and adds the
// nearest candidates by vector.
func (b *Retrieval) byVector(ctx context.Context, s *memory.CallTx, v []float32, byWords []ranking.Candidate,
	admitted func(place int64) bool) ([]ranking.Candidate, error) {
	known := map[int64]ranking.Candidate{}
	for _, c := range byWords {
		known[c.Place] = c
	}
	near := map[int64]float64{}
	var nearest []ranking.Candidate
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var place int64
		var stored sql.RawBytes
		err := rows.Scan(&place, &stored)
		if err == nil && (admitted == nil || admitted(place)) {
			c := known[place]
			c.Place, c.Near = place, embedding.Cosine(v, stored)
			near[place], nearest = c.Near, append(nearest, c)
		}
		return err
	}, selectVectors, s.Memory.MemoryID, s.Memory.ActorID, b.embedder.Model, 4*len(v))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(nearest, func(a, b ranking.Candidate) int {
		return cmp.Or(cmp.Compare(b.Near, a.Near), cmp.Compare(a.Place, b.Place))
	})
	nearest = nearest[:min(len(nearest), ranking.MaxCandidates)]
	listed := map[int64]bool{}
	for _, c := range nearest {
		listed[c.Place] = true
	}
	for _, c := range byWords[:min(len(byWords), ranking.MaxCandidates)] {
		if !listed[c.Place] {
			c.Near = near[c.Place]
			nearest = append(nearest, c)
		}
	}
	return nearest, nil
}
