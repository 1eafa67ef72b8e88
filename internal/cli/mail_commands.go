package cli

import "github.com/spf13/cobra"

// mailCommands returns the commands under the heading "Several agents", in the order of the help.
func mailCommands(p *Process) []*cobra.Command {
	return []*cobra.Command{
		agentsCommand(p), mailCommand(p), contactsCommand(p), reserveCommand(p), releaseCommand(p), renewCommand(p),
		reservationsCommand(p), guardCommand(p),
	}
}
