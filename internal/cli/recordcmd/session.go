package recordcmd

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/record"
)

func sessionCommand(p *command.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Manage the sessions that work on records",
		Long: `session manages the sessions that work on records (see cairn records --help). A session
starts when it first activates or creates a record of the project, and lasts until it is
closed. The default of --session is the session of the agent that runs the command.`,
		Example: "  cairn session list\n  cairn session sync --session S-…\n  cairn session close --session S-… --summary \"refunds are decided\"",
		Args:    command.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(sessionListCommand(p), sessionSyncCommand(p), sessionSaveCommand(p), sessionCloseCommand(p))
	return cmd
}

func sessionListCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	return f.ReadFlags(command.New(&f, cobra.Command{
		Use:   "list",
		Short: "List the open sessions of a project and what they have active",
		Long: `list prints a line per open session: its name, the number of writes since its last sync,
and its active records.`,
		Args: command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) ([]record.OpenSession, error) {
		o, err := c.Records().Overview(cmd.Context(), record.OverviewArgs{Caller: f.Caller(), At: f.At, AllSessions: true})
		return command.ListOf(o.OpenSessions, err)
	}, PrintSessions))
}

// PrintSessions prints a line per session.
func PrintSessions(w io.Writer, list []record.OpenSession) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, s := range list {
		fmt.Fprintf(t, "%s\t%d behind\t%s\n", command.Printable(s.ID), s.TickGap, strings.Join(s.ActiveRecords, ", "))
	}
	return t.Flush()
}

func sessionSyncCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	return f.WriteFlags(command.New(&f, cobra.Command{
		Use:   "sync",
		Short: "Show what other sessions changed since the last sync",
		Long: `sync prints the changes that other sessions made to the project's records since the last
sync of this session, one per line: tick, record, kind of change and session. It does not
reload records; to see the current version of a record, activate it again.`,
		Args: command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (record.SyncResult, error) {
		s, err := c.Records().Sync(cmd.Context(), record.SyncArgs{Caller: f.Caller()})
		if s.Warning != "" {
			f.Note("%s", s.Warning)
		}
		if s.Truncated {
			f.Note("there are more changes; run sync again")
		}
		return s, err
	}, printSync))
}

func printSync(w io.Writer, s record.SyncResult) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, c := range s.Changes {
		fmt.Fprintf(t, "tick:%d\t%s\t%s\t%s\n", c.AtTick, c.RecordID, c.ChangeType, command.Printable(c.BySession))
	}
	return t.Flush()
}

func sessionSaveCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var summary string
	cmd := command.New(&f, cobra.Command{
		Use:   "save",
		Short: "Mark the session's changes as saved",
		Long: `save marks a milestone and prints the records that the session has changed since the last
milestone. Changes are always stored immediately, with or without save. cairn records
diff ID --from last_save shows the changes since the milestone.`,
		Args: command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (record.Saved, error) {
		return c.Records().Save(cmd.Context(), record.SaveArgs{Caller: f.Caller(), Summary: summary})
	}, func(w io.Writer, s record.Saved) error {
		_, err := fmt.Fprintf(w, "saved %s\n", idsOrNothing(s.SavedRecords))
		return err
	})
	cmd.Flags().StringVar(&summary, "summary", "", "a summary for the activity, at most 1,000 characters")
	return f.WriteFlags(cmd)
}

func sessionCloseCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var summary string
	cmd := command.New(&f, cobra.Command{
		Use:   "close",
		Short: "End the session's work on records",
		Long: `close ends a session's work on the project. The session then has no active records and is
no longer listed. Its changes stay stored. To open it again, activate a record under its
name.`,
		Args: command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (record.Closed, error) {
		s, err := c.Records().Close(cmd.Context(), record.SaveArgs{Caller: f.Caller(), Summary: summary})
		if s.UnsavedWarning != "" {
			f.Note("%s", s.UnsavedWarning)
		}
		return s, err
	}, func(w io.Writer, s record.Closed) error {
		_, err := fmt.Fprintf(w, "closed; it had %s active\n", idsOrNothing(s.DeactivatedRecords))
		return err
	})
	cmd.Flags().StringVar(&summary, "summary", "", "a summary for the activity, at most 1,000 characters")
	return f.WriteFlags(cmd)
}

func idsOrNothing(ids []string) string {
	if len(ids) == 0 {
		return "nothing"
	}
	return strings.Join(ids, ", ")
}
