package setupcmd

import (
	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
)

// Commands returns the commands under the heading "Set up", in the order of the help.
func Commands(p *command.Process) []*cobra.Command {
	return []*cobra.Command{initCommand(p), uninstallCommand(p), doctorCommand(p), statusCommand(p)}
}
