package setupcmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/doctor"
	"cairn/internal/fault"
	"cairn/internal/store/salvage"
	"cairn/internal/wiring"
)

func doctorCommand(p *command.Process) *cobra.Command {
	var a doctor.Args
	var salvage, asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find problems in the store and in your agents' settings",
		Long: `doctor checks the store (settings, key, rights, schema, damage, write-ahead log,
disk, followers) and your agents: whether cairn's entries are present and current, the
server responds, events arrived, and old sessions were imported. For each problem it
prints why it matters and what to do. It exits 1 if there is a problem, and changes
nothing. A warning, such as for an unknown key in config.toml, is not a problem.

With --fix it repairs the rights of files. With --salvage it replaces a damaged
store by a new one with everything that can still be read, under the same ids, and
keeps the damaged files next to it. An intact store is not changed. It prints each
lost row, and each row that is kept although its text differs from what was written
(the observation's metadata then has "damaged": true).`,
		Example: `  cairn doctor
  cairn doctor --deep
  cairn doctor --salvage`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if salvage && (a.Fix || a.Deep) {
				return fault.New(fault.Invalid, "usage", "--salvage cannot be combined with --fix or --deep").WithHint(command.SeeHelp(cmd))
			}
			if salvage {
				config, err := p.Config(cmd)
				if err != nil {
					return err
				}
				return salvageStore(p, cmd, config, asJSON)
			}
			a.Progress = p.AfterASecond()
			d, err := Diagnose(p, cmd.Context(), cmd, a)
			if err != nil {
				return err
			}
			return printDiagnosis(p, d, asJSON)
		},
	}
	cmd.Flags().BoolVar(&a.Fix, "fix", false, "repair the rights of files")
	cmd.Flags().BoolVar(&a.Deep, "deep", false, "also compare indexes, references, hashes and the change log")
	cmd.Flags().BoolVar(&salvage, "salvage", false, "replace a damaged store by what can still be read of it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// Diagnose checks the store and the agents of the user.
func Diagnose(p *command.Process, ctx context.Context, cmd *cobra.Command, a doctor.Args) (doctor.Diagnosis, error) {
	config, err := p.Config(cmd)
	if err != nil {
		return doctor.Diagnosis{}, err
	}
	if config.Cwd, err = os.Getwd(); err != nil {
		config.Cwd = "" // it no longer exists, so the settings of no repository apply
	}
	if place, err := p.AgentPaths(cmd); err == nil {
		a.Place, a.Program = place, place.Program
	}
	return cairn.Diagnose(ctx, config, a)
}

func printDiagnosis(p *command.Process, d doctor.Diagnosis, asJSON bool) error {
	if asJSON {
		if err := command.PrintJSON(p.Out, d); err != nil {
			return err
		}
	} else {
		printChecks(p, d.Checks)
	}
	if !d.OK {
		return command.ExitError(1)
	}
	return nil
}

func printChecks(p *command.Process, checks []doctor.Check) {
	w, problems, warnings, unknown := p.Out, 0, 0, 0
	for _, c := range checks {
		mark := string(c.State)
		switch {
		case c.Fixed:
			mark = "fixed"
		case c.State == doctor.Problem:
			problems++
		case c.State == doctor.Warning:
			warnings++
		case c.State == doctor.Unknown:
			unknown++
		}
		fmt.Fprintf(w, "%-8s %-18s %s\n", mark, c.Name, command.Printable(c.What))
		if c.Why != "" {
			fmt.Fprintf(w, "%27s why: %s\n", "", command.Printable(c.Why))
		}
		if c.Do != "" {
			fmt.Fprintf(w, "%27s do:  %s\n", "", command.Printable(c.Do))
		}
	}
	if problems+warnings+unknown == 0 {
		fmt.Fprintln(w, "\nall is well")
		return
	}
	sum := []string{"no problem"}
	if problems > 0 {
		sum[0] = command.Counted(problems, "problem")
	}
	if warnings > 0 {
		sum = append(sum, command.Counted(warnings, "warning"))
	}
	fmt.Fprintf(w, "\n%s\n", strings.Join(append(sum, command.Counted(unknown, "open question")), ", "))
}

func salvageStore(p *command.Process, cmd *cobra.Command, config cairn.Config, asJSON bool) error {
	r, err := cairn.Salvage(cmd.Context(), config, p.AfterASecond())
	if err != nil {
		return err
	}
	if asJSON {
		if r.Tables == nil {
			r.Tables = []salvage.Table{}
		}
		if r.Damage == nil {
			r.Damage = []string{}
		}
		return command.PrintJSON(p.Out, r)
	}
	printSalvage(p, r)
	return nil
}

func printSalvage(p *command.Process, r salvage.Report) {
	w := p.Out
	if len(r.Damage) == 0 {
		fmt.Fprintln(w, "there is nothing to salvage: the store is intact or does not exist")
		return
	}
	for i, d := range r.Damage {
		if i == 5 {
			fmt.Fprintf(w, "… and %d more\n", len(r.Damage)-i)
			break
		}
		fmt.Fprintf(w, "damage   %s\n", command.Printable(d))
	}
	fmt.Fprintf(w, "\n%-20s %10s %10s %10s\n", "table", "kept", "restored", "lost")
	for _, t := range r.Tables {
		fmt.Fprintf(w, "%-20s %10d %10d %10d\n", t.Name, t.Kept, t.Restored, t.Lost)
	}
	printRows(w, r.Tables)
	fmt.Fprintf(w, "\n%s could not be read; the change log has %s\n", command.Counted(r.Unread, "page"), command.Counted(r.Gaps, "gap"))
	fmt.Fprintf(w, "the store is intact again; the damaged one is kept as %s\n", r.Kept)
	if r.Lost > 0 {
		fmt.Fprintln(w, "`cairn import` can recover what transcripts still contain, `cairn reconcile --reindex` what the archive has")
	}
}

// maxPrintedRows is the maximum number of row names in a line of printRows.
const maxPrintedRows = 20

// printRows prints the numbers or keys of the rows that a salvage has lost.
func printRows(w io.Writer, tables []salvage.Table) {
	for _, t := range tables {
		line := func(what string, rows []string) {
			more := ""
			if len(rows) > maxPrintedRows {
				more = fmt.Sprintf(" … and %d more (--json prints all)", len(rows)-maxPrintedRows)
				rows = rows[:maxPrintedRows]
			}
			if len(rows) > 0 {
				fmt.Fprintf(w, "%-9s%s %s%s\n", what, t.Name, command.Printable(strings.Join(rows, ", ")), more)
			}
		}
		line("lost", t.LostRows)
		line("altered", t.AlteredRows)
		line("unknown", t.UnknownRows)
		if t.Incomplete && len(t.UnknownRows) == 0 {
			fmt.Fprintf(w, "%-9s%s may have lost rows without a trace\n", "unknown", t.Name)
		}
	}
}

// connectedHarnesses returns the names of the harnesses that call cairn.
func connectedHarnesses(p *command.Process, cmd *cobra.Command) []string {
	wired := []string{}
	place, err := p.AgentPaths(cmd)
	if err != nil {
		return wired
	}
	for _, r := range wiring.Inspect(place) {
		if r.Wired {
			wired = append(wired, r.Harness)
		}
	}
	return wired
}
