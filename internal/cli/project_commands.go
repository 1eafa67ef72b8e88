package cli

import "github.com/spf13/cobra"

// projectCommands returns the commands under the heading "Sessions and projects", in the order of the help.
func projectCommands(p *Process) []*cobra.Command {
	return []*cobra.Command{
		importCommand(p), exportCommand(p), markCommand(p), pinCommand(p, false), pinCommand(p, true),
		projectCommand(p),
	}
}
