package carecmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/mail/documents"
	"cairn/internal/observation/forget"
	"cairn/internal/store"
)

func purgeCommand(p *command.Process) *cobra.Command {
	var a forget.PurgeArgs
	var letters documents.PurgeArgs
	var before string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Delete observations or mail permanently, also on the disk",
		Long: `purge deletes every observation that matches all given filters, pinned ones too. It
removes their text from the store, the search index and the write-ahead log. It also
deletes every backup in the data directory: automatic ones, and those of
` + "`cairn backup`" + ` in the folder backups. Create a new backup afterwards. Without
--confirm it only counts.

The filters do not apply to records and mail. To purge mail, use --message ID, or
--mail with --project for all mail of a project. This deletes subject, body and
attachments. Sender, recipients, times and receipts stay. The archive's files are
replaced by a tombstone; its Git history keeps them until you rewrite it, and purge
prints how to do that. Replies that quote a message, or repeat its subject, are
separate messages.

Purged data is not stored again by a later import or a late hook, except with
` + "`cairn import --include-purged`" + `. purge does not touch the transcripts of your
agents, files that you exported, or backups that you keep elsewhere.

If another process reads the store all the time, purge exits 1 and reports it. The
rows are deleted then, and the next purge or sweep clears the bytes.`,
		Example: `  cairn purge --search '"customer list"'
  cairn purge --session 0b5c2c3e-7d19-4f3a-9b6e-d0f0a6a1f1c2 --confirm
  cairn purge --project shop --type web_fetch --older-than 30 --confirm
  cairn purge --message 12 --message 15 --confirm`,
		Args: command.NoArgs,
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (err error) {
			if err := command.RefuseBlank(cmd, "session", "project", "file", "type", "before", "search"); err != nil {
				return err
			}
			if letters.All || len(letters.IDs) > 0 {
				letters.Project, letters.Confirm = a.Project, a.Confirm
				return purgeMail(p, cmd, c, letters, asJSON)
			}
			if a.Before, err = command.ParseDate(before); err != nil {
				return err
			}
			if f := cmd.Flags(); f.Changed("older-than") && a.OlderThan < 1 {
				return fault.New(fault.Invalid, "usage", "--older-than must be 1 or more days")
			}
			a.Progress = p.Progress("observations")
			defer p.ReportSlow()()
			done, err := c.Purge(cmd.Context(), a)
			if err != nil && done.Rows == 0 && !fault.HasCode(err, store.CodeHeld) {
				return err
			}
			if asJSON {
				err = errors.Join(err, command.PrintJSON(p.Out, done))
			} else {
				printPurged(p, done, a.Confirm)
			}
			return reportPartial(p, "purge", err)
		}),
	}
	f := cmd.Flags()
	f.Int64SliceVar(&a.IDs, "id", nil, "the observation with the id `N` (may be repeated)")
	f.Lookup("id").DefValue = "" // else the help would print []
	f.StringVar(&a.Session, "session", "", "observations of the session `ID`")
	f.StringVar(&a.Project, "project", "", "observations of the project `ID` (or alias)")
	f.StringVar(&a.File, "file", "", "observations about the file `PATH`")
	f.StringVar(&a.Type, "type", "", "observations of the type `NAME`, such as command_error or user_prompt")
	f.StringVar(&before, "before", "", "observations from before the day `DATE` (YYYY-MM-DD, local midnight) or Unix second")
	f.IntVar(&a.OlderThan, "older-than", 0, "observations older than this number of `DAYS`")
	f.StringVar(&a.Search, "search", "", "observations that match `QUERY`, in the language of cairn search")
	f.Int64SliceVar(&letters.IDs, "message", nil, "the message with the number `ID` (may be repeated)")
	f.Lookup("message").DefValue = ""
	f.BoolVar(&letters.All, "mail", false, "all messages of --project")
	f.BoolVar(&a.Confirm, "confirm", false, "purge; without it only count")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// purgeMail purges messages.
