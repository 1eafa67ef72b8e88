package servecmd

import (
	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
)

// Commands returns the commands under the heading "Servers", in the order of the help.
func Commands(p *command.Process) []*cobra.Command {
	return []*cobra.Command{openCommand(p), serveCommand(p), toolsCommand(p), httpTokenCommand(p), tokenCommand(p)}
}
