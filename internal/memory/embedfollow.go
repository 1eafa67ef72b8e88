package memory

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"cairn/internal/store"
)

const (
	// Entries without a vector of the model and the length at hand, by number.
	withoutVector = `SELECT e.key, e.summary, e.raw_entry FROM memory_entries e LEFT JOIN memory_vectors v ON v.key = e.key
WHERE e.synced = 1 AND e.deleting_seq IS NULL AND (v.key IS NULL OR v.model <> ?2 OR length(v.vector) <> ?3) `
	selectUnembedded = withoutVector + `AND e.key > ?1 ORDER BY e.key LIMIT 64`
	selectChanged    = withoutVector + `AND e.entry_id IN (SELECT value FROM json_each(?1))`

	// Unless the entry has gone or its summary has changed meanwhile.
	upsertVector = `INSERT OR REPLACE INTO memory_vectors (key, model, vector)
SELECT key, ?2, ?3 FROM memory_entries WHERE key = ?1 AND synced = 1 AND deleting_seq IS NULL AND summary = ?4`

	selectVectors = `SELECT e.place, v.vector FROM memory_entries e JOIN memory_vectors v ON v.key = e.key
WHERE e.memory_id = ?1 AND e.user_id = ?2 AND e.synced = 1 AND e.deleting_seq IS NULL AND v.model = ?3 AND length(v.vector) = ?4`
)

// Embed keeps the vectors of all committed entries until ctx ends, then returns nil;
// one process of a store does so at a time. With no embedder set it returns at once.
// When it begins, entries without a vector, or with one of another model or dimension,
// are embedded, afterwards those that change. An embedder that does not answer is
// asked again with back-off; searches go on by words meanwhile.
func (b *Book) Embed(ctx context.Context) error {
	if b.embedder == nil || b.store == nil {
		return nil
	}
	var all sync.WaitGroup
	defer all.Wait()
	elected := make(chan struct{})
	all.Go(func() {
		select {
		case <-ctx.Done():
		case <-elected:
			b.embedAll(ctx)
		}
	})
	return b.store.Follow(ctx, store.Follower{
		Lease:   "memory-embed",
		Elected: func() { close(elected) },
		Batch: func(ctx context.Context, changes []store.Change) ([]store.Refusal, error) {
			ids := []string{}
			for _, c := range changes {
				if c.Kind == KindEntry && c.Op != store.OpDelete {
					ids = append(ids, c.ID)
				}
			}
			return nil, b.embedChanged(ctx, ids)
		},
	})
}

// embedAll embeds what has no fitting vector, and tries until that is done.
func (b *Book) embedAll(ctx context.Context) {
	const longest = time.Minute
	wait := time.Second
	for b.embedMissing(ctx) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			wait = min(2*wait, longest)
		}
	}
}

func (b *Book) embedMissing(ctx context.Context) error {
	probe, err := b.embedder.embed(ctx, []string{"dimension"})
	if err != nil {
		return err
	}
	for after := int64(0); ; {
		todo, err := b.unembedded(ctx, selectUnembedded, after, len(probe[0]))
		if err != nil || len(todo) == 0 {
			return err
		}
		if err := b.embedRows(ctx, todo); err != nil {
			return err
		}
		after = todo[len(todo)-1].key
	}
}

func (b *Book) embedChanged(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	// Of a changed entry there is none, so the dimension is of no account.
	todo, err := b.unembedded(ctx, selectChanged, string(list), 0)
	for part := range slices.Chunk(todo, 64) {
		if err == nil {
			err = b.embedRows(ctx, part)
		}
	}
	return err
}

// unembeddedRow is an entry that wants a vector.
type unembeddedRow struct {
	key     int64
	summary string
	text    string // what is embedded: the summary, else the entry itself
}

func (b *Book) unembedded(ctx context.Context, query string, which any, dimension int) (todo []unembeddedRow, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(rows *sql.Rows) error {
			var r unembeddedRow
			var raw string
			err := rows.Scan(&r.key, &r.summary, &raw)
			r.text = cmp.Or(r.summary, raw)
			todo = append(todo, r)
			return err
		}, query, which, b.embedder.model, 4*dimension)
	})
	return todo, err
}

func (b *Book) embedRows(ctx context.Context, todo []unembeddedRow) error {
	texts := make([]string, len(todo))
	for i, r := range todo {
		texts[i] = r.text
	}
	vectors, err := b.embedder.embed(ctx, texts)
	if err != nil {
		return err
	}
	return b.store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for i, r := range todo {
			if _, err := tx.Exec(ctx, upsertVector, r.key, b.embedder.model, vectorBytes(vectors[i]), r.summary); err != nil {
				return err
			}
		}
		return nil
	})
}

// byVector adds to candidates by words how near their vectors are to v, and those that
// are nearest by it alone.
func (s *scope) byVector(ctx context.Context, v []float32, byWords []candidate, admitted func(place int64) bool) ([]candidate, error) {
	known := map[int64]candidate{}
	for _, c := range byWords {
		known[c.place] = c
	}
	near := map[int64]float64{}
	var nearest []candidate
	err := s.tx.Each(ctx, func(rows *sql.Rows) error {
		var place int64
		var stored sql.RawBytes
		err := rows.Scan(&place, &stored)
		if err == nil && (admitted == nil || admitted(place)) {
			c := known[place]
			c.place, c.near = place, cosine(v, stored)
			near[place], nearest = c.near, append(nearest, c)
		}
		return err
	}, selectVectors, s.m.MemoryID, s.m.ActorID, s.embedder.model, 4*len(v))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(nearest, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.near, a.near), cmp.Compare(a.place, b.place)) })
	nearest = nearest[:min(len(nearest), maxCandidates)]
	listed := map[int64]bool{}
	for _, c := range nearest {
		listed[c.place] = true
	}
	for _, c := range byWords[:min(len(byWords), maxCandidates)] {
		if !listed[c.place] {
			c.near = near[c.place]
			nearest = append(nearest, c)
		}
	}
	return nearest, nil
}
