package findcmd

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/observation"
	"cairn/internal/store"
)

func watchCommand(p *command.Process) *cobra.Command {
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Show what agents do as it happens, until interrupted",
		Long: `watch prints a line for each new observation of any agent: time, project, type and the
first line of its text. Stop it with Ctrl-C. It does not slow down recording.`,
		Example: "  cairn watch\n  cairn watch --project shop --json",
		Args:    command.NoArgs,
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			return c.Watch(cmd.Context(), name, func(o observation.Observation) error {
				if asJSON {
					return json.NewEncoder(p.Out).Encode(o)
				}
				first, _, _ := strings.Cut(o.Content, "\n")
				_, err := fmt.Fprintf(p.Out, "%s  %-16s %-14s %s\n",
					time.Unix(o.Timestamp, 0).Format(time.TimeOnly), o.Project, o.ObsType, command.Printable(first))
				return err
			})
		}),
	}
	cmd.Flags().StringVar(&name, "project", "", "only this project (id or alias)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}
