package retrieval_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/retrieval"
	"cairn/internal/redact"
	"cairn/internal/store"
	"cairn/internal/store/follow"
	"cairn/internal/store/storetest"
)

// picky is an embedder that refuses odd texts until a folder contains a file "repaired".
func picky(t testing.TB, dir string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		_, unmended := os.Stat(filepath.Join(dir, "mended"))
		var data []any
		for i, text := range body.Input {
			if unmended != nil && strings.Contains(text, "odd") {
				http.Error(w, "too odd", http.StatusUnprocessableEntity)
				return
			}
			data = append(data, map[string]any{"index": i, "embedding": []float32{float32(len(text)), 1}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(s.Close)
	return s
}

// serviceOver returns a service for a store, with an embedder at an address, or without one
// for "".
func serviceOver(t testing.TB, s *store.Store, embedder string) *memories.Service {
	c := memory.Config{Settings: memory.Defaults(), Filter: memorytest.Must(redact.New(redact.Options{}))(t)}
	c.Settings.EmbedURL = embedder
	return memories.New(s, c)
}

// TestTheEmbedderIsAFollower checks all guarantees of followers.
func TestTheEmbedderIsAFollower(t *testing.T) {

	put := func(t testing.TB, s *store.Store, text string) {
		t.Helper()
		b := serviceOver(t, s, "")
		if _, _, err := b.AddEntry(t.Context(), memory.Caller{ProjectID: "p"}, contents.NewEntry{MemoryID: memory.DefaultMemory, RawEntry: text}); err != nil {
			t.Fatal(err)
		}
	}
	storetest.RunFollower(t, storetest.Subject{
		New: func(t testing.TB, s *store.Store, dir string) (follow.Follower, func() error) {
			return serviceOver(t, s, picky(t, dir).URL+"/v1/embeddings").Follower(), nil
		},
		Prepare: func(t testing.TB, s *store.Store) { put(t, s, "the first") },
		Write:   func(t testing.TB, s *store.Store, n int) { put(t, s, strings.Repeat("x", n)) },
		Waits: func(t testing.TB, s *store.Store, _ string) int64 {
			lag, err := follow.Lag(t.Context(), s, retrieval.EmbedFollower)
			if err != nil {
				t.Fatal(err)
			}
			return lag
		},
		State: func(t testing.TB, s *store.Store, _ string) string {
			var b strings.Builder
			err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return tx.Each(ctx, func(r *sql.Rows) error {
					var text, vector string
					err := r.Scan(&text, &vector)
					fmt.Fprintf(&b, "%s: %s\n", text, vector)
					return err
				}, `SELECT raw_entry, ifnull(hex(vector), '') FROM memory_entries LEFT JOIN memory_vectors USING (key) ORDER BY key`)
			})
			if err != nil {
				t.Fatal(err)
			}
			return b.String()
		},
		Reset: func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `DELETE FROM memory_vectors`)
			return err
		},
		Refused: func(t testing.TB, s *store.Store) { put(t, s, "an odd text") },
		Repair: func(t testing.TB, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "mended"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	})
}
