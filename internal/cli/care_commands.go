package cli

import "github.com/spf13/cobra"

// careCommands returns the commands under the heading "Forget, back up, repair", in the order of the help.
func careCommands(p *Process) []*cobra.Command {
	return []*cobra.Command{
		purgeCommand(p), sweepCommand(p), backupCommand(p), restoreCommand(p), encryptCommand(p), archiveCommand(p),
		reconcileCommand(p), retryCommand(p),
	}
}
