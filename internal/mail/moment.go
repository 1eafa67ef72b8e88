package mail

import (
	"context"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/words"
)

// Past is an answer about a moment of the past: what the same question would have
// answered then, as far as the change log contains it. It writes nothing.
type Past[T any] struct {
	At     store.Moment `json:"at"`
	Result T            `json:"result"`
}

// rowSlack is how far the times in rows may lie before those of the changes that made
// them: a call begins, and its transaction ends. Where a clock was set back they may lie
// further off, by store.Skew. Rows narrow down which documents are read; the documents
// decide.
const rowSlack = Time(time.Minute)

// Slack returns how far times in rows may differ from the moment that the call asks about.
func (s *CallTx) Slack(ctx context.Context) (Time, error) {
	skew, err := s.Tx.Skew(ctx, s.At, Stream(s.Project.UID))
	return rowSlack + Time(skew), err
}

// Moment finds the moment that a caller named, and makes its time the call's.
//
// Errors: INVALID_TIMESTAMP for a text that names none, and for the future.
func (s *CallTx) Moment(ctx context.Context, text string) error {
	w, err := words.ParseMoment(text, s.Tx.Now())
	if err == nil {
		s.At, err = s.Tx.MomentOf(ctx, Stream(s.Project.UID), w.Time, w.Tick)
	}
	if fault.HasCode(err, words.CodeMoment) || fault.HasCode(err, store.CodeFuture) {
		f := fault.As(err)
		return Errorf(CodeTimestamp, "at: %s", Printable(f.Message)).With("field", "at").With("provided", Clip(text, 64)).Hint(f.Hint)
	}
	if s.Now = 0; !s.At.Time.IsZero() {
		s.Now = TimeOf(s.At.Time)
	}
	return err
}
