package vaults

import (
	"context"

	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	// A user's default memory of the second project remains its default memory, unless it is
	// being deleted.
	moveDefaults = `UPDATE memories SET project_key = ?2 WHERE project_key = ?1 AND NOT EXISTS (SELECT 1 FROM memories o
WHERE o.project_key = ?2 AND o.user_id = memories.user_id AND o.deleting_seq IS NULL)`
	freeDefaults = `UPDATE memories SET project_key = NULL WHERE project_key = ?`
)

// MoveRows gives the default memory of a project to the project that it is merged into; for
// project.Merge. If both have one, the memory of into stays its default memory, and the memory of
// from becomes an ordinary memory: it keeps its entries, and lists show it. MoveRows is idempotent.
func MoveRows(ctx context.Context, tx *store.Tx, from, into project.Project) error {
	if _, err := tx.Exec(ctx, moveDefaults, from.Key, into.Key); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, freeDefaults, from.Key)
	return err
}
