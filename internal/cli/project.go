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
		Long: `A project is a repository: all its worktrees and folders. It is known by a short id,
made from its folder's name, which never changes by itself. One that is no repository
can be made for its records alone.`,
		Example: "  cairn project list\n  cairn project overview\n  cairn project create \"Checkout design\" --id checkout-design",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		projectListCommand(p), projectCreateCommand(p), projectShowCommand(p), projectOverviewCommand(p),
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
	f := recordFlags{answers: answers{process: p}}
	return f.json(answering(&f, cobra.Command{
		Use:   "list",
		Short: "List the projects, the one seen last first",
		Long: `list prints a line per project: its id, how many sessions it has, its other names
and its folder.`,
		Args: noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) ([]project.Summary, error) {
		return listed(c.Projects(cmd.Context()))
	}, func(out io.Writer, list []project.Summary) error {
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		for _, s := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.ID, counted(int(s.Sessions), "session"), strings.Join(s.Aliases, ", "), s.Root)
		}
		return w.Flush()
	}))
}

// projectChange completes a command that changes something about two names.
func projectChange(p *Process, cmd cobra.Command, change func(c *cairn.Cairn, ctx context.Context, a, b string) error) *cobra.Command {
	cmd.Args = exactArgs(2, "two names")
	cmd.RunE = p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
		return change(c, cmd.Context(), args[0], args[1])
	})
	return &cmd
}

func projectCreateCommand(p *Process) *cobra.Command {
	var a record.CreateProjectArgs
	f := recordFlags{answers: answers{process: p}}
	cmd := answering(&f, cobra.Command{
		Use:   "create NAME",
		Short: "Make a project that is no repository, and print its id",
		Long: `create makes a project for records that belong to no repository. Commands and cairn
serve work on it with --project ID or CAIRN_PROJECT. Repositories need no create: they
become projects by themselves.`,
		Example: `  cairn project create "Checkout design" --id checkout-design
  cairn records tree --project checkout-design`,
		Args: exactArgs(1, "one name; put quotes around several words"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (record.Project, error) {
		a.Name = args[0]
		return c.Records().CreateProject(cmd.Context(), a)
	}, func(w io.Writer, q record.Project) error {
		_, err := fmt.Fprintln(w, q.ID)
		return err
	})
	cmd.Flags().StringVar(&a.ID, "id", "", "its id: lower-case letters, digits, dots, dashes (default: a generated one)")
	cmd.Flags().StringVar(&a.Description, "description", "", "what it is about, at most 2,000 characters")
	return f.json(cmd)
}

func projectShowCommand(p *Process) *cobra.Command {
	f := recordFlags{answers: answers{process: p}}
	return f.reading(answering(&f, cobra.Command{
		Use:     "show [ID]",
		Short:   "Show a project and its tick, the count of its records' writes",
		Long:    `show prints a project's id, name and description, and its tick.`,
		Example: "  cairn project show\n  cairn project show checkout-design",
		Args:    atMostOne("project's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (record.Project, error) {
		return c.Records().GetProject(cmd.Context(), record.GetProjectArgs{Caller: f.named(args), At: f.at})
	}, printProject))
}

func printProject(w io.Writer, q record.Project) error {
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
}

func projectOverviewCommand(p *Process) *cobra.Command {
	f := recordFlags{answers: answers{process: p}}
	return f.reading(answering(&f, cobra.Command{
		Use:   "overview [ID]",
		Short: "Show where a project's records stand and who works on them",
		Long: `overview prints the records at the top of the tree, those that are OPEN and LATER (at
most 50 each), the sessions that are not closed, and what happened last.`,
		Example: "  cairn project overview\n  cairn project overview checkout-design --at tick:17",
		Args:    atMostOne("project's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (record.Overview, error) {
		return c.Records().Overview(cmd.Context(), record.OverviewArgs{Caller: f.named(args), At: f.at})
	}, printOverview))
}

func printOverview(w io.Writer, o record.Overview) error {
	q := o.Project
	fmt.Fprintf(w, "%s, tick %d: %s, %d open, %d later\n", q.ID, q.Tick, counted(o.Totals.Roots, "root"), o.Totals.Open, o.Totals.Later)
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
