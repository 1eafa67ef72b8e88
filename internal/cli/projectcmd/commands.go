package projectcmd

import (
	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
)

// Commands returns the commands under the heading "Sessions and projects", in the order of the help.
func Commands(p *command.Process) []*cobra.Command {
	return []*cobra.Command{
		importCommand(p), exportCommand(p), markCommand(p), pinCommand(p, false), pinCommand(p, true),
		projectCommand(p),
	}
}
