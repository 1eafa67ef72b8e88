package entries

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
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
	UpdatedAt memory.Time  `json:"updated_at,omitzero"`
	Markdown  string       `json:"markdown,omitempty"`
	At        store.Moment `json:"at"`
}

const (
	selectContextIDs = `SELECT context_id FROM memory_contexts c WHERE memory_id = ? ORDER BY c.updated_ns DESC, ` + contents.NumberOfContext + ` DESC, c.seq DESC`
	existsPurged     = `SELECT base_id IS NOT NULL FROM memory_contexts WHERE memory_id = ? ORDER BY updated_ns, seq LIMIT 1`
)

// GetContextAt returns the context that was the newest on this device at a moment (see
// words.ParseMoment).
//
// Errors: CodeInvalid for a text that is not a moment, and for the future; CodeNotFound for a
// memory that is not the user's.
func (b *Entries) GetContextAt(ctx context.Context, c memory.Caller, memoryID, at string) (out PastDocument, err error) {
	memoryID, err = memory.MemoryArg(memoryID)
	if err = cmp.Or(err, c.CheckArgs()); err != nil {
		return out, err
	}
	err = b.ReadMemory(ctx, c, memoryID, func(ctx context.Context, s *memory.CallTx) (err error) {
		out = PastDocument{MemoryID: s.Memory.MemoryID}
		if out.At, err = moment(ctx, s, at); err == nil {
			err = contextAt(ctx, s, &out)
		}
		return err
	})
	return out, err
}

// moment finds the moment that a caller named.
func moment(ctx context.Context, s *memory.CallTx, text string) (m store.Moment, err error) {
	w, err := words.ParseMoment(text, s.Tx.Now())
	if err == nil {
		m, err = s.Tx.MomentOf(ctx, s.Memory.MemoryID, w.Time, w.Tick)
	}
	if fault.HasCode(err, words.CodeMoment) || fault.HasCode(err, store.CodeFuture) {
		f := fault.As(err)
		err = fault.As(rules.Invalid("at", "at: %s", f.Message)).WithHint(f.Hint)
	}
	return m, err
}

// contextAt fills in the newest context that had a document at out.At.
func contextAt(ctx context.Context, s *memory.CallTx, out *PastDocument) error {
	ids, err := s.Tx.Texts(ctx, selectContextIDs, s.Memory.MemoryID)
	if err != nil {
		return err
	}
	var d contents.ContextDoc
	found := errors.New("found")
	err = s.Tx.DocumentsAt(ctx, out.At, s.Memory.MemoryID, memory.KindContext, ids, func(doc json.RawMessage) error {
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
	err = memory.IgnoreNone(s.Tx.Get(ctx, []any{&purged}, existsPurged, s.Memory.MemoryID))
	if out.At.Note = "no context had been written by then"; purged {
		out.At.Note = "the contexts of that time were purged"
	}
	return err
}
