package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
	"cairn/internal/store"
)

func versionCommand(p *command.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of cairn, its SQLite and its Go",
		Args:  command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return command.PrintJSON(p.Out, map[string]string{"version": p.Version, "driver": store.Driver, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintf(p.Out, "cairn %s (%s, %s, %s/%s)\n", p.Version, store.Driver, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
