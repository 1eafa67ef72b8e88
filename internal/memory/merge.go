package memory

import (
	"context"
	"database/sql"

	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	selectDefaults = `SELECT memory_id, user_id, vault_id, memory_type, title, description, creation_ns FROM memories
WHERE project_key = ? AND deleting_seq IS NULL ORDER BY user_id, creation_ns, memory_id`

	// A user's default memory of the second project remains its default memory, unless it is
	// being deleted.
	moveDefaults = `UPDATE memories SET project_key = ?2 WHERE project_key = ?1 AND NOT EXISTS (SELECT 1 FROM memories o
WHERE o.project_key = ?2 AND o.user_id = memories.user_id AND o.deleting_seq IS NULL)`
	freeDefaults = `UPDATE memories SET project_key = NULL WHERE project_key = ?`
)

// DefaultsOf returns the default memories of a project, at most one for each user.
func DefaultsOf(ctx context.Context, tx *store.Tx, q project.Project) (out []Memory, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var m Memory
		err := rows.Scan(&m.MemoryID, &m.ActorID, &m.VaultID, &m.MemoryType, &m.Title, &m.Description, &m.CreationTime)
		out = append(out, m)
		return err
	}, selectDefaults, q.Key)
	return out, err
}

// MoveRows gives the default memory of a project to the one that takes it over; for
// project.Merge. If both have one, the memory of into stays its default memory, and the
// memory of from becomes a memory like any other: its entries stay where they are, and
// lists show it. DefaultsOf returns beforehand which memories these are. MoveRows is
// idempotent.
func MoveRows(ctx context.Context, tx *store.Tx, from, into project.Project) error {
	if _, err := tx.Exec(ctx, moveDefaults, from.Key, into.Key); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, freeDefaults, from.Key)
	return err
}
