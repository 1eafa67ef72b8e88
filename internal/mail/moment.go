package mail

import (
	"context"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/words"
)

// Past is an answer about a moment of the past: what the same question would have
// answered then, as far as the change log tells it. It writes nothing.
type Past[T any] struct {
	At     store.Moment `json:"at"`
	Result T            `json:"result"`
}

// rowSlack is how far the times in rows may lie before those of the changes that made
// them: a call begins, and its transaction ends. Where a clock was set back they may lie
// further off, by store.Skew. Rows narrow down which documents are read; the documents
// decide.
const rowSlack = Time(time.Minute)

// slack is how far times in rows may lie on the wrong side of the scope's moment.
func (s *callTx) slack(ctx context.Context) (Time, error) {
	skew, err := s.tx.Skew(ctx, s.at, Stream(s.p.UID))
	return rowSlack + Time(skew), err
}

// moment finds the moment that a caller named, and makes its time the call's.
//
// Errors: INVALID_TIMESTAMP for a text that names none, and for the future.
func (s *callTx) moment(ctx context.Context, text string) error {
	w, err := words.ParseMoment(text, s.tx.Now())
	if err == nil {
		s.at, err = s.tx.MomentOf(ctx, Stream(s.p.UID), w.Time, w.Tick)
	}
	if fault.HasCode(err, words.CodeMoment) || fault.HasCode(err, store.CodeFuture) {
		f := fault.As(err)
		return problemf(CodeTimestamp, "at: %s", printable(f.Message)).with("field", "at").with("provided", clip(text, 64)).hint(f.Hint)
	}
	if s.now = 0; !s.at.Time.IsZero() {
		s.now = timeOf(s.at.Time)
	}
	return err
}
