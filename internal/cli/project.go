package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/store"
)

func projectCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "project",
		Short: "Make, list, show, rename and merge projects",
		Long: `A project is a repository: all its worktrees and folders. It is known by a short id.
One that is no repository can be made for its records alone.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		projectListCommand(p), projectCreateCommand(p), projectShowCommand(p), projectOverviewCommand(p),
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

func projectCreateCommand(p *Process) *cobra.Command {
	var a record.CreateProjectArgs
	f := recordFlags{process: p}
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Make a project that is no repository, and print its id",
		Example: `  cairn project create "Checkout design" --id checkout-design`,
		Args:    exactArgs(1, "one name; put quotes around several words"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			a.Name = args[0]
			made, err := c.Records().CreateProject(cmd.Context(), a)
			if err != nil {
				return err
			}
			return show(&f, made, func(w io.Writer, q record.Project) error {
				_, err := fmt.Fprintln(w, q.ID)
				return err
			})
		}),
	}
	cmd.Flags().StringVar(&a.ID, "id", "", "its id: lower-case letters, digits, dots, dashes (default: a generated one)")
	cmd.Flags().StringVar(&a.Description, "description", "", "what it is about, at most 2,000 characters")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

// named is f's caller for the project that an argument names, which must exist;
// without one for the current project.
func (f *recordFlags) named(args []string) record.Caller {
	c := f.caller()
	if len(args) > 0 {
		c.ProjectID = args[0]
	}
	return c
}

func projectShowCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	cmd := &cobra.Command{
		Use:   "show [ID]",
		Short: "Show a project and its tick, the count of its records' writes",
		Args:  cobra.MaximumNArgs(1),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			q, err := c.Records().GetProject(cmd.Context(), record.GetProjectArgs{Caller: f.named(args), At: f.at})
			if err != nil {
				return err
			}
			return show(&f, q, func(w io.Writer, q record.Project) error {
				t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				fmt.Fprintf(t, "%s\t%s\n", q.ID, printable(q.Name))
				if q.Description != "" {
					fmt.Fprintf(t, "about\t%s\n", oneLine(q.Description))
				}
				if q.Created != 0 {
					fmt.Fprintf(t, "created\t%s\n", q.Created)
				}
				fmt.Fprintf(t, "tick\t%d\n", q.Tick)
				return t.Flush()
			})
		}),
	}
	return f.reading(cmd)
}

func projectOverviewCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	cmd := &cobra.Command{
		Use:   "overview [ID]",
		Short: "Show where a project's records stand and who works on them",
		Args:  cobra.MaximumNArgs(1),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			o, err := c.Records().Overview(cmd.Context(), record.OverviewArgs{Caller: f.named(args), At: f.at})
			if err != nil {
				return err
			}
			return show(&f, o, printOverview)
		}),
	}
	return f.reading(cmd)
}

func printOverview(w io.Writer, o record.Overview) error {
	q := o.Project
	fmt.Fprintf(w, "%s, tick %d: %d roots, %d open, %d later\n", q.ID, q.Tick, o.Totals.Roots, o.Totals.Open, o.Totals.Later)
	if q.Description != "" {
		fmt.Fprintln(w, oneLine(q.Description))
	}
	for _, part := range []struct {
		title string
		refs  []record.Ref
	}{{"roots", o.RootRecords}, {"open", o.OpenRecords}, {"later", o.LaterRecords}} {
		if len(part.refs) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", part.title)
		if err := printRefs(w, part.refs); err != nil {
			return err
		}
	}
	if len(o.OpenSessions) > 0 {
		fmt.Fprint(w, "\nsessions\n")
		if err := printSessions(w, o.OpenSessions); err != nil {
			return err
		}
	}
	if len(o.RecentActivity) == 0 {
		return nil
	}
	fmt.Fprint(w, "\nactivity\n")
	return printActivity(w, o.RecentActivity)
}
