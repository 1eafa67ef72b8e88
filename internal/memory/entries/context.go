package entries

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// NewDocument contains the arguments of UpdateContext.
type NewDocument struct {
	MemoryID  string `json:"-" arg:"memory_id,required,nonempty"`                                                                            // a UUID or DefaultMemory
	SessionID string `json:"session_id" arg:"session_id,required,nonempty" about:"Id of the writing session, as recall and search show it."` // a UUID or a product session
	Markdown  string `json:"markdown" arg:"markdown,required,or=content" about:"The whole new document in Markdown, at most 5,000 characters."`
}

const (
	selectSeen         = `SELECT max(seen_seq, pull_cursor) FROM memory_streams WHERE stream = ?`
	selectContextOfKey = `SELECT session_id, updated_ns, synced, body_hash FROM memory_contexts WHERE hub_key = ?`
)

// UpdateContext replaces a memory's context document. The caller names no version. Between devices
// the version counts that was current when the document was written: of two documents with the
// same base, the hub keeps the first as the current one and the second as a version
// (ContextHistory).
//
// Errors: CodeInvalid, CodeContextTooLarge (the present document stays), CodeNotFound for a memory
// that is not the user's, CodeMismatch, those of the queue and the store.
func (b *Entries) UpdateContext(ctx context.Context, c memory.Caller, a NewDocument) (out contents.Document, r memory.WriteInfo, err error) {
	defer func(began time.Time) { b.Acked(began, err) }(time.Now())
	memoryID, err := memory.MemoryArg(a.MemoryID)
	session, badSession := rules.SessionArg(a.SessionID, true)
	if err = cmp.Or(err, badSession); err != nil {
		return out, r, err
	}
	shard, err := b.ShardKey(ctx, c, memoryID)
	if err != nil {
		return out, r, err
	}
	invalidArg := rules.ValidateContext(a.Markdown, b.Config.Settings.MaxContextChars)
	a.SessionID = session
	if invalidArg == nil {
		a.Markdown = b.Redact(a.Markdown)
	}
	return memory.Mutate(ctx, b.Kernel, c, memory.Call{Body: a, Shard: shard}, func(ctx context.Context, s *memory.CallTx) (memory.Step[contents.Document], error) {
		err := s.OpenToWrite(ctx, memoryID, func() error { return cmp.Or(s.Caller.May(memory.Write), invalidArg) })
		return memory.Step[contents.Document]{
			Route:   memory.Route{Method: "PUT", Path: s.Path("context")},
			Earlier: func(n memory.Issued) (contents.Document, bool, error) { return contextEarlier(ctx, s, n) },
			Do:      func(n memory.Issued) (contents.Document, error) { return putContext(ctx, s, a, n) },
		}, err
	})
}

// putContext stores and logs a context of the scope's memory.
func putContext(ctx context.Context, s *memory.CallTx, a NewDocument, n memory.Issued) (contents.Document, error) {
	out := contents.Document{
		MemoryID: s.Memory.MemoryID, SessionID: a.SessionID, Synced: !s.User.IsJoined(),
		UpdatedAt: max(memory.Time(s.Tx.Now().UnixNano()), memory.Time(s.Memory.ContextNS)+1),
	}
	base, err := contents.CurrentContextID(ctx, s)
	doc := contents.ContextDoc{
		Key: n.Hub, ContextID: rules.NewID(), SessionID: a.SessionID, Markdown: a.Markdown, UpdatedAt: out.UpdatedAt, Trace: s.Caller.Trace, BaseID: &base,
	}
	if err == nil {
		err = memory.IgnoreNone(s.Tx.Get(ctx, []any{&doc.SeenSeq}, selectSeen, s.Memory.MemoryID))
	}
	if err != nil {
		return out, err
	}
	seq, err := s.Log(ctx, memory.KindContext, doc.ContextID, store.OpPut, doc)
	if err != nil {
		return out, err
	}
	return out, contents.InsertContext(ctx, s, doc, contents.ContextPlace{Key: n.Hub, Synced: out.Synced, Change: seq, Idempotency: n.Key, BodyHash: n.Hash})
}

// contextEarlier returns the result from the row that a call with the same key created.
func contextEarlier(ctx context.Context, s *memory.CallTx, n memory.Issued) (out contents.Document, found bool, err error) {
	var hash []byte
	out.MemoryID = s.Memory.MemoryID
	err = s.Tx.Get(ctx, []any{&out.SessionID, &out.UpdatedAt, &out.Synced, &hash}, selectContextOfKey, n.Hub)
	if errors.Is(err, sql.ErrNoRows) {
		return out, false, nil
	}
	if err == nil && string(hash) != string(n.Hash) {
		err = memory.Mismatch()
	}
	return out, err == nil, err
}

// GetContext returns the current context document of a memory, also while it is inflight. Errors:
// CodeNotFound with the message `context not found` if there is none, and for a memory that is
// not the user's.
func (b *Entries) GetContext(ctx context.Context, c memory.Caller, memoryID string) (out contents.Document, err error) {
	memoryID, err = memory.MemoryArg(memoryID)
	if err = cmp.Or(err, c.CheckArgs()); err != nil {
		return out, err
	}
	err = b.ReadMemory(ctx, c, memoryID, func(ctx context.Context, s *memory.CallTx) error {
		d, found, err := contents.CurrentContext(ctx, s)
		if err == nil && !found {
			err = rules.Failure(fault.NotFound, memory.CodeNotFound, "write one with update_context", "context not found")
		}
		out = d
		return err
	})
	return out, err
}
