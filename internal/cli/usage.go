package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
	"cairn/internal/fault"
)

// helpCommand prints the help of the command that its arguments name.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, left, err := cmd.Root().Find(args)
			if err != nil || len(left) > 0 {
				return command.NoArgs(cmd.Root(), args)
			}
			return about.Help()
		},
	}
}

// flagError returns the error of an invalid flag, without the details of strconv.
func flagError(cmd *cobra.Command, err error) error {
	why, _, _ := strings.Cut(err.Error(), " flag: strconv.")
	return fault.New(fault.Invalid, "usage", why).WithHint(command.SeeHelp(cmd))
}
