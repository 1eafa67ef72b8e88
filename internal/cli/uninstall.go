package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/wiring"
)

func uninstallCommand(p *Process) *cobra.Command {
	var purge, asJSON bool
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Disconnect your agents and restore their settings files",
		Long: `uninstall takes cairn's hooks and MCP server out of the settings of your agents.
A file that nobody changed since ` + "`cairn init`" + ` gets back what it was, byte for byte,
or is deleted if init made it. Of a file that was changed only cairn's entries are
taken out.

What was recorded stays, unless you ask for its end with --purge-data.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			place, err := p.place(cmd)
			if err != nil {
				return err
			}
			u, err := cairn.Uninstall(place, purge)
			if asJSON && err == nil {
				err = printJSON(p.Out, u)
			} else if !asJSON {
				p.printUnwired(place, u, purge, err)
			}
			if err == nil && wiring.AnyFailed(u.Files) {
				return exitError(1)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&purge, "purge-data", false, "also delete the data directory with everything recorded, without asking")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a report as JSON")
	return cmd
}

func (p *Process) printUnwired(place wiring.Paths, u cairn.UninstallReport, purge bool, err error) {
	for _, c := range u.Files {
		path := tilde(place, c.Path)
		switch c.Action {
		case wiring.Failed:
			report(p.Err, "uninstall", fmt.Errorf("%s is left alone: %s", path, c.Error))
		case wiring.Cleaned:
			fmt.Fprintf(p.Out, "%-9s  %s (changed since init; only cairn's entries were taken out)\n", c.Action, path)
		default:
			fmt.Fprintf(p.Out, "%-9s  %s\n", c.Action, path)
		}
	}
	switch data := tilde(place, place.DataDir); {
	case err != nil:
	case u.Purged:
		fmt.Fprintf(p.Out, "%-9s  %s\n", wiring.Deleted, data)
	case purge:
		report(p.Err, "uninstall", fmt.Errorf("%s stays: it holds the originals of the files above", data))
	case len(u.Files) == 0:
		fmt.Fprintln(p.Err, "cairn: no agent's settings name cairn")
	default:
		fmt.Fprintf(p.Out, "what was recorded stays in %s; --purge-data deletes it\n", data)
	}
}
