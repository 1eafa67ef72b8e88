package cli

import "github.com/spf13/cobra"

// setupCommands returns the commands under the heading "Set up", in the order of the help.
func setupCommands(p *Process) []*cobra.Command {
	return []*cobra.Command{initCommand(p), uninstallCommand(p), doctorCommand(p), statusCommand(p)}
}
