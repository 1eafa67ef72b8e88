package cli

import (
	"github.com/spf13/cobra"

	"cairn/internal/fault"
)

// unhooked makes a server refuse to start where test hooks are asked for, which this
// build has none of: a test must not take it for one that has (memories §15).
func (p *Process) unhooked(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.Flags().String("test-hooks", "", "")
	_ = cmd.Flags().MarkHidden("test-hooks") // it is there
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("test-hooks") || p.Getenv("CAIRN_TEST_HOOKS") != "" {
			return fault.New(fault.Invalid, "usage", "test hooks are not in this build")
		}
		return run(cmd, args)
	}
}
