package items

import (
	"context"
	"database/sql"
	"strings"

	"cairn/internal/memory"
	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	metaUnlinked   = "memory.unlinked." // followed by the memory's id
	selectUnlinked = `SELECT v.title, (SELECT count(*) FROM memory_entries e WHERE e.memory_id = m.memory_id)
FROM memories m JOIN memory_vaults v ON v.vault_id = m.vault_id WHERE m.memory_id = ?`
)

// Unlinked is a memory that was shared by name until the hub assigned it to another repository.
type Unlinked struct {
	MemoryID string
	Vault    string // the title of its vault
	Project  string // the id of the project whose default memory it was here
	Entries  int64  // stored here
}

// Unlinked lists the memories that were shared by name and no longer have a project here.
func (b *Items) Unlinked(ctx context.Context) (out []Unlinked, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = nil
		notes, err := tx.MetaUnder(ctx, metaUnlinked)
		for _, note := range notes {
			if err != nil {
				return err
			}
			u := Unlinked{MemoryID: strings.TrimPrefix(note.Name, metaUnlinked), Project: note.Value}
			err = tx.Each(ctx, func(rows *sql.Rows) error {
				err := rows.Scan(&u.Vault, &u.Entries)
				out = append(out, u)
				return err
			}, selectUnlinked, u.MemoryID)
		}
		return err
	})
	return out, err
}

// noteUnlinked stores for Unlinked with which project a memory was shared.
func noteUnlinked(ctx context.Context, s *memory.CallTx, q project.Project) error {
	_, noted, err := s.Tx.Meta(ctx, metaUnlinked+s.Memory.MemoryID)
	if err != nil || noted {
		return err
	}
	return s.Tx.SetMeta(ctx, metaUnlinked+s.Memory.MemoryID, q.ID)
}
