package memory

import (
	"context"
	"database/sql"
	"math"
)

const (
	selectToIndex = entryColumns + `WHERE e.synced = 1 AND (e.memory_id, e.canonical_ns) > (?1, ?2) ORDER BY e.memory_id, e.canonical_ns LIMIT 500`

	selectContextsToIndex = `SELECT seq, memory_id, markdown FROM memory_contexts WHERE seq > ? ORDER BY seq LIMIT 100`
)

// clearings empty the index with all that is derived for it.
func clearings() []string {
	return []string{
		`INSERT INTO memory_words (memory_words) VALUES ('delete-all')`,
		`UPDATE memory_entries SET place = NULL WHERE place IS NOT NULL`,
		`DELETE FROM memory_groups`,
		`DELETE FROM memory_vectors WHERE key NOT IN (SELECT key FROM memory_entries WHERE synced = 1)`,
	}
}

func (s *scope) clearIndex(ctx context.Context) error {
	for _, query := range clearings() {
		if _, err := s.tx.Exec(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// fillIndex indexes all that is to be found, into an empty index.
func (s *scope) fillIndex(ctx context.Context) error {
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

func (s *scope) fillContexts(ctx context.Context) error {
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
