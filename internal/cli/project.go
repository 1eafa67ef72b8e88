package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/project"
	"cairn/internal/store"
)

func projectCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "project",
		Short: "List, rename and merge projects",
		Long: `A project is a repository: all its worktrees and folders. It is known by a short id,
made from its folder's name, which never changes by itself.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		projectListCommand(p),
		projectChange(p, cobra.Command{
			Use: "alias ALIAS ID", Short: "Make ALIAS another name of the project ID",
			Long: `alias gives a project one more name. Every --project and every question of an
agent takes it in the place of the id.`,
			Example: "  cairn project alias webshop shop",
		}, (*cairn.Cairn).AddAlias),
		projectChange(p, cobra.Command{
			Use: "merge FROM INTO", Short: "Move everything of FROM to INTO, now and from now on",
			Long: `merge moves all that was recorded in one project to another, for instance after a
repository was cloned anew under another name. What happens in FROM's folder from
now on goes to INTO, and FROM becomes another name of it. It cannot be undone.`,
			Example: "  cairn project merge shop-2 shop",
		}, (*cairn.Cairn).Merge),
	)
	return cmd
}

func projectListCommand(p *Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the projects, the one seen last first",
		Long: `list prints a line per project: its id, how many sessions it has, its other names
and its folder.`,
		Args: noArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			list, err := c.Projects(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				if list == nil {
					list = []project.Summary{}
				}
				return printJSON(p.Out, list)
			}
			w := tabwriter.NewWriter(p.Out, 0, 4, 2, ' ', 0)
			for _, s := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.ID, counted(int(s.Sessions), "session"), strings.Join(s.Aliases, ", "), s.Root)
			}
			return w.Flush()
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// projectChange completes a command that changes something about two names.
func projectChange(p *Process, cmd cobra.Command, change func(c *cairn.Cairn, ctx context.Context, a, b string) error) *cobra.Command {
	cmd.Args = exactArgs(2, "two names")
	cmd.RunE = p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
		return change(c, cmd.Context(), args[0], args[1])
	})
	return &cmd
}
