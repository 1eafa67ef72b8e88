package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/mail"
	"cairn/internal/store"
)

// atUsage is the help of --at.
const atUsage = `as it was at a time (2026-11-20T14:00:00Z, "2026-11-20 14:00", "yesterday 14:00", "2h ago"; without a zone in the local one) or at #N, a position in the change log`

func atFlag(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "at", "", atUsage)
}

// sayMoment says of which moment an answer is, and what is not known of it.
func (f *answers) sayMoment(m store.Moment) {
	when := ""
	if !m.Time.IsZero() {
		when = m.Time.Local().Format(time.DateTime) + ", "
	}
	f.say("as of %schange #%d", when, m.Tick)
	if m.Note != "" {
		f.say("%s", m.Note)
	}
}

// pastOf returns a function that returns an answer about the past and says of which
// moment it is.
func pastOf[T any](past mail.Past[T], err error) func(f *answers) (any, error) {
	return func(f *answers) (any, error) {
		if err == nil {
			f.sayMoment(past.At)
		}
		return past, err
	}
}

// nowOrThen prints an answer with the same text whether it is of now or of the past.
func nowOrThen[T any](text func(io.Writer, T) error) func(io.Writer, any) error {
	return func(w io.Writer, v any) error {
		if past, ok := v.(mail.Past[T]); ok {
			return text(w, past.Result)
		}
		return text(w, v.(T))
	}
}
