package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/store"
)

// printFollowers shows what waits for the followers of the change log, and what they fail
// at; one line if all is done.
func printFollowers(w io.Writer, all cairn.Followers) {
	waits, running := 0, false
	for _, f := range all.Followers {
		running = running || f.Running
		if f.Behind > 0 {
			waits++
			line := fmt.Sprintf("waits    %s for %s", counted(int(f.Behind), "change"), printable(f.Name()))
			if !f.Oldest.IsZero() {
				line += ", the first since " + f.Oldest.Format(time.RFC3339)
			}
			fmt.Fprintln(w, line)
		}
		if f.Error == "" {
			continue
		}
		waits++
		line := "fails    " + printable(f.Name())
		if f.Attempts > 0 {
			line += fmt.Sprintf(", tried %s", counted(f.Attempts, "time"))
		}
		if !f.Since.IsZero() {
			line += " since " + f.Since.Format(time.RFC3339)
		}
		if !f.NextTry.IsZero() {
			line += ", again " + f.NextTry.Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s: %s\n", line, firstOf(f.Error, 300))
	}
	for _, a := range all.SetAside {
		fmt.Fprintf(w, "aside    change %d of %s, tried %s since %s: %s\n", a.Seq, printable(a.Name()), counted(a.Attempts, "time"), a.Since.Format(time.RFC3339), firstOf(a.Error, 300))
	}
	switch {
	case waits+len(all.SetAside) > 0 && running:
		fmt.Fprintln(w, "         `cairn retry` tries at once what fails or is set aside")
	case waits+len(all.SetAside) > 0:
		fmt.Fprintln(w, "         no server runs here: `cairn serve` carries it on, `cairn archive sync` and `cairn replication drain` do so once")
	case len(all.Followers) > 0:
		fmt.Fprintf(w, "follow   %s, nothing waits\n", counted(len(followerNames(all)), "follower"))
	}
}

func followerNames(all cairn.Followers) map[string]bool {
	names := map[string]bool{}
	for _, f := range all.Followers {
		names[f.Follower] = true
	}
	return names
}

func retryCommand(p *Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "retry [FOLLOWER]",
		Short: "Try again at once what the archive or another follower could not do",
		Long: `Followers carry on what is written to the store: archive writes it into Git,
memory-embed makes the vectors of memories, replication sends memories to the hub.
A change that a follower cannot handle is set aside, and the others go on; a follower
that cannot do anything waits and tries again, after a minute at most. cairn status
shows both, with the reason.

Once the reason is gone, retry makes everything due at once, of one follower or of all.
A running server tries it within seconds. Without a server nothing is tried before the
next one starts. retry loses nothing, and may be repeated.`,
		Example: "  cairn status\n  cairn retry\n  cairn retry archive --json",
		Args:    atMostOne("follower"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			follower := ""
			if len(args) > 0 {
				follower = args[0]
			}
			done, err := c.Retry(cmd.Context(), follower)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(p.Out, done)
			}
			return printRetried(p.Out, done)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printRetried(w io.Writer, done cairn.Retried) error {
	if done.Changes+done.Lanes == 0 {
		_, err := fmt.Fprintln(w, "nothing is set aside and nothing fails")
		return err
	}
	how := "a running server tries them now; `cairn status` shows what came of it"
	if !done.Running {
		how = "no server runs here: `cairn serve` tries them when it starts, `cairn archive sync` does so once for the archive"
	}
	_, err := fmt.Fprintf(w, "%s and %s made due; %s\n", counted(int(done.Changes), "change"), counted(int(done.Lanes), "failing follower"), how)
	return err
}
