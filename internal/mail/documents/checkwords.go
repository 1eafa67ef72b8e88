package documents

import (
	"context"
	"database/sql"
	"fmt"

	"cairn/internal/store"
	"cairn/internal/store/wordcheck"
)

const (
	selectAllIndexed = `SELECT id, subject, body_md FROM mail_messages ORDER BY id`
	insertWords      = `INSERT INTO mail_fts (rowid, subject, body) VALUES (?, ?, ?)`
)

// CheckWords reports up to 20 messages whose words in the index differ from those of their text.
// An intact store has none. It indexes every message again for comparison and changes nothing.
func CheckWords(ctx context.Context, tx *store.Tx) (findings []string, err error) {
	rows, err := wordcheck.Differing(ctx, tx, wordcheck.Index{Table: "mail_fts", Insert: insertWords, Rows: func(ctx context.Context, tx *store.Tx, add func(args ...any) error) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var id int64
			var subject, body string
			if err := r.Scan(&id, &subject, &body); err != nil {
				return err
			}
			return add(id, subject, body)
		}, selectAllIndexed)
	}})
	for _, row := range rows {
		findings = append(findings, fmt.Sprintf("the searchable words of message %d are not those of its text", row))
	}
	return findings, err
}
