package project

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/store"
)

// TestStatementsOfTheHookScanNoTable checks SQLite's query plans for every hook call and
// every new session.
func TestStatementsOfTheHookScanNoTable(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "cairn.db")})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for name, statement := range map[string]string{
			"seen": selectSeen, "session": selectSession, "process": selectByProcess, "name": selectByName,
			"checkout": selectCheckout, "key": selectKeyOwner, "last seen": updateLastSeen, "merge": moveSessions,
		} {
			args := make([]any, countParameters(statement))
			err := tx.Each(ctx, func(r *sql.Rows) error {
				var id, parent, unused int
				var detail string
				err := r.Scan(&id, &parent, &unused, &detail)
				if strings.HasPrefix(detail, "SCAN") && !strings.Contains(detail, "VIRTUAL TABLE") {
					t.Errorf("%s: %s", name, detail)
				}
				return err
			}, "EXPLAIN QUERY PLAN "+statement, args...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func countParameters(statement string) int {
	if strings.Contains(statement, "?1") {
		return 1
	}
	return strings.Count(statement, "?")
}
