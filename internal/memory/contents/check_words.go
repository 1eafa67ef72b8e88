package contents

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"cairn/internal/memory"
	"cairn/internal/store"
	"cairn/internal/store/wordcheck"
)

const selectPlaceOf = `SELECT place FROM memory_entries WHERE key = ? AND place IS NOT NULL`

// CheckWords reports up to 20 entries and contexts whose indexed words differ from their text;
// none in an intact store. It computes the words of all of them again and changes nothing.
func CheckWords(ctx context.Context, tx *store.Tx) (findings []string, err error) {
	rows, err := wordcheck.Differing(ctx, tx, wordcheck.Index{Table: "memory_words", Insert: insertWords, Rows: eachIndexed})
	for _, row := range rows {
		if row < 0 {
			findings = append(findings, fmt.Sprintf("the searchable words of context %d are not those of its text", -row))
			continue
		}
		findings = append(findings, fmt.Sprintf("the searchable words of the entry at place %d are not those of its text", row))
	}
	return findings, err
}

// eachIndexed calls add with the terms that the index should contain for each entry and context.
func eachIndexed(ctx context.Context, tx *store.Tx, add func(args ...any) error) error {
	s := &memory.CallTx{Kernel: &memory.Kernel{}, Tx: tx}
	last, at := "", memory.Time(math.MinInt64)
	for {
		rows, err := Entries(ctx, s, selectToIndex, last, at)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			var place int64
			err := tx.Get(ctx, []any{&place}, selectPlaceOf, rows[i].Key)
			if err == nil {
				err = add(place, entryTerms(&rows[i]))
			}
			if memory.IgnoreNone(err) != nil {
				return err
			}
		}
		last, at = rows[len(rows)-1].MemoryID, rows[len(rows)-1].CreationTime
	}
	seq := int64(math.MinInt64)
	for n := 1; n > 0; {
		n = 0
		err := tx.Each(ctx, func(rows *sql.Rows) error {
			n++
			var memoryID, markdown string
			if err := rows.Scan(&seq, &memoryID, &markdown); err != nil {
				return err
			}
			return add(-seq, contextTerms(memoryID, markdown))
		}, selectContextsToIndex, seq)
		if err != nil {
			return err
		}
	}
	return nil
}
