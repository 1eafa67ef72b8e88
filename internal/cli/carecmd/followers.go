package carecmd

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/followers"
	"cairn/internal/store"
)

// maxFollowerLines is the maximum number of lines that status prints about followers.
const maxFollowerLines = 20

// PrintFollowers prints the changes that wait for each follower of the change log, and
// its failures; one line if nothing waits or fails.
func PrintFollowers(w io.Writer, all followers.Account) {
	var lines, names []string // names are sorted
	running := false
	for _, f := range all.Followers {
		running, names = running || f.Running, append(names, f.Follower)
		if f.Behind > 0 {
			lines = append(lines, waitingLine(f))
		}
		if f.Error != "" {
			lines = append(lines, failingLine(f))
		}
	}
	for _, a := range all.SetAside {
		lines = append(lines, fmt.Sprintf("aside    change %d of %s, tried %s since %s: %s", a.Seq, command.Printable(a.Name()), command.Counted(a.Attempts, "time"), a.Since.Format(time.RFC3339), command.FirstOf(a.Error, 300)))
	}
	for _, line := range lines[:min(len(lines), maxFollowerLines)] {
		fmt.Fprintln(w, line)
	}
	if more := len(lines) - maxFollowerLines; more > 0 {
		fmt.Fprintf(w, "         and %d more; --json lists all\n", more)
	}
	switch {
	case len(lines) > 0 && running:
		fmt.Fprintln(w, "         `cairn retry` retries now what fails or is set aside")
	case len(lines) > 0:
		fmt.Fprintln(w, "         no server is running: the next one (`cairn serve`) continues; `cairn archive sync` and `cairn replication drain` do it now")
	case len(names) > 0:
		fmt.Fprintf(w, "follow   %s: up to date\n", strings.Join(slices.Compact(names), ", "))
	}
}

func waitingLine(f followers.Status) string {
	line := fmt.Sprintf("waits    %s for %s", command.Counted(int(f.Behind), "change"), command.Printable(f.Name()))
	if !f.Oldest.IsZero() {
		line += ", the first since " + f.Oldest.Format(time.RFC3339)
	}
	return line
}

func failingLine(f followers.Status) string {
	line := "fails    " + command.Printable(f.Name())
	if f.Attempts > 0 {
		line += ", tried " + command.Counted(f.Attempts, "time")
	}
	if !f.Since.IsZero() {
		line += " since " + f.Since.Format(time.RFC3339)
	}
	if !f.NextTry.IsZero() {
		line += ", again " + f.NextTry.Format(time.RFC3339)
	}
	return line + ": " + command.FirstOf(f.Error, 300)
}

func retryCommand(p *command.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "retry [FOLLOWER]",
		Short: "Retry now what the archive or another follower could not do",
		Long: `Followers read every change of the store: archive writes it to Git, memory-embed
computes the vectors of memories, replication sends memories to the hub. A change that
a follower cannot handle is set aside, and the follower continues with the next one. A
follower that fails completely retries automatically, after a minute at most. cairn
status shows both, with the reason.

After you have removed the reason, retry makes one follower, or all, try again
immediately. A running server does so within seconds; without one, the next server does.
retry is idempotent.`,
		Example: "  cairn status\n  cairn retry\n  cairn retry archive --json",
		Args:    command.AtMostOne("follower"),
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			follower := ""
			if len(args) > 0 {
				follower = args[0]
			}
			done, err := c.Retry(cmd.Context(), follower)
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(p.Out, done)
			}
			return printRetried(p.Out, done)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printRetried(w io.Writer, done followers.Retried) error {
	if done.Changes+done.Lanes == 0 {
		_, err := fmt.Fprintln(w, "nothing is set aside and nothing fails")
		return err
	}
	how := "the running server tries again now; `cairn status` shows the outcome"
	if !done.Running {
		how = "no server is running: the next one (`cairn serve`) tries again; for the archive `cairn archive sync` does so now"
	}
	_, err := fmt.Fprintf(w, "due now: %s and %s; %s\n", command.Counted(int(done.Changes), "change"), command.Counted(int(done.Lanes), "failing follower"), how)
	return err
}
