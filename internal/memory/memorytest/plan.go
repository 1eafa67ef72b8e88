package memorytest

import (
	"context"
	"database/sql"
	"regexp"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// NoScans checks SQLite's query plans of statements, by name: each searches by an index and does
// not sort.
func NoScans(t *testing.T, statements map[string]string) {
	t.Helper()
	s := storetest.Open(t, store.Config{})
	// Sorting by the last terms only sorts rows with equal earlier terms.
	whole := regexp.MustCompile(`^(SCAN (e|s|m|c|f|p|memory_\w+|memories|changes)\b|USE TEMP B-TREE FOR (ORDER|GROUP|DISTINCT))`)
	for name, query := range statements {
		steps := 0
		err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
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
