package carecmd

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/store"
)

func sweepCommand(p *command.Process) *cobra.Command {
	var a cairn.SweepArgs
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Delete what has expired",
		Long: `sweep deletes observations that are older than the retention of their type, except pinned
ones. Every start of a session also sweeps a small part. If the store is larger than
max_db_size_mb, sweep deletes the oldest observations until it is down to 90 % of that.
It also completes an interrupted purge.

Retention in days, with the defaults (config.toml):

    [observations.retention.days]
    git_commit = 730      # and git_push
    file_edit = 365       # and file_write, session_start, session_end, session_compact
    command = 180         # and command_error, github
    file_read = 90        # and search, mcp_call, web_fetch, web_search, task_spawn, tool_other
    user_prompt = "never" # and agent_message, marker
    [observations.retention]
    output_days = 30      # output of commands and tools, counted from the day of storing

--rescan applies the current redaction rules to everything stored before, for instance
after you have added extra_patterns.`,
		Example: `  cairn sweep --dry-run
  cairn sweep --rescan`,
		Args: command.NoArgs,
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			a.Progress = p.Progress("observations")
			defer p.ReportSlow()()
			done, err := c.Sweep(cmd.Context(), a)
			switch {
			case err != nil && done.Rows == 0 && done.Rescan == nil:
				return err
			case asJSON:
				err = errors.Join(err, command.PrintJSON(p.Out, done))
			default:
				printSwept(p, done, a.DryRun)
			}
			return reportPartial(p, "sweep", err)
		}),
	}
	cmd.Flags().BoolVar(&a.DryRun, "dry-run", false, "only count")
	cmd.Flags().BoolVar(&a.Rescan, "rescan", false, "also apply the current redaction rules to stored data")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printSwept(p *command.Process, done cairn.SweepResult, dryRun bool) {
	w := p.Out
	swept, rewrote := "swept", "redacted"
	if dryRun {
		swept, rewrote = "would sweep", "would redact"
	}
	fmt.Fprintf(w, "%s %s\n", swept, command.Counted(done.Rows, "observation"))
	printCounts(w, done.ByType)
	if done.ForRoom > 0 {
		fmt.Fprintf(w, "%d of them because of max_db_size_mb\n", done.ForRoom)
	}
	if done.Ledger > 0 {
		fmt.Fprintf(w, "%s %d entries about contexts given to sessions\n", swept, done.Ledger)
	}
	if done.Outputs > 0 {
		fmt.Fprintf(w, "%s %s of commands and tools\n", swept, command.Counted(done.Outputs, "output"))
	}
	if r := done.Rescan; r != nil {
		fmt.Fprintf(w, "%s %s and %s\n", rewrote, command.Counted(r.Rows, "observation"), command.Counted(r.Sessions, "session"))
		if r.Outputs > 0 {
			fmt.Fprintf(w, "%s %s of commands and tools\n", rewrote, command.Counted(r.Outputs, "output"))
		}
		printCounts(w, r.ByType)
		if len(r.Rules) > 0 {
			fmt.Fprintln(w, "by rule:")
			printCounts(w, r.Rules)
		}
	}
}

func printCounts(w io.Writer, counts map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "  %7d  %s\n", counts[name], name)
	}
}
