package retrieval

import (
	"context"

	"cairn/internal/memory"
	"cairn/internal/store"
)

const (
	// The first step starts a merge of all segments, the others continue it.
	mergeAll     = `INSERT INTO memory_words (memory_words, rank) VALUES ('merge', -500)`
	mergeMore    = `INSERT INTO memory_words (memory_words, rank) VALUES ('merge', 500)`
	countChanges = `SELECT total_changes()`
)

// OptimizeIndex merges the segments of the index (memories §13.3), at a time without much load. It
// works in short transactions, may be stopped between them, and is idempotent.
func (b *Retrieval) OptimizeIndex(ctx context.Context) error {
	if b.Store == nil {
		return nil
	}
	for query, more := mergeAll, true; more; query = mergeMore {
		err := b.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
			var before, after int64
			if err := tx.Get(ctx, []any{&before}, countChanges); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, query); err != nil {
				return err
			}
			err := tx.Get(ctx, []any{&after}, countChanges)
			more = after-before > 1 // the statement itself counts as one
			return err
		})
		if err != nil {
			return memory.ToFault(err)
		}
	}
	return nil
}
