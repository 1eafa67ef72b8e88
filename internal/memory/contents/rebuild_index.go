package contents

import (
	"context"
	"database/sql"
	"math"

	"cairn/internal/memory"
)

const (
	selectToIndex = EntryColumns + `WHERE e.synced = 1 AND (e.memory_id, e.canonical_ns) > (?1, ?2) ORDER BY e.memory_id, e.canonical_ns LIMIT 500`

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

// ClearIndex empties the index. It keeps the vectors of committed entries.
func ClearIndex(ctx context.Context, s *memory.CallTx) error {
	for _, query := range clearings() {
		if err := s.Exec(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// FillIndex fills an empty index.
func FillIndex(ctx context.Context, s *memory.CallTx) error {
	last, at := "", memory.Time(math.MinInt64)
	for {
		rows, err := Entries(ctx, s, selectToIndex, last, at)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fillContexts(ctx, s)
		}
		for i := range rows {
			if err := indexEntry(ctx, s, &rows[i]); err != nil {
				return err
			}
		}
		last, at = rows[len(rows)-1].MemoryID, rows[len(rows)-1].CreationTime
	}
}

func fillContexts(ctx context.Context, s *memory.CallTx) error {
	last := int64(math.MinInt64)
	for n := 1; n > 0; {
		n = 0
		err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
			n++
			var memoryID, markdown string
			err := rows.Scan(&last, &memoryID, &markdown)
			if err == nil {
				err = indexContext(ctx, s.Tx, memoryID, last, markdown)
			}
			return err
		}, selectContextsToIndex, last)
		if err != nil {
			return err
		}
	}
	return nil
}
