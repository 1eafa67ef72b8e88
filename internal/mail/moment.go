package mail

import (
	"context"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/words"
)

// Past is the result of a query as of a moment in the past, as far as the change log contains
// it. Such a query writes nothing.
type Past[T any] struct {
	At     store.Moment `json:"at"`
	Result T            `json:"result"`
}

// rowSlack is how much earlier the time in a row may be than the time of its change. It covers
// the time from the start of a call to the end of its transaction. A clock that was set back
// adds store.Skew. Rows only select the documents to read; the documents decide.
const rowSlack = Time(time.Minute)

// Slack returns how far times in rows may differ from the moment of the call.
func (s *CallTx) Slack(ctx context.Context) (Time, error) {
	skew, err := s.Tx.Skew(ctx, s.At, Stream(s.Project.UID))
	return rowSlack + Time(skew), err
}

// Moment parses the moment that a caller gave and sets s.At and s.Now to it.
//
// Errors: INVALID_TIMESTAMP for an invalid text and for the future.
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
