package store

import (
	"context"
	"database/sql"
)

// QuickCheck runs SQLite's quick check, which reads every page once and compares no index
// with its table. An intact store has no findings. It uses a new connection, because a
// used one caches pages.
func (s *Store) QuickCheck(ctx context.Context) (found []string, err error) {
	err = s.readApart(ctx, func(ctx context.Context, tx *Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var line string
			err := r.Scan(&line)
			if line != "ok" {
				found = append(found, "sqlite: "+line)
			}
			return err
		}, `PRAGMA quick_check(20)`)
	})
	s.damages.Add(int64(len(found)))
	return found, err
}

// Damages returns how often damage was found since the store was opened: by reads, by
// writes, and by QuickCheck. It is 0 for an intact store.
func (s *Store) Damages() int64 { return s.damages.Load() }

// Schema reads the number of the store's schema from the open store.
func (s *Store) Schema(ctx context.Context) (version int, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *Tx) error {
		return tx.Get(ctx, []any{&version}, `PRAGMA user_version`)
	})
	return version, err
}

// IsOlder reports whether the open store has an older schema. Only a store opened with
// ReadOnly can have one.
func (s *Store) IsOlder(ctx context.Context) (bool, error) {
	version, err := s.Schema(ctx)
	return version < newest(), err
}
