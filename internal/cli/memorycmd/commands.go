package memorycmd

import (
	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
)

// Commands returns the commands under the heading "Memories and devices", in the order of the help.
func Commands(p *command.Process) []*cobra.Command {
	return []*cobra.Command{memoryCommand(p), hubCommand(p), replicationCommand(p), whoamiCommand(p), healthCommand(p)}
}
