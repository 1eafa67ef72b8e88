package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/record"
)

func sessionCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "See what other sessions changed in records, save, close",
		Long: `session is about work on records (see cairn records --help): a session begins when
it first activates or creates a record of the project, and lasts until it is closed.
Without --session these commands mean the session of the agent that runs them.`,
		Example: "  cairn session list\n  cairn session sync --session S-…\n  cairn session close --session S-… --summary \"refunds are decided\"",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(sessionListCommand(p), sessionSyncCommand(p), sessionSaveCommand(p), sessionCloseCommand(p))
	return cmd
}

func sessionListCommand(p *Process) *cobra.Command {
	f := recordFlags{answers: answers{process: p}}
	return f.reading(answering(&f, cobra.Command{
		Use:   "list",
		Short: "List the open sessions of a project and what they have active",
		Long: `list prints a line per session that is not closed: its name, how many writes have
happened since it last synced, and the records that it has active.`,
		Args: noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) ([]record.OpenSession, error) {
		o, err := c.Records().Overview(cmd.Context(), record.OverviewArgs{Caller: f.caller(), At: f.at, AllSessions: true})
		return listed(o.OpenSessions, err)
	}, printSessions))
}

func printSessions(w io.Writer, list []record.OpenSession) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, s := range list {
		fmt.Fprintf(t, "%s\t%d behind\t%s\n", printable(s.ID), s.TickGap, strings.Join(s.ActiveRecords, ", "))
	}
	return t.Flush()
}

func sessionSyncCommand(p *Process) *cobra.Command {
	f := recordFlags{answers: answers{process: p}}
	return f.recording(answering(&f, cobra.Command{
		Use:   "sync",
		Short: "Show what other sessions changed since the last sync",
		Long: `sync prints a line per change that other sessions made in the project's records since
this one last synced: the tick, the record, the kind of change and the session. What
this session has loaded stays as it was; activating a record again shows it anew.`,
		Args: noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (record.SyncResult, error) {
		s, err := c.Records().Sync(cmd.Context(), record.SyncArgs{Caller: f.caller()})
		if s.Warning != "" {
			f.say("%s", s.Warning)
		}
		if s.Truncated {
			f.say("there is more; sync again")
		}
		return s, err
	}, printSync))
}

func printSync(w io.Writer, s record.SyncResult) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, c := range s.Changes {
		fmt.Fprintf(t, "tick:%d\t%s\t%s\t%s\n", c.AtTick, c.RecordID, c.ChangeType, printable(c.BySession))
	}
	return t.Flush()
}

func sessionSaveCommand(p *Process) *cobra.Command {
	f := recordFlags{answers: answers{process: p}}
	var summary string
	cmd := answering(&f, cobra.Command{
		Use:   "save",
		Short: "Mark the session's changes as saved",
		Long: `save marks a milestone and prints the records that the session changed since the last
one. Every change is stored at once anyway; cairn records diff ID --from last_save
shows what came after it.`,
		Args: noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (record.Saved, error) {
		return c.Records().Save(cmd.Context(), record.SaveArgs{Caller: f.caller(), Summary: summary})
	}, func(w io.Writer, s record.Saved) error {
		_, err := fmt.Fprintf(w, "saved %s\n", idsOrNothing(s.SavedRecords))
		return err
	})
	cmd.Flags().StringVar(&summary, "summary", "", "for the activity, at most 1,000 characters")
	return f.recording(cmd)
}

func sessionCloseCommand(p *Process) *cobra.Command {
	f := recordFlags{answers: answers{process: p}}
	var summary string
	cmd := answering(&f, cobra.Command{
		Use:   "close",
		Short: "End the session's work on records",
		Long: `close ends a session's work on the project: it has nothing active any more and is no
longer listed. What it changed stays stored. Activating a record under its name opens
it anew.`,
		Args: noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (record.Closed, error) {
		s, err := c.Records().Close(cmd.Context(), record.SaveArgs{Caller: f.caller(), Summary: summary})
		if s.UnsavedWarning != "" {
			f.say("%s", s.UnsavedWarning)
		}
		return s, err
	}, func(w io.Writer, s record.Closed) error {
		_, err := fmt.Fprintf(w, "closed; it had %s active\n", idsOrNothing(s.DeactivatedRecords))
		return err
	})
	cmd.Flags().StringVar(&summary, "summary", "", "for the activity, at most 1,000 characters")
	return f.recording(cmd)
}

func idsOrNothing(ids []string) string {
	if len(ids) == 0 {
		return "nothing"
	}
	return strings.Join(ids, ", ")
}
