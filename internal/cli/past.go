package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/mail"
	"cairn/internal/store"
)

// atUsage is the help of --at.
const atUsage = `show the state at a past time (2026-11-20T14:00:00Z, "2026-11-20 14:00", "yesterday 14:00", "2h ago"; local time if it has no zone) or at #N, a position in the change log`

func atFlag(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "at", "", atUsage)
}

// noteMoment adds a note with the moment of a result, and with what is unknown about it.
func (f *resultPrinter) noteMoment(m store.Moment) {
	when := ""
	if !m.Time.IsZero() {
		when = m.Time.Local().Format(time.DateTime) + ", "
	}
	f.note("as of %schange #%d", when, m.Tick)
	if m.Note != "" {
		f.note("%s", m.Note)
	}
}

// pastOf returns a function that returns a result from the past and notes its moment.
func pastOf[T any](past mail.Past[T], err error) func(f *resultPrinter) (any, error) {
	return func(f *resultPrinter) (any, error) {
		if err == nil {
			f.noteMoment(past.At)
		}
		return past, err
	}
}

// nowOrThen prints a result with the same function, whether it is current or from the
// past.
func nowOrThen[T any](text func(io.Writer, T) error) func(io.Writer, any) error {
	return func(w io.Writer, v any) error {
		if past, ok := v.(mail.Past[T]); ok {
			return text(w, past.Result)
		}
		return text(w, v.(T))
	}
}
