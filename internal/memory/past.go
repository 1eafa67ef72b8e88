package memory

import (
	"context"
	"encoding/json"
	"errors"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/words"
)

// PastDocument is the context document of a memory at a moment in the past. If there was none,
// only MemoryID and At are set, and At.Note has the reason. It is not known whether the hub had
// confirmed it then.
type PastDocument struct {
	MemoryID  string       `json:"memory_id"`
	ContextID string       `json:"context_id,omitempty"`
	SessionID string       `json:"session_id,omitempty"`
	UpdatedAt Time         `json:"updated_at,omitzero"`
	Markdown  string       `json:"markdown,omitempty"`
	At        store.Moment `json:"at"`
}

const (
	selectContextIDs = `SELECT context_id FROM memory_contexts c WHERE memory_id = ? ORDER BY c.updated_ns DESC, ` + numberOfContext + ` DESC, c.seq DESC`
	existsPurged     = `SELECT base_id IS NOT NULL FROM memory_contexts WHERE memory_id = ? ORDER BY updated_ns, seq LIMIT 1`
)

// GetContextAt returns the context that was the newest on this device at a moment (see
// words.ParseMoment).
//
// Errors: CodeInvalid for a text that is not a moment, and for the future; CodeNotFound for a
// memory that is not the user's.
func (b *Service) GetContextAt(ctx context.Context, c Caller, memory, at string) (out PastDocument, err error) {
	memory, err = memoryArg(memory)
	if err = firstError(err, c.checkArgs()); err != nil {
		return out, err
	}
	err = b.readMemory(ctx, c, memory, func(ctx context.Context, s *callTx) (err error) {
		out = PastDocument{MemoryID: s.m.MemoryID}
		if out.At, err = s.moment(ctx, at); err == nil {
			err = s.contextAt(ctx, &out)
		}
		return err
	})
	return out, err
}

// moment finds the moment that a caller named.
func (s *callTx) moment(ctx context.Context, text string) (m store.Moment, err error) {
	w, err := words.ParseMoment(text, s.tx.Now())
	if err == nil {
		m, err = s.tx.MomentOf(ctx, s.m.MemoryID, w.Time, w.Tick)
	}
	if fault.HasCode(err, words.CodeMoment) || fault.HasCode(err, store.CodeFuture) {
		f := fault.As(err)
		err = invalid("at", "at: %s", f.Message).WithHint(f.Hint)
	}
	return m, err
}

// contextAt fills in the newest context that had a document at out.At.
func (s *callTx) contextAt(ctx context.Context, out *PastDocument) error {
	ids, err := s.tx.Texts(ctx, selectContextIDs, s.m.MemoryID)
	if err != nil {
		return err
	}
	var d contextDoc
	found := errors.New("found")
	err = s.tx.DocumentsAt(ctx, out.At, s.m.MemoryID, KindContext, ids, func(doc json.RawMessage) error {
		if err := json.Unmarshal(doc, &d); err != nil {
			return err
		}
		return found
	})
	switch {
	case errors.Is(err, found):
		out.ContextID, out.SessionID, out.UpdatedAt, out.Markdown = d.ContextID, d.SessionID, d.UpdatedAt, d.Markdown
		return nil
	case err != nil || out.At.Note != "":
		return err
	}
	var purged bool
	err = ignoreNone(s.tx.Get(ctx, []any{&purged}, existsPurged, s.m.MemoryID))
	if out.At.Note = "no context had been written by then"; purged {
		out.At.Note = "the contexts of that time were purged"
	}
	return err
}
