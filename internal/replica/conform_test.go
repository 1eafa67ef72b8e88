package replica_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/hub"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/rules"
	"cairn/internal/replica"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// conforming is a device over a store, with a hub of its own whose database is in a folder.
type conforming struct {
	*memories.Service
	me  memory.User
	hub *hub.Hub
}

// conform opens the hub in a folder. The device joins it if it has joined none.
func conform(t testing.TB, s *store.Store, dir string) *conforming {
	t.Helper()
	h, err := hub.Open(t.Context(), hub.Config{Database: "sqlite:" + filepath.Join(dir, "hub.db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c := &conforming{Service: memories.New(s, memory.Config{}), hub: h}
	if c.me, err = c.Whoami(t.Context(), memory.Caller{}); err != nil {
		t.Fatal(err)
	}
	if c.me.HubURL == "" {
		err = c.Join(t.Context(), c.me.UserID, "https://hub.test", rules.NewID(), true)
	}
	if err == nil {
		c.me, err = c.Whoami(t.Context(), memory.Caller{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// front serves the hub, which refuses odd entries before a folder has a file "mended". Each
// push is a piece of work: if it fails, the device hears that the hub has failed.
func (c *conforming) front(t testing.TB, dir string, around func(work func() error) error) http.Handler {
	o := &office{TB: t, hub: c.hub, inner: c.hub.Handler("test"), item: func(it replica.Item) int {
		if _, unmended := os.Stat(filepath.Join(dir, "mended")); unmended != nil && strings.Contains(rawOf(it), "odd") {
			return http.StatusUnprocessableEntity
		}
		return 0
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != replica.PathPush {
			o.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		err := around(func() error {
			if o.ServeHTTP(answer, r); answer.Code != http.StatusOK {
				return errors.New(answer.Body.String())
			}
			return nil
		})
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": replica.Error{Code: "internal", Message: err.Error()}})
			return
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// TestTheReplicationIsAFollower keeps all that followers promise.
func TestTheReplicationIsAFollower(t *testing.T) {
	put := func(t testing.TB, s *store.Store, text string) {
		t.Helper()
		b := memories.New(s, memory.Config{})
		if _, _, err := b.AddEntry(t.Context(), memory.Caller{ProjectID: "p"}, contents.NewEntry{MemoryID: memory.DefaultMemory, RawEntry: text}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(t testing.TB, s *store.Store, query string) (out []string) {
		t.Helper()
		err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			out, err = tx.Texts(ctx, query)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	storetest.RunFollower(t, storetest.Subject{
		Start: func(t testing.TB, s *store.Store, dir string, around func(work func() error) error) func(ctx context.Context) error {
			c := conform(t, s, dir)
			server := httptest.NewServer(c.front(t, dir, around))
			_, secret, err := c.hub.CreateToken(t.Context(), hub.TokenArgs{UserID: c.me.HubUser})
			if err != nil {
				t.Fatal(err)
			}
			client, err := replica.NewClient(server.URL, secret, 5*time.Second, false)
			if err != nil {
				t.Fatal(err)
			}
			one := replica.New(replica.Config{Store: s, Book: c.Service, User: c.me.UserID, Generation: c.me.Generation, Client: client, Batch: 3})
			return func(ctx context.Context) error {
				err := one.Run(ctx)
				c.hub.Stop()
				server.CloseClientConnections()
				server.Close()
				return errors.Join(err, c.Stop(context.Background()), c.hub.Close())
			}
		},
		Prepare: func(t testing.TB, s *store.Store) { put(t, s, "first") },
		Write:   func(t testing.TB, s *store.Store, n int) { put(t, s, fmt.Sprint("text", n)) },
		Waits: func(t testing.TB, s *store.Store, _ string) int64 {
			return int64(len(read(t, s, `SELECT stream FROM memory_streams WHERE head_seq > acked_seq UNION ALL SELECT raw_entry FROM memory_entries e
WHERE synced = 0 AND seq NOT IN (SELECT seq FROM set_aside)`)))
		},
		State: func(t testing.TB, s *store.Store, dir string) string {
			c := conform(t, s, dir)
			who := hub.Identity{UserID: c.me.HubUser, Level: hub.LevelAdmin}
			var out strings.Builder
			for _, id := range read(t, s, `SELECT memory_id FROM memories ORDER BY memory_id`) {
				answer, err := c.hub.Entries(t.Context(), who, hub.EntriesArgs{Memory: id, Limit: 1000})
				if err != nil {
					fmt.Fprintln(&out, err)
				}
				for _, doc := range answer.Entries {
					var e struct{ EntryID, RawEntry string }
					if err := json.Unmarshal(doc, &e); err != nil {
						t.Fatal(err)
					}
					fmt.Fprintln(&out, "at the hub", e.EntryID, e.RawEntry)
				}
			}
			for _, row := range read(t, s, `SELECT ifnull(entry_id, '-') || ' ' || raw_entry || ' ' || synced FROM memory_entries ORDER BY key`) {
				fmt.Fprintln(&out, "here", row)
			}
			if err := errors.Join(c.Stop(context.Background()), c.hub.Close()); err != nil {
				t.Fatal(err)
			}
			return out.String()
		},
		Reset: func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE memory_streams SET acked_seq = 0, sent_seq = 0, pull_cursor = 0, seen_seq = 0, remote_id = NULL`)
			return err
		},
		Refused: func(t testing.TB, s *store.Store) { put(t, s, "an odd text") },
		Repair: func(t testing.TB, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "mended"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		Retry: func(t testing.TB, s *store.Store) {
			if n, err := memories.New(s, memory.Config{}).Retry(t.Context(), memory.Caller{}, nil); n != 1 || err != nil {
				t.Errorf("retried: %d, %v", n, err)
			}
		},
	})
}
