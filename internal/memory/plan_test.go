package memory

import (
	"context"
	"database/sql"
	"regexp"
	"strings"
	"testing"

	"cairn/internal/store"
)

// TestHotStatementsSearchByAnIndexAndDoNotSort checks SQLite's query plans.
func TestHotStatementsSearchByAnIndexAndDoNotSort(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	// Sorting by the last terms only sorts rows with equal earlier terms.
	whole := regexp.MustCompile(`^(SCAN (e|s|m|c|f|p|memory_\w+|memories|changes)\b|USE TEMP B-TREE FOR (ORDER|GROUP|DISTINCT))`)
	for name, query := range map[string]string{
		"ready streams": selectReady, "failing streams": selectFailing, "next due": selectNextDue, "delayed": selectDelayed, "to be sent": selectToSend, "inflight": selectInflight, "newest": selectNewest,
		"oldest": selectOldest, "by key": selectByHub, "by id": selectByID, "by row": selectByRow, "memory": selectMemory,
		"context": selectNewestContext, "answer": selectAnswer, "pending": anyUnsettled, "own put": selectOwnPut,
	} {
		steps := 0
		err := d.store.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			args := make([]any, parameters(query))
			for i := range args {
				args[i] = 1
			}
			return tx.Each(ctx, func(r *sql.Rows) error {
				var id, parent, unused int
				var detail string
				err := r.Scan(&id, &parent, &unused, &detail)
				if steps++; whole.MatchString(detail) {
					t.Errorf("%s: %s", name, detail)
				}
				return err
			}, "EXPLAIN QUERY PLAN "+query, args...)
		})
		if err != nil || steps == 0 {
			t.Errorf("%s: %d steps, %v", name, steps, err)
		}
	}
}

// parameters returns the number of a statement's parameters.
func parameters(query string) int {
	for n := 9; n > 0; n-- {
		if strings.Contains(query, "?"+string(rune('0'+n))) {
			return n
		}
	}
	return strings.Count(query, "?")
}
