package projectcmd

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/observation/capture"
	"cairn/internal/store"
)

func markCommand(p *command.Process) *cobra.Command {
	var a capture.MarkArgs
	cmd := &cobra.Command{
		Use:   "mark TEXT",
		Short: "Leave a note in the current session",
		Long: `mark stores a note in the project's newest session of the last 24 hours, else in a new
session, and prints its id. Marks have the highest weight in the context of the next
session.`,
		Example: `  cairn mark "the flaky test is TestLogin; do not retry it, it needs the new fixture" --pin`,
		Args:    command.ExactArgs(1, "one text; put quotes around it"),
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			a.Text = args[0]
			id, err := c.Mark(cmd.Context(), a)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(p.Out, id)
			return err
		}),
	}
	cmd.Flags().StringVar(&a.Project, "project", "", "the project (id or alias) instead of the current one")
	cmd.Flags().StringVar(&a.Session, "session", "", "the session instead of the project's newest")
	cmd.Flags().BoolVar(&a.Pin, "pin", false, "also pin it, so that every session gets it")
	return cmd
}

func pinCommand(p *command.Process, unpin bool) *cobra.Command {
	a := capture.PinArgs{Unpin: unpin}
	use, short, long := "pin", "Keep rows permanently and show them to every session",
		`pin keeps observations permanently; only purge deletes them. The context of every
session, in every project, begins with the ten newest pinned observations.

Name observations by their ids, which cairn search and cairn context print, or name a
session or a file to pin all of its observations. If an id is unknown, nothing changes.`
	if unpin {
		use, short, long = "unpin", "Undo pin",
			`unpin applies the retention of their type to observations again, and no longer adds
them to every context. If an id is unknown, nothing changes.`
	}
	cmd := &cobra.Command{
		Use:     use + " [ID...]",
		Short:   short,
		Long:    long,
		Example: "  cairn " + use + " 42 43\n  cairn " + use + " --file src/auth.go",
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (err error) {
			if err := command.RefuseBlank(cmd, "session", "file"); err != nil {
				return err
			}
			if a.IDs, err = pinIDs(args, a); err != nil {
				return err
			}
			n, err := c.Pin(cmd.Context(), a)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Err, "cairn: %sned %s\n", use, command.Counted(int(n), "observation"))
			return err
		}),
	}
	cmd.Flags().StringVar(&a.Session, "session", "", "all rows of this session")
	cmd.Flags().StringVar(&a.File, "file", "", "all rows about this file")
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
		return nil, fault.New(fault.Invalid, "usage", "requires ids, --session or --file, only one of them")
	}
	var ids []int64
	for _, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return nil, fault.Newf(fault.Invalid, "usage", "%.40q is not an id", arg).WithHint("ids are numbers; `cairn search` prints them")
		}
		ids = append(ids, id)
	}
	return ids, nil
}
