package lookup

import (
	"context"
	"database/sql"
	"regexp"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// SQLite's query plan may only search tables, by an index.
func TestTouchedRecordsAreFoundWithoutReadingTheLog(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	steps := 0
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var id, parent, unused int
			var detail string
			err := r.Scan(&id, &parent, &unused, &detail)
			if steps++; regexp.MustCompile(`^SCAN (c|a|p|s|symbols|projects|sessions|changes|activations)\b`).MatchString(detail) {
				t.Error(detail)
			}
			return err
		}, "EXPLAIN QUERY PLAN "+selectTouched, "p", "s", 1)
	})
	if err != nil || steps == 0 {
		t.Errorf("%d steps, %v", steps, err)
	}
}
