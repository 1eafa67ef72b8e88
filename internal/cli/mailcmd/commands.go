package mailcmd

import (
	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
)

// Commands returns the commands under the heading "Several agents", in the order of the help.
func Commands(p *command.Process) []*cobra.Command {
	return []*cobra.Command{
		agentsCommand(p), mailCommand(p), contactsCommand(p), reserveCommand(p), releaseCommand(p), renewCommand(p),
		reservationsCommand(p), guardCommand(p),
	}
}
