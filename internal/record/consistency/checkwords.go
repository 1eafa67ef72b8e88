package consistency

import (
	"context"
	"fmt"

	"cairn/internal/record"
	"cairn/internal/store"
	"cairn/internal/store/wordcheck"
)

// CheckWords reports records whose searchable words differ from their text, up to 20, and
// none in an intact store. It computes the words of every record again and changes
// nothing.
func CheckWords(ctx context.Context, tx *store.Tx) (findings []string, err error) {
	numbers := map[int64]int64{}
	rows, err := wordcheck.Differing(ctx, tx, wordcheck.Index{Table: "records_fts", Insert: record.InsertWords, Rows: func(ctx context.Context, tx *store.Tx, add func(args ...any) error) error {
		return record.EachOfAll(ctx, tx, func(r record.Stored) error {
			numbers[r.Key] = r.Number
			return add(record.WordsOf(r.Key, &r.Record)...)
		})
	}})
	for _, row := range rows {
		findings = append(findings, fmt.Sprintf("the searchable words of record %d are not those of its text", numbers[row]))
	}
	return findings, err
}
