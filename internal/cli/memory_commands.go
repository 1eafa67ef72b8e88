package cli

import "github.com/spf13/cobra"

// memoryCommands returns the commands under the heading "Memories and devices", in the order of the help.
func memoryCommands(p *Process) []*cobra.Command {
	return []*cobra.Command{memoryCommand(p), hubCommand(p), replicationCommand(p), whoamiCommand(p), healthCommand(p)}
}
