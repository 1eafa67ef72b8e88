package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/observation/capture"
	"cairn/internal/store"
)

func markCommand(p *Process) *cobra.Command {
	var a capture.MarkArgs
	cmd := &cobra.Command{
		Use:   "mark TEXT",
		Short: "Leave a note in the current session",
		Long: `mark stores a note with the project's newest session of the last 24 hours, or in
a session of its own, and prints its id. Marks weigh most in what the next
session is told.`,
		Example: `  cairn mark "the flaky test is TestLogin; do not retry it, it needs the new fixture" --pin`,
		Args:    exactArgs(1, "one text; put quotes around it"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			a.Text = args[0]
			id, err := c.Mark(cmd.Context(), a)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(p.Out, id)
			return err
		}),
	}
	cmd.Flags().StringVar(&a.Project, "project", "", "the project (id or alias) instead of the one here")
	cmd.Flags().StringVar(&a.Session, "session", "", "the session instead of the project's newest")
	cmd.Flags().BoolVar(&a.Pin, "pin", false, "also pin it, so that every session is told")
	return cmd
}

func pinCommand(p *Process, unpin bool) *cobra.Command {
	a := capture.PinArgs{Unpin: unpin}
	use, short, long := "pin", "Keep rows permanently and show them to every session",
		`pin keeps observations from expiring; only purge deletes them. The newest ten that
are pinned stand first in what every session of every project is told.

Name them by their ids, which cairn search and cairn context print, or all of a
session or about a file. If one of the ids is unknown nothing is changed.`
	if unpin {
		use, short, long = "unpin", "Undo pin",
			`unpin lets observations expire again with their type's time, and no longer tells
them to every session. If one of the ids is unknown nothing is changed.`
	}
	cmd := &cobra.Command{
		Use:     use + " [ID...]",
		Short:   short,
		Long:    long,
		Example: "  cairn " + use + " 42 43\n  cairn " + use + " --file src/auth.go",
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (err error) {
			if err := given(cmd, "session", "file"); err != nil {
				return err
			}
			if a.IDs, err = pinIDs(args, a); err != nil {
				return err
			}
			n, err := c.Pin(cmd.Context(), a)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Err, "cairn: %sned %s\n", use, counted(int(n), "observation"))
			return err
		}),
	}
	cmd.Flags().StringVar(&a.Session, "session", "", "every row of a session")
	cmd.Flags().StringVar(&a.File, "file", "", "every row about a file")
	return cmd
}

func pinIDs(args []string, a capture.PinArgs) ([]int64, error) {
	given := 0
	for _, is := range []bool{len(args) > 0, a.Session != "", a.File != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, fault.New(fault.Invalid, "usage", "takes either ids, or --session, or --file")
	}
	var ids []int64
	for _, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return nil, fault.Newf(fault.Invalid, "usage", "%.40q is no id", arg).WithHint("ids are numbers; `cairn search` prints them")
		}
		ids = append(ids, id)
	}
	return ids, nil
}
