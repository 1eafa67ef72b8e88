package command

import (
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/store"
)

// atUsage is the help of --at.
const atUsage = `show the state at a past time (2026-11-20T14:00:00Z, "2026-11-20 14:00", "yesterday 14:00", "2h ago"; local time if it has no zone) or at #N, a position in the change log`

// AtFlag adds the flag --at of a command that can show the past.
func AtFlag(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "at", "", atUsage)
}

// NoteMoment adds a note with the moment of a result, and with what is unknown about it.
func (f *Printer) NoteMoment(m store.Moment) {
	when := ""
	if !m.Time.IsZero() {
		when = m.Time.Local().Format(time.DateTime) + ", "
	}
	f.Note("as of %schange #%d", when, m.Tick)
	if m.Note != "" {
		f.Note("%s", m.Note)
	}
}
