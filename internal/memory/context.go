package memory

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// Document is a memory's context document. The result of a write has no Markdown. Conflicts is the
// number of versions that were not merged into the current one: see ContextHistory.
type Document struct {
	MemoryID  string `json:"memory_id"`
	SessionID string `json:"session_id"`
	UpdatedAt Time   `json:"updated_at"`
	Markdown  string `json:"markdown,omitempty"`
	Synced    bool   `json:"synced"`
	Conflicts int    `json:"conflicts,omitempty"`
}

// NewDocument contains the arguments of UpdateContext.
type NewDocument struct {
	MemoryID  string `json:"-" arg:"memory_id,required,nonempty"`                                                                            // a UUID or DefaultMemory
	SessionID string `json:"session_id" arg:"session_id,required,nonempty" about:"Id of the writing session, as recall and search show it."` // a UUID or a product session
	Markdown  string `json:"markdown" arg:"markdown,required,or=content" about:"The whole new document in Markdown, at most 5,000 characters."`
}

// contextDoc is the document of a put of a context. BaseID is the context that was current when
// this one was written, "" for none; nil in documents of older programs. SeenSeq is the highest
// hub_seq of the memory that its writer had seen. The hub sets ConflictWith to the context that
// was current there instead.
type contextDoc struct {
	Key       string `json:"key"`
	ContextID string `json:"contextId"`
	SessionID string `json:"sessionId"`
	Markdown  string `json:"markdown"`
	UpdatedAt Time   `json:"updatedAt"`
	Trace     string `json:"traceparent,omitempty"`

	BaseID       *string `json:"baseId,omitempty"`
	SeenSeq      int64   `json:"seenSeq,omitempty"`
	ConflictWith string  `json:"conflictWith,omitempty"`
}

func (d contextDoc) base() string {
	if d.BaseID == nil {
		return ""
	}
	return *d.BaseID
}

// Contexts of the same nanosecond, from concurrent writers, are in the order of the hub's numbers,
// so that all devices agree on the newest. Contexts without a number come last.
const (
	numberOfContext = `ifnull(c.hub_seq, 9223372036854775807)`
	newestContexts  = ` ORDER BY c.updated_ns DESC, ` + numberOfContext + ` DESC, c.seq DESC LIMIT 1`
	isNewerContext  = `(n.updated_ns, ifnull(n.hub_seq, 9223372036854775807), n.seq) > (c.updated_ns, ` + numberOfContext + `, c.seq)`
)

