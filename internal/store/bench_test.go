package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func durabilities() map[string]store.Sync {
	return map[string]store.Sync{"full": store.Full, "normal": store.Normal}
}

const (
	plainTable  = "CREATE TABLE plain (id INTEGER PRIMARY KEY, word TEXT NOT NULL)"
	plainInsert = "INSERT INTO plain (word) VALUES ('word')"
)

// BenchmarkPlainInsert is the reference: one row in a separate transaction, through the
// same driver without the store.
func BenchmarkPlainInsert(b *testing.B) {
	for name, sync := range map[string]string{"full": "FULL", "normal": "NORMAL"} {
		b.Run(name, func(b *testing.B) {
			db := storetest.Raw(b, filepath.Join(b.TempDir(), "plain.db"))
			storetest.RawExec(b, db, "PRAGMA journal_mode=WAL", "PRAGMA synchronous="+sync, plainTable)
			st, err := db.PrepareContext(b.Context(), plainInsert)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := st.ExecContext(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			if err := st.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkWrite writes the same row through Write, by one caller and by several concurrent
// callers that share commits.
func BenchmarkWrite(b *testing.B) {
	for name, durability := range durabilities() {
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/%d", name, callers), func(b *testing.B) {
				s := storetest.Open(b, store.Config{})
				storetest.Exec(b, s, plainTable)
				var n atomic.Int64
				var wg sync.WaitGroup
				b.ResetTimer()
				for range callers {
					wg.Go(func() {
						for n.Add(1) <= int64(b.N) {
							err := s.Write(b.Context(), durability, func(ctx context.Context, tx *store.Tx) error {
								_, err := tx.Exec(ctx, plainInsert)
								return err
							})
							if err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

// BenchmarkAppend appends one more change in a running transaction.
func BenchmarkAppend(b *testing.B) {
	s := storetest.Open(b, store.Config{})
	err := s.Write(b.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for b.Loop() {
			if err := storetest.Note(ctx, tx, "id"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkWriteOneChange writes a change in a separate transaction.
func BenchmarkWriteOneChange(b *testing.B) {
	for name, sync := range durabilities() {
		b.Run(name, func(b *testing.B) {
			s := storetest.Open(b, store.Config{})
			var n atomic.Int64
			for b.Loop() {
				if err := storetest.Write(b.Context(), s, sync, fmt.Sprint(n.Add(1))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpenClose measures the cost of every hook: as the only process, next to another
// process that has the store open, and with one small write.
func BenchmarkOpenClose(b *testing.B) {
	for _, beside := range []bool{false, true} {
		for _, writing := range []bool{false, true} {
			b.Run(fmt.Sprintf("beside=%v/writing=%v", beside, writing), func(b *testing.B) {
				s := storetest.Open(b, store.Config{})
				storetest.MustWrite(b, s, "a")
				if !beside {
					storetest.Closed(b, s)
				}
				for b.Loop() {
					h, err := open(b.Context(), store.Config{Path: s.Path(), Role: store.Hook})
					if err != nil {
						b.Fatal(err)
					}
					if writing {
						err = storetest.Write(b.Context(), h, store.Normal, "b")
					}
					if err := errors.Join(err, h.Close()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkReadOneRow(b *testing.B) {
	s := storetest.Open(b, store.Config{})
	storetest.MustWrite(b, s, "a")
	var id string
	for b.Loop() {
		err := s.Read(b.Context(), func(ctx context.Context, tx *store.Tx) error {
			return tx.Get(ctx, []any{&id}, "SELECT id FROM changes WHERE seq = 1")
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFullText ranks a word that occurs in every fourth of 20,000 rows.
func BenchmarkFullText(b *testing.B) {
	s := storetest.Open(b, store.Config{})
	storetest.Exec(b, s,
		`CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1)`,
		`INSERT INTO words (rowid, text) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
			SELECT i, printf('row%d common%d word%d of many', i, i % 4, i % 100) FROM n`,
	)
	b.ResetTimer()
	for b.Loop() {
		err := s.Read(b.Context(), func(ctx context.Context, tx *store.Tx) error {
			var id int64
			return tx.Get(ctx, []any{&id}, `SELECT rowid FROM words WHERE words MATCH 'common1' ORDER BY bm25(words) LIMIT 1`)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
