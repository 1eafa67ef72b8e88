package recordcmd

import (
	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
)

// Commands returns the commands under the heading "Decisions", in the order of the help.
func Commands(p *command.Process) []*cobra.Command {
	return []*cobra.Command{recordsCommand(p), sessionCommand(p)}
}
