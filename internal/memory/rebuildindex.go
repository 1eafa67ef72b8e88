package memory

import (
	"context"
	"database/sql"
	"math"

	"cairn/internal/store"
)

const (
	selectToIndex = entryColumns + `WHERE e.synced = 1 AND (e.memory_id, e.canonical_ns) > (?1, ?2) ORDER BY e.memory_id, e.canonical_ns LIMIT 500`

	selectContextsToIndex = `SELECT seq, memory_id, markdown FROM memory_contexts WHERE seq > ? ORDER BY seq LIMIT 100`
)

// clearings returns the statements that empty the index and its derived data.
func clearings() []string {
	return []string{
		`INSERT INTO memory_words (memory_words) VALUES ('delete-all')`,
		`UPDATE memory_entries SET place = NULL WHERE place IS NOT NULL`,
		`DELETE FROM memory_groups`,
		`DELETE FROM memory_vectors WHERE key NOT IN (SELECT key FROM memory_entries WHERE synced = 1)`,
	}
}

func (s *callTx) clearIndex(ctx context.Context) error {
	for _, query := range clearings() {
		if _, err := s.tx.Exec(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// fillIndex fills an empty index.
func (s *callTx) fillIndex(ctx context.Context) error {
	last, at := "", Time(math.MinInt64)
	for {
		rows, err := s.rows(ctx, selectToIndex, last, at)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return s.fillContexts(ctx)
		}
		for i := range rows {
			if err := s.index(ctx, &rows[i]); err != nil {
				return err
			}
		}
		last, at = rows[len(rows)-1].MemoryID, rows[len(rows)-1].CreationTime
	}
}

func (s *callTx) fillContexts(ctx context.Context) error {
	last := int64(math.MinInt64)
	for n := 1; n > 0; {
		n = 0
		err := s.tx.Each(ctx, func(rows *sql.Rows) error {
			n++
			var memory, markdown string
			err := rows.Scan(&last, &memory, &markdown)
			if err == nil {
				err = indexContext(ctx, s.tx, memory, last, markdown)
			}
			return err
		}, selectContextsToIndex, last)
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	// The first step starts a merge of all segments, the others continue it.
	mergeAll     = `INSERT INTO memory_words (memory_words, rank) VALUES ('merge', -500)`
	mergeMore    = `INSERT INTO memory_words (memory_words, rank) VALUES ('merge', 500)`
	countChanges = `SELECT total_changes()`
)

// OptimizeIndex merges the segments of the index (memories §13.3), at a time without much load. It
// works in short transactions, may be stopped between them, and is idempotent.
func (b *Service) OptimizeIndex(ctx context.Context) error {
	if b.store == nil {
		return nil
	}
	for query, more := mergeAll, true; more; query = mergeMore {
		err := b.store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
			var before, after int64
			if err := tx.Get(ctx, []any{&before}, countChanges); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, query); err != nil {
				return err
			}
			err := tx.Get(ctx, []any{&after}, countChanges)
			more = after-before > 1 // the statement itself counts as one
			return err
		})
		if err != nil {
			return toFault(err)
		}
	}
	return nil
}
