package entries

import (
	"context"
	"database/sql"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// Version is one version of a memory's context document.
type Version struct {
	ContextID    string      `json:"context_id"`
	SessionID    string      `json:"session_id"`
	UpdatedAt    memory.Time `json:"updated_at"`
	Markdown     string      `json:"markdown"`
	Synced       bool        `json:"synced"`
	Current      bool        `json:"current"`                 // what get_context returns
	BaseID       string      `json:"base_id,omitempty"`       // the version on which it is based; "" for none or unknown
	ConflictWith string      `json:"conflict_with,omitempty"` // the version that stayed current when this one arrived at the hub
	Open         bool        `json:"open,omitempty"`          // it has a conflict, and no later version has replaced the current one
}

// Versions is a list of versions. The array is never nil.
type Versions struct {
	MemoryID string    `json:"memory_id"`
	Versions []Version `json:"versions"`
	Count    int       `json:"count"`
}

// ContextConflict is a version of a context that did not become current and is not merged yet.
type ContextConflict struct {
	MemoryID     string      `json:"memory_id"`
	ContextID    string      `json:"context_id"`
	UpdatedAt    memory.Time `json:"updated_at"`
	ConflictWith string      `json:"conflict_with"`
}

const (
	selectConflicts = `SELECT c.memory_id, c.context_id, c.updated_ns, c.conflict_with FROM memory_contexts c WHERE c.user_id = ? AND ` + contents.IsOpenConflict + ` ORDER BY c.seq`
	selectVersions  = `SELECT context_id, session_id, updated_ns, markdown, synced, ifnull(base_id, ''), ifnull(conflict_with, ''), ` + contents.IsOpenConflict + `
FROM memory_contexts c WHERE memory_id = ? AND user_id = ? ORDER BY ` + contents.NumberOfContext + ` DESC, seq DESC LIMIT +?`
)

// ContextHistory lists the versions of a memory's context on this device in the order of the hub,
// newest first. limit is that of lists. It also lists the contexts of a memory that another device
// has deleted, if they were never sent. CodeNotFound if there is no version.
func (b *Entries) ContextHistory(ctx context.Context, c memory.Caller, memoryID string, limit int64) (out Versions, err error) {
	err = b.bypass(ctx, c, memoryID, func(ctx context.Context, s *memory.CallTx) error {
		out = Versions{MemoryID: s.Memory.MemoryID, Versions: []Version{}}
		current, err := contents.CurrentContextID(ctx, s)
		if err != nil {
			return err
		}
		return s.Tx.Each(ctx, func(rows *sql.Rows) error {
			var v Version
			err := rows.Scan(&v.ContextID, &v.SessionID, &v.UpdatedAt, &v.Markdown, &v.Synced, &v.BaseID, &v.ConflictWith, &v.Open)
			v.Current = v.ContextID == current
			out.Versions = append(out.Versions, v)
			return err
		}, selectVersions, s.Memory.MemoryID, s.User.UserID, clampLimit(limit))
	})
	if out.Count = len(out.Versions); err == nil && out.Count == 0 {
		err = rules.Failure(fault.NotFound, memory.CodeNotFound, "write one with update_context", "context not found")
	}
	return out, err
}

// Conflicts lists a user's versions of contexts that are not merged yet, oldest first.
func (b *Entries) Conflicts(ctx context.Context, user string) (out []ContextConflict, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = nil
		return tx.Each(ctx, func(rows *sql.Rows) error {
			var x ContextConflict
			err := rows.Scan(&x.MemoryID, &x.ContextID, &x.UpdatedAt, &x.ConflictWith)
			out = append(out, x)
			return err
		}, selectConflicts, user)
	})
	return out, err
}
