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
		Long:  `A project is a repository: all its worktrees and folders. It is known by a short id.`,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		projectListCommand(p),
		projectChange(p, "alias ALIAS ID", "Make ALIAS another name of the project ID", (*cairn.Cairn).AddAlias),
		projectChange(p, "merge FROM INTO", "Move everything of FROM to INTO, now and from now on", (*cairn.Cairn).Merge),
	)
	return cmd
}

func projectListCommand(p *Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the projects, the one seen last first",
		Args:  cobra.NoArgs,
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
				fmt.Fprintf(w, "%s\t%d sessions\t%s\t%s\n", s.ID, s.Sessions, strings.Join(s.Aliases, ", "), s.Root)
			}
			return w.Flush()
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func projectChange(p *Process, use, short string, change func(c *cairn.Cairn, ctx context.Context, a, b string) error) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  exactArgs(2, "two names"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			return change(c, cmd.Context(), args[0], args[1])
		}),
	}
}
