package cli

import "github.com/spf13/cobra"

// recordCommands returns the commands under the heading "Decisions", in the order of the help.
func recordCommands(p *Process) []*cobra.Command {
	return []*cobra.Command{recordsCommand(p), sessionCommand(p)}
}
