package cli

import "github.com/spf13/cobra"

// findCommands returns the commands under the heading "Find and look", in the order of the help.
func findCommands(p *Process) []*cobra.Command {
	return []*cobra.Command{
		recallCommand(p), searchCommand(p), showCommand(p), whyCommand(p), contextCommand(p), watchCommand(p),
	}
}