const (
	insertContext = `INSERT INTO memory_contexts (user_id, memory_id, session_id, updated_ns, markdown, context_id, synced, idempotency_key,
body_hash, hub_key, hub_seq, trace_id, change_seq, base_id, conflict_with, seen_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	selectSeen          = `SELECT max(seen_seq, pull_cursor) FROM memory_streams WHERE stream = ?`
	selectCurrentID     = `SELECT context_id FROM memory_contexts c WHERE memory_id = ?` + newestContexts
	updateContextNS     = `UPDATE memory_streams SET context_ns = max(context_ns, ?2) WHERE stream = ?1`
	selectNewestContext = `SELECT session_id, updated_ns, markdown, synced FROM memory_contexts c WHERE memory_id = ?` + newestContexts
	selectContextOfKey  = `SELECT session_id, updated_ns, synced, body_hash FROM memory_contexts WHERE hub_key = ?`
	updateContextSynced = `UPDATE memory_contexts SET synced = 1, hub_seq = ?2, updated_ns = ifnull(?3, updated_ns) WHERE change_seq = ?1`
	updateContextByKey  = `UPDATE memory_contexts SET synced = 1, hub_seq = ?2, updated_ns = ?3, conflict_with = ?4 WHERE context_id = ?1`
)

// UpdateContext replaces a memory's context document. The caller names no version. Between devices
// the version counts that was current when the document was written: of two documents with the
// same base, the hub keeps the first as the current one and the second as a version
// (ContextHistory).
//
// Errors: CodeInvalid, CodeContextTooLarge (the present document stays), CodeNotFound for a memory
// that is not the user's, CodeMismatch, those of the queue and the store.
func (b *Service) UpdateContext(ctx context.Context, c Caller, a NewDocument) (out Document, r WriteInfo, err error) {
	defer func(began time.Time) { b.acked(began, err) }(time.Now())
	memory, err := memoryArg(a.MemoryID)
	session, badSession := rules.SessionArg(a.SessionID, true)
	if err = firstError(err, badSession); err != nil {
		return out, r, err
	}
	shard, err := b.shardKey(ctx, c, memory)
	if err != nil {
		return out, r, err
	}
	invalidArg := rules.ValidateContext(a.Markdown, b.config.Settings.MaxContextChars)
	a.SessionID = session
	if invalidArg == nil {
		a.Markdown = b.redact(a.Markdown)
	}
	return mutate(ctx, b, c, call{body: a, shard: shard}, func(ctx context.Context, s *callTx) (step[Document], error) {
		err := s.openToWrite(ctx, memory, func() error { return firstError(s.c.may(Write), invalidArg) })
		return step[Document]{
			route:   route{"PUT", s.path("context")},
			earlier: func(n issued) (Document, bool, error) { return s.contextEarlier(ctx, n) },
			do:      func(n issued) (Document, error) { return s.putContext(ctx, a, n) },
		}, err
	})
}

// putContext stores and logs a context of the scope's memory.
func (s *callTx) putContext(ctx context.Context, a NewDocument, n issued) (Document, error) {
	out := Document{
		MemoryID: s.m.MemoryID, SessionID: a.SessionID, Synced: !s.u.hub(),
		UpdatedAt: max(Time(s.tx.Now().UnixNano()), Time(s.m.contextNS)+1),
	}
	id, base := rules.NewID(), ""
	var seen int64
	err := firstError(ignoreNone(s.tx.Get(ctx, []any{&base}, selectCurrentID, s.m.MemoryID)),
		ignoreNone(s.tx.Get(ctx, []any{&seen}, selectSeen, s.m.MemoryID)))
	if err != nil {
		return out, err
	}
	seq, err := s.log(ctx, KindContext, id, store.OpPut, contextDoc{
		Key: n.hub, ContextID: id, SessionID: a.SessionID, Markdown: a.Markdown, UpdatedAt: out.UpdatedAt, Trace: s.c.Trace, BaseID: &base, SeenSeq: seen,
	})
	if err != nil {
		return out, err
	}
	res, err := s.tx.Exec(ctx, insertContext, s.u.ID, out.MemoryID, out.SessionID, out.UpdatedAt, a.Markdown, id, out.Synced, n.key,
		n.hash, n.hub, nil, nullable(s.c.Trace), seq, nullable(base), nil, seen)
	if err == nil {
		err = indexInserted(ctx, s.tx, out.MemoryID, res, a.Markdown)
	}
	if err == nil {
		_, err = s.tx.Exec(ctx, updateContextNS, out.MemoryID, out.UpdatedAt)
	}
	return out, err
}

// contextEarlier returns the result from the row that a call with the same key created.
func (s *callTx) contextEarlier(ctx context.Context, n issued) (out Document, found bool, err error) {
	var hash []byte
	out.MemoryID = s.m.MemoryID
	err = s.tx.Get(ctx, []any{&out.SessionID, &out.UpdatedAt, &out.Synced, &hash}, selectContextOfKey, n.hub)
	if errors.Is(err, sql.ErrNoRows) {
		return out, false, nil
	}
	if err == nil && string(hash) != string(n.hash) {
		err = mismatch()
	}
	return out, err == nil, err
}

// GetContext returns the current context document of a memory, also while it is inflight. Errors:
// CodeNotFound with the message `context not found` if there is none, and for a memory that is
// not the user's.
func (b *Service) GetContext(ctx context.Context, c Caller, memory string) (out Document, err error) {
	memory, err = memoryArg(memory)
	if err = firstError(err, c.checkArgs()); err != nil {
		return out, err
	}
	err = b.readMemory(ctx, c, memory, func(ctx context.Context, s *callTx) error {
		d, found, err := s.context(ctx)
		if err == nil && !found {
			err = failure(fault.NotFound, CodeNotFound, "write one with update_context", "context not found")
		}
		out = d
		return err
	})
	return out, err
}

// context returns the current document of the scope's memory, if there is one.
func (s *callTx) context(ctx context.Context) (d Document, found bool, err error) {
	d.MemoryID = s.m.MemoryID
	err = s.tx.Get(ctx, []any{&d.SessionID, &d.UpdatedAt, &d.Markdown, &d.Synced}, selectNewestContext, s.m.MemoryID)
	if err == nil {
		err = s.tx.Get(ctx, []any{&d.Conflicts}, countConflicts, s.m.MemoryID)
		return d, true, err
	}
	return d, false, ignoreNone(err)
}
