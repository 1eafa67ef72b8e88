package cli

import "github.com/spf13/cobra"

// serveCommands returns the commands under the heading "Servers", in the order of the help.
func serveCommands(p *Process) []*cobra.Command {
	return []*cobra.Command{openCommand(p), serveCommand(p), toolsCommand(p), httpTokenCommand(p), tokenCommand(p)}
}
