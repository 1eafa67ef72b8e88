package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/store"
)

func purgeCommand(p *Process) *cobra.Command {
	var a observation.PurgeArgs
	var before string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Forget observations for good, also on the disk",
		Long: `purge deletes every observation that matches all the filters given, pinned ones
too, and takes their text off the disk: out of the store, the search index, the
write-ahead log and the backups that cairn made by itself. Without --confirm it
only counts.

What was purged does not come back: neither a later import nor a late hook stores
it again, unless you say ` + "`cairn import --include-purged`" + `. The transcripts of
your agents are not touched, they are not cairn's; nor are files that you exported.

If another process reads the store all the while, purge exits 1 and says so: the
rows are gone then, and the next purge or sweep clears the bytes.`,
		Example: `  cairn purge --search '"customer list"'
  cairn purge --session 0b5c2c3e-7d19-4f3a-9b6e-d0f0a6a1f1c2 --confirm
  cairn purge --project shop --type web_fetch --older-than 30 --confirm`,
		Args: cobra.NoArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (err error) {
			if a.Before, err = parseDate(before); err != nil {
				return err
			}
			if f := cmd.Flags(); f.Changed("older-than") && a.OlderThan < 1 {
				return fault.New(fault.Invalid, "usage", "--older-than takes a number of days from 1 on")
			}
			a.Progress = p.progress("observations")
			defer p.patience()()
			done, err := c.Purge(cmd.Context(), a)
			if err != nil && done.Rows == 0 && !fault.HasCode(err, store.CodeHeld) {
				return err
			}
			if asJSON {
				err = errors.Join(err, printJSON(p.Out, done))
			} else {
				p.printPurged(done, a.Confirm)
			}
			return p.partly("purge", err)
		}),
	}
	f := cmd.Flags()
	f.Int64SliceVar(&a.IDs, "id", nil, "the observation with this id (may be repeated)")
	f.StringVar(&a.Session, "session", "", "those of this session")
	f.StringVar(&a.Project, "project", "", "those of this project (id or alias)")
	f.StringVar(&a.File, "file", "", "those about this file")
	f.StringVar(&a.Type, "type", "", "those of this type, such as command_error or user_prompt")
	f.StringVar(&before, "before", "", "those from before this day (YYYY-MM-DD, local midnight) or Unix second")
	f.IntVar(&a.OlderThan, "older-than", 0, "those older than so many days")
	f.StringVar(&a.Search, "search", "", "those that this query finds (see `cairn search`)")
	f.BoolVar(&a.Confirm, "confirm", false, "purge them; else only count")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// partly reports an error after which a part is done: exit code 1.
func (p *Process) partly(what string, err error) error {
	if err == nil {
		return nil
	}
	if !fault.HasCode(err, store.CodeHeld) {
		err = fmt.Errorf("only a part is done, repeat it: %w", err)
	}
	report(p.Err, what, err)
	return exitError(1)
}

// patience tells after two seconds that a command is still at work; what it
// returns ends that.
func (p *Process) patience() (stop func() bool) {
	return time.AfterFunc(2*time.Second, func() {
		fmt.Fprintln(p.Err, "cairn: still at it; a large store takes a while")
	}).Stop
}

func (p *Process) printPurged(done observation.Purged, confirmed bool) {
	w := p.Out
	verb := "would purge"
	if confirmed {
		verb = "purged"
	}
	fmt.Fprintf(w, "%s %d observations\n", verb, done.Rows)
	for _, c := range done.Counts {
		fmt.Fprintf(w, "  %7d  %s  %s\n", c.Rows, c.Project, c.ObsType)
	}
	if !confirmed {
		if done.Rows > 0 {
			fmt.Fprintln(w, "nothing is changed yet: add --confirm to purge them for good")
		}
		return
	}
	for _, gone := range []struct {
		n    int
		what string
	}{
		{done.Prompts, "prompts and answers"}, {done.Sessions, "empty sessions"},
		{done.Ledger, "entries of what sessions were told"}, {done.Backups, "backups of the store"},
	} {
		if gone.n > 0 {
			fmt.Fprintf(w, "also gone: %d %s\n", gone.n, gone.what)
		}
	}
	for _, b := range done.Behind {
		fmt.Fprintf(w, "%s does not know of it yet: %d changes behind\n", b.Follower, b.Changes)
	}
}
