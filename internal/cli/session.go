package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/record"
	"cairn/internal/store"
)

func sessionCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "See what other sessions changed in records, save, close",
		Long: `session is about work on records (see cairn records --help). Without --session it
means the session of the agent that runs the command.`,
		Example: "  cairn session list\n  cairn session sync --session S-…\n  cairn session close --session S-… --summary \"refunds are decided\"",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(sessionListCommand(p), sessionSyncCommand(p), sessionSaveCommand(p), sessionCloseCommand(p))
	return cmd
}

func sessionListCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the open sessions of a project and what they have active",
		Args:  cobra.NoArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			o, err := c.Records().Overview(cmd.Context(), record.OverviewArgs{Caller: f.caller(), At: f.at, AllSessions: true})
			if err != nil {
				return err
			}
			return show(&f, notNil(o.OpenSessions), printSessions)
		}),
	}
	return f.reading(cmd)
}

func printSessions(w io.Writer, list []record.OpenSession) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, s := range list {
		fmt.Fprintf(t, "%s\t%d behind\t%s\n", printable(s.ID), s.TickGap, strings.Join(s.ActiveRecords, ", "))
	}
	return t.Flush()
}

func sessionSyncCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Show what other sessions changed since the last sync",
		Args:  cobra.NoArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			s, err := c.Records().Sync(cmd.Context(), record.SyncArgs{Caller: f.caller()})
			if err != nil {
				return err
			}
			if s.Warning != "" {
				fmt.Fprintf(p.Err, "cairn: %s\n", printable(s.Warning))
			}
			if s.Truncated {
				fmt.Fprintln(p.Err, "cairn: there is more; sync again")
			}
			return show(&f, s, printSync)
		}),
	}
	return f.recording(cmd)
}

func printSync(w io.Writer, s record.Synced) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, c := range s.Changes {
		fmt.Fprintf(t, "tick:%d\t%s\t%s\t%s\n", c.AtTick, c.RecordID, c.ChangeType, printable(c.BySession))
	}
	return t.Flush()
}

func sessionSaveCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	var summary string
	cmd := &cobra.Command{
		Use:   "save",
		Short: "Mark the session's changes as saved",
		Args:  cobra.NoArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			s, err := c.Records().Save(cmd.Context(), record.SaveArgs{Caller: f.caller(), Summary: summary})
			if err != nil {
				return err
			}
			return show(&f, s, func(w io.Writer, s record.Saved) error {
				_, err := fmt.Fprintf(w, "saved %s\n", idsOrNothing(s.SavedRecords))
				return err
			})
		}),
	}
	cmd.Flags().StringVar(&summary, "summary", "", "for the activity, at most 1,000 characters")
	return f.recording(cmd)
}

func sessionCloseCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	var summary string
	cmd := &cobra.Command{
		Use:   "close",
		Short: "End the session's work on records",
		Args:  cobra.NoArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			s, err := c.Records().Close(cmd.Context(), record.SaveArgs{Caller: f.caller(), Summary: summary})
			if err != nil {
				return err
			}
			if s.UnsavedWarning != "" {
				fmt.Fprintf(p.Err, "cairn: %s\n", printable(s.UnsavedWarning))
			}
			return show(&f, s, func(w io.Writer, s record.Closed) error {
				_, err := fmt.Fprintf(w, "closed; it had %s active\n", idsOrNothing(s.DeactivatedRecords))
				return err
			})
		}),
	}
	cmd.Flags().StringVar(&summary, "summary", "", "for the activity, at most 1,000 characters")
	return f.recording(cmd)
}

func idsOrNothing(ids []string) string {
	if len(ids) == 0 {
		return "nothing"
	}
	return strings.Join(ids, ", ")
}
