package setupcmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/wiring"
)

func uninstallCommand(p *command.Process) *cobra.Command {
	var purge, asJSON bool
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Disconnect your agents and restore their settings files",
		Long: `uninstall removes cairn's hooks and MCP server from the settings of your agents. A file
that is unchanged since ` + "`cairn init`" + ` is restored, byte for byte, or deleted if init
created it. From a changed file only cairn's entries are removed.

Recorded data stays, unless you use --purge-data.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			place, err := p.AgentPaths(cmd)
			if err != nil {
				return err
			}
			u, err := cairn.Uninstall(place, purge)
			if asJSON && err == nil {
				err = command.PrintJSON(p.Out, u)
			} else if !asJSON {
				printUninstall(p, place, u, purge, err)
			}
			if err == nil && wiring.AnyFailed(u.Files) {
				return command.ExitError(1)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&purge, "purge-data", false, "also delete the data directory with everything recorded, without confirmation")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a report as JSON")
	return cmd
}

func printUninstall(p *command.Process, place wiring.Paths, u cairn.UninstallReport, purge bool, err error) {
	for _, c := range u.Files {
		path := tilde(place, c.Path)
		switch c.Action {
		case wiring.Failed:
			command.Report(p.Err, "uninstall", fmt.Errorf("%s was not changed: %s", path, c.Error))
		case wiring.Cleaned:
			fmt.Fprintf(p.Out, "%-9s  %s (changed since init; only cairn's entries were removed)\n", c.Action, path)
		default:
			fmt.Fprintf(p.Out, "%-9s  %s\n", c.Action, path)
		}
	}
	switch data := tilde(place, place.DataDir); {
	case err != nil:
	case u.Purged:
		fmt.Fprintf(p.Out, "%-9s  %s\n", wiring.Deleted, data)
	case purge:
		command.Report(p.Err, "uninstall", fmt.Errorf("%s was not deleted: it contains the originals of the files above", data))
	case len(u.Files) == 0:
		fmt.Fprintln(p.Err, "cairn: no agent's settings contain cairn")
	default:
		fmt.Fprintf(p.Out, "recorded data stays in %s; --purge-data deletes it\n", data)
	}
}
