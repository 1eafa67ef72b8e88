package findcmd

import (
	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
)

// Commands returns the commands under the heading "Find and look", in the order of the help.
func Commands(p *command.Process) []*cobra.Command {
	return []*cobra.Command{
		recallCommand(p), searchCommand(p), showCommand(p), whyCommand(p), contextCommand(p), watchCommand(p),
	}
}