func purgeMail(p *command.Process, cmd *cobra.Command, c *cairn.Cairn, a documents.PurgeArgs, asJSON bool) error {
	for _, name := range []string{"id", "session", "file", "type", "before", "older-than", "search"} {
		if cmd.Flags().Changed(name) {
			return fault.Newf(fault.Invalid, "usage", "--%s selects observations; to purge mail, use --message, or --mail with --project", name)
		}
	}
	switch {
	case a.All && len(a.IDs) > 0:
		return fault.New(fault.Invalid, "usage", "--mail cannot be combined with --message: it means all messages")
	case a.All && a.Project == "":
		return fault.New(fault.Invalid, "usage", "--mail requires --project")
	}
	a.Progress = p.Progress("messages")
	defer p.ReportSlow()()
	done, err := c.PurgeMail(cmd.Context(), a)
	if err != nil && (!a.Confirm || done.Messages == 0) {
		return err
	}
	if asJSON {
		err = errors.Join(err, command.PrintJSON(p.Out, done))
	} else {
		printPurgedMail(p, done, a.Confirm)
	}
	return reportPartial(p, "purge", err)
}

func printPurgedMail(p *command.Process, done cairn.MailPurgeResult, confirmed bool) {
	w := p.Out
	if !confirmed {
		fmt.Fprintf(w, "would purge %s\n", command.Counted(done.Messages, "message"))
		if done.Messages > 0 {
			fmt.Fprintln(w, "nothing was changed: add --confirm to purge them permanently")
		}
		return
	}
	fmt.Fprintf(w, "purged %s\n", command.Counted(done.Messages, "message"))
	if done.Already > 0 {
		fmt.Fprintf(w, "%s were already purged\n", command.Counted(done.Already, "message"))
	}
	if done.Attachments > 0 {
		fmt.Fprintln(w, "also deleted: "+command.Counted(done.Attachments, "attachment"))
	}
	if done.Backups > 0 {
		fmt.Fprintln(w, "also deleted: "+command.Counted(done.Backups, "automatic backup"))
	}
	for _, b := range done.Behind {
		fmt.Fprintf(w, "%s does not know of it yet: %s behind\n", b.Follower, command.Counted(int(b.Changes), "change"))
	}
	for _, folder := range done.Archives {
		fmt.Fprintf(w, "the files were deleted in %s; its Git history contains them, and their subjects, until you rewrite it:\n", folder)
		fmt.Fprintf(w, "  delete that folder and run `cairn reconcile --rebuild`, which starts a new history;\n")
		fmt.Fprintf(w, "  clones of it, exports, and earlier backups in other folders contain them too\n")
	}
	if done.Messages > 0 && len(done.Archives) == 0 {
		fmt.Fprintln(w, "exports, and earlier backups in other folders, still contain them")
	}
}

// reportPartial prints an error after which a part of the work is done, and returns exit
// code 1.
func reportPartial(p *command.Process, what string, err error) error {
	if err == nil {
		return nil
	}
	if !fault.HasCode(err, store.CodeHeld) {
		err = fmt.Errorf("only a part was done, run it again: %w", err)
	}
	command.Report(p.Err, what, err)
	return command.ExitError(1)
}

func printPurged(p *command.Process, done forget.PurgeResult, confirmed bool) {
	w := p.Out
	verb := "would purge"
	if confirmed {
		verb = "purged"
	}
	fmt.Fprintf(w, "%s %s\n", verb, command.Counted(done.Rows, "observation"))
	for _, c := range done.Counts {
		fmt.Fprintf(w, "  %7d  %s  %s\n", c.Rows, c.Project, c.ObsType)
	}
	if !confirmed {
		if done.Rows > 0 {
			fmt.Fprintln(w, "nothing was changed: add --confirm to purge them permanently")
		}
		return
	}
	for _, gone := range []struct {
		n    int
		what string
	}{
		{done.Prompts, fmt.Sprintf("%d prompts and answers", done.Prompts)},
		{done.Sessions, command.Counted(done.Sessions, "empty session")},
		{done.Ledger, fmt.Sprintf("%d entries about contexts given to sessions", done.Ledger)},
		{done.Backups, command.Counted(done.Backups, "automatic backup")},
	} {
		if gone.n > 0 {
			fmt.Fprintln(w, "also deleted: "+gone.what)
		}
	}
	for _, b := range done.Behind {
		fmt.Fprintf(w, "%s does not know of it yet: %s behind\n", b.Follower, command.Counted(int(b.Changes), "change"))
	}
}
