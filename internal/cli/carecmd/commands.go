package carecmd

import (
	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
)

// Commands returns the commands under the heading "Forget, back up, repair", in the order of the help.
func Commands(p *command.Process) []*cobra.Command {
	return []*cobra.Command{
		purgeCommand(p), sweepCommand(p), backupCommand(p), restoreCommand(p), encryptCommand(p), archiveCommand(p),
		reconcileCommand(p), retryCommand(p),
	}
}
