package findcmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/observation/ledger"
	"cairn/internal/store"
)

func contextCommand(p *command.Process) *cobra.Command {
	var name, source string
	var asJSON, report bool
	var days int
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Print the context that the next session would get",
		Long: `context prints the text that a new session in this folder would get. Some agents drop
injected text silently; this shows what should have arrived.

--report shows what cairn gave to sessions of all projects, or of --project, and how
much of it they used. An item counts as used if its session later fetched it by its
id, read or changed its file, or ran its command again.`,
		Example: `  cairn context --source compact    what follows after a compaction
  cairn context --report --days 7   what it cost this week, and whether it helped`,
		Args: command.NoArgs,
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			if !report {
				if cmd.Flags().Changed("days") {
					return fault.New(fault.Invalid, "usage", "--days requires --report")
				}
				if !slices.Contains(sources(), source) {
					return fault.Newf(fault.Invalid, "usage", "--source must be one of %s, not %.40q", strings.Join(sources(), ", "), source)
				}
				return printContext(p, cmd, c, name, source, asJSON)
			}
			if cmd.Flags().Changed("source") {
				return fault.New(fault.Invalid, "usage", "--source cannot be combined with --report")
			}
			if days < 1 || days > ledger.KeptDays {
				return fault.Newf(fault.Invalid, "usage", "--days must be between 1 and %d, the retention of the report's data", ledger.KeptDays)
			}
			l, err := c.Ledger(cmd.Context(), name, days)
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(p.Out, l)
			}
			return printLedger(p, l)
		}),
	}
	cmd.Flags().StringVar(&name, "project", "", "the project (id or alias) instead of the current one")
	cmd.Flags().StringVar(&source, "source", "startup", "the reason of the session's start: "+strings.Join(sources(), ", "))
	cmd.Flags().BoolVar(&report, "report", false, "print what sessions were given, what it cost and how much they used")
	cmd.Flags().IntVar(&days, "days", 30, "number of days that --report covers")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: the text and its size in tokens, or the report's figures")
	return cmd
}

// sources returns the possible reasons of a session's start.
func sources() []string { return []string{"startup", "resume", "fork", "clear", "compact"} }

func printContext(p *command.Process, cmd *cobra.Command, c *cairn.Cairn, name, source string, asJSON bool) error {
	injected, err := c.Context(cmd.Context(), name, source)
	if err != nil {
		return err
	}
	if asJSON {
		return command.PrintJSON(p.Out, struct {
			Text   string `json:"text"`
			Tokens int    `json:"tokens"`
			Rows   int    `json:"rows"`
		}{injected.Text, injected.Tokens, injected.Rows()})
	}
	if injected.Text == "" {
		_, err = fmt.Fprintln(p.Err, "cairn: there is no context yet; `cairn import` reads your old sessions")
		return err
	}
	_, err = fmt.Fprint(p.Out, injected.Text)
	return err
}

func printLedger(p *command.Process, l ledger.Report) error {
	if l.Total.Items == 0 {
		_, err := fmt.Fprintf(p.Err, "cairn: no session was given a context in the last %d days; "+
			"the hooks of connected agents do that (`cairn init`), and `cairn context` shows the text\n", l.Days)
		return err
	}
	w := p.Out
	const row = "%-13s  %-8s  %6s  %7s  %6s  %8s  %20s\n"
	fmt.Fprintf(w, row, "when", "section", "items", "tokens", "used", "use rate", "tokens per used item")
	line := func(when, section string, t ledger.Stats) error {
		each := "-"
		if t.TokensPerUsed != nil {
			each = fmt.Sprintf("%.0f", *t.TokensPerUsed)
		}
		_, err := fmt.Fprintf(w, row, when, section, strconv.Itoa(t.Items), strconv.Itoa(t.Tokens), strconv.Itoa(t.Used),
			fmt.Sprintf("%.0f %%", 100*t.UseRate), each)
		return err
	}
	for _, s := range l.Sections {
		if err := line(strings.ReplaceAll(s.Trigger, "_", " "), s.Section, s.Stats); err != nil {
			return err
		}
	}
	return line("all", "", l.Total)
}
