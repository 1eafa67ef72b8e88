package contents

import (
	"context"
	"database/sql"
	"fmt"

	"cairn/internal/memory"
)

// Document is a memory's context document. The result of a write has no Markdown. Conflicts is the
// number of versions that were not merged into the current one: see ContextHistory.
type Document struct {
	MemoryID  string      `json:"memory_id"`
	SessionID string      `json:"session_id"`
	UpdatedAt memory.Time `json:"updated_at"`
	Markdown  string      `json:"markdown,omitempty"`
	Synced    bool        `json:"synced"`
	Conflicts int         `json:"conflicts,omitempty"`
}

// ContextDoc is the document of a put of a context. BaseID is the context that was current when
// this one was written, "" for none; nil in documents of older programs. SeenSeq is the highest
// hub_seq of the memory that its writer had seen. The hub sets ConflictWith to the context that
// was current there instead.
type ContextDoc struct {
	Key       string      `json:"key"`
	ContextID string      `json:"contextId"`
	SessionID string      `json:"sessionId"`
	Markdown  string      `json:"markdown"`
	UpdatedAt memory.Time `json:"updatedAt"`
	Trace     string      `json:"traceparent,omitempty"`

	BaseID       *string `json:"baseId,omitempty"`
	SeenSeq      int64   `json:"seenSeq,omitempty"`
	ConflictWith string  `json:"conflictWith,omitempty"`
}

// Base returns BaseID, "" for none or if it is unknown.
func (d ContextDoc) Base() string {
	if d.BaseID == nil {
		return ""
	}
	return *d.BaseID
}

// Contexts of the same nanosecond, from concurrent writers, are in the order of the hub's numbers,
// so that all devices agree on the newest. Contexts without a number come last.
const (
	NumberOfContext = `ifnull(c.hub_seq, 9223372036854775807)`
	NewestContexts  = ` ORDER BY c.updated_ns DESC, ` + NumberOfContext + ` DESC, c.seq DESC LIMIT 1`
	IsNewerContext  = `(n.updated_ns, ifnull(n.hub_seq, 9223372036854775807), n.seq) > (c.updated_ns, ` + NumberOfContext + `, c.seq)`
)

const (
	insertContext = `INSERT INTO memory_contexts (user_id, memory_id, session_id, updated_ns, markdown, context_id, synced, idempotency_key,
body_hash, hub_key, hub_seq, trace_id, change_seq, base_id, conflict_with, seen_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	selectCurrentID     = `SELECT context_id FROM memory_contexts c WHERE memory_id = ?` + NewestContexts
	updateContextNS     = `UPDATE memory_streams SET context_ns = max(context_ns, ?2) WHERE stream = ?1`
	selectNewestContext = `SELECT session_id, updated_ns, markdown, synced FROM memory_contexts c WHERE memory_id = ?` + NewestContexts
)

// CurrentContextID returns the id of the current context, "" if there is none.
func CurrentContextID(ctx context.Context, s *memory.CallTx) (id string, err error) {
	err = memory.IgnoreNone(s.Tx.Get(ctx, []any{&id}, selectCurrentID, s.Memory.MemoryID))
	return id, err
}

// CurrentContext returns the current document of the scope's memory, if there is one.
func CurrentContext(ctx context.Context, s *memory.CallTx) (d Document, found bool, err error) {
	d.MemoryID = s.Memory.MemoryID
	err = s.Tx.Get(ctx, []any{&d.SessionID, &d.UpdatedAt, &d.Markdown, &d.Synced}, selectNewestContext, s.Memory.MemoryID)
	if err == nil {
		err = s.Tx.Get(ctx, []any{&d.Conflicts}, countConflicts, s.Memory.MemoryID)
		return d, true, err
	}
	return d, false, memory.IgnoreNone(err)
}

// ContextPlace is the state of a new context.
type ContextPlace struct {
	Key    string // the hub key
	HubSeq int64
	Synced bool
	Change int64 // of the log

	// Of a context that was written here.
	Idempotency string
	BodyHash    any // []byte; the nil interface, not a nil slice, means NULL in both drivers
}

// InsertContext stores and indexes a context of the scope's memory.
func InsertContext(ctx context.Context, s *memory.CallTx, d ContextDoc, at ContextPlace) error {
	res, err := InsertContextRow(ctx, s, d, at)
	if err == nil {
		err = indexInserted(ctx, s.Tx, s.Memory.MemoryID, res, d.Markdown)
	}
	return err
}

// InsertContextRow is InsertContext, but does not index the context.
func InsertContextRow(ctx context.Context, s *memory.CallTx, d ContextDoc, at ContextPlace) (sql.Result, error) {
	res, err := s.Tx.Exec(ctx, insertContext, s.User.UserID, s.Memory.MemoryID, d.SessionID, d.UpdatedAt, d.Markdown, d.ContextID, at.Synced,
		memory.Nullable(at.Idempotency), at.BodyHash, memory.Nullable(at.Key), memory.Number(at.HubSeq), memory.Nullable(d.Trace), at.Change,
		memory.Nullable(d.Base()), memory.Nullable(d.ConflictWith), d.SeenSeq)
	if err == nil {
		err = s.Exec(ctx, updateContextNS, s.Memory.MemoryID, d.UpdatedAt)
	}
	return res, err
}

// IsOpenConflict selects the contexts c with an open conflict. A conflict is open while its version
// is the last of its writer, and no later current version is by a writer who had seen it.
const IsOpenConflict = `c.conflict_with IS NOT NULL AND c.hub_seq > 0
AND NOT EXISTS (SELECT 1 FROM memory_contexts n WHERE n.memory_id = c.memory_id AND n.base_id = c.context_id)
AND NOT EXISTS (SELECT 1 FROM memory_contexts n WHERE n.memory_id = c.memory_id AND n.conflict_with IS NULL AND n.seen_seq >= c.hub_seq)`

const countConflicts = `SELECT count(*) FROM memory_contexts c WHERE c.memory_id = ? AND ` + IsOpenConflict

// ContextName returns the name of the nth context for callers.
func ContextName(n int64) string { return fmt.Sprint("context-", n) }
