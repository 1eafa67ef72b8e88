package projectcmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/cli/recordcmd"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/store"
)

func projectCommand(p *command.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "project",
		Short: "List projects, and decide which clones belong to them",
		Long: `A project is a repository: all clones of one remote, with their worktrees and folders.
Without a remote, copies of one history are one project. The id of a project comes from
the name of its folder and never changes automatically. create creates a project without
a repository, for records. link and split change which clones belong to a project.`,
		Example: "  cairn project list\n  cairn project overview\n  cairn project create \"Checkout design\" --id checkout-design",
		Args:    command.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		projectListCommand(p), projectCreateCommand(p), projectShowCommand(p), projectOverviewCommand(p),
		projectChange(p, cobra.Command{
			Use: "alias ALIAS ID", Short: "Add ALIAS as another name of the project ID",
			Long: `alias adds another name to a project. You and your agents can use it wherever a project
id is expected.`,
			Example: "  cairn project alias webshop shop",
		}, (*cairn.Cairn).AddAlias),
		projectChange(p, cobra.Command{
			Use: "merge FROM INTO", Short: "Merge the project FROM into INTO, permanently",
			Long: `merge moves everything recorded in one project to another, for instance after a
repository was cloned again under another name. New events in FROM's folder are then
recorded in INTO, and FROM becomes another name of INTO. merge cannot be undone.`,
			Example: "  cairn project merge shop-2 shop",
		}, (*cairn.Cairn).Merge),
		projectDecision(p, cobra.Command{
			Use: "link CHECKOUT PROJECT", Short: "Move a clone to another project",
			Long: `link moves the clone that contains the folder CHECKOUT to PROJECT, with its worktrees
and the sessions that started there. Use it for a fork that belongs to its original. If
the old project has no other clone, all of its data moves and it becomes another name of
PROJECT. split undoes link.`,
			Example: "  cairn project link ~/src/shop-fork shop",
			Args:    command.ExactArgs(2, "a folder and a project"),
		}, (*cairn.Cairn).LinkCheckout),
		projectDecision(p, cobra.Command{
			Use: "split CHECKOUT [ID]", Short: "Split a clone off as a project of its own",
			Long: `split moves the clone that contains the folder CHECKOUT to a new project, with its
worktrees and the sessions that started there. Records, mail and memories stay in the
old project. link undoes split.`,
			Example: "  cairn project split ~/src/shop-experiment shop-experiment",
			Args:    cobra.RangeArgs(1, 2),
		}, (*cairn.Cairn).SplitCheckout),
	)
	return cmd
}

func projectListCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	return f.JSONFlag(command.New(&f, cobra.Command{
		Use:   "list",
		Short: "List the projects, most recently used first",
		Long: `list prints a line per project: id, number of sessions, other names, and the folders of
its clones.`,
		Args: command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) ([]project.Summary, error) {
		return command.ListOf(c.Projects(cmd.Context()))
	}, func(out io.Writer, list []project.Summary) error {
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		for _, s := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.ID, command.Counted(int(s.Sessions), "session"), strings.Join(s.Aliases, ", "), rootsOf(s))
		}
		return w.Flush()
	}))
}

// rootsOf lists the folders of a project, the folder of the first checkout first.
func rootsOf(s project.Summary) string {
	roots := []string{}
	if s.Root != "" {
		roots = append(roots, s.Root)
	}
	for _, c := range s.Checkouts {
		if c.Root != "" && c.Root != s.Root {
			roots = append(roots, c.Root)
		}
	}
	return strings.Join(roots, ", ")
}

// projectChange completes a command that changes the projects of two names.
func projectChange(p *command.Process, cmd cobra.Command, change func(c *cairn.Cairn, ctx context.Context, a, b string) error) *cobra.Command {
	cmd.Args = command.ExactArgs(2, "two names")
	cmd.RunE = p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
		return change(c, cmd.Context(), args[0], args[1])
	})
	return &cmd
}

// projectDecision completes a command that sets the project of a checkout.
func projectDecision(p *command.Process, cmd cobra.Command, decide func(c *cairn.Cairn, ctx context.Context, path, id string) (project.Decision, error)) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	return f.JSONFlag(command.New(&f, cmd, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (project.Decision, error) {
		id := ""
		if len(args) > 1 {
			id = args[1]
		}
		return decide(c, cmd.Context(), args[0], id)
	}, func(w io.Writer, d project.Decision) error {
		if d.From == d.Project {
			_, err := fmt.Fprintf(w, "%s stays in %s\n", command.Printable(d.Checkout.Root), d.Project)
			return err
		}
		_, err := fmt.Fprintf(w, "%s is in %s now, with %s; it was in %s\n", command.Printable(d.Checkout.Root), d.Project, command.Counted(d.Sessions, "session"), d.From)
		return err
	}))
}

func projectCreateCommand(p *command.Process) *cobra.Command {
	var a record.CreateProjectArgs
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	cmd := command.New(&f, cobra.Command{
		Use:   "create NAME",
		Short: "Create a project without a repository, and print its id",
		Long: `create creates a project for records that belong to no repository. To work on it, use
--project ID or CAIRN_PROJECT with commands and cairn serve. Repositories become projects
automatically.`,
		Example: `  cairn project create "Checkout design" --id checkout-design
  cairn records tree --project checkout-design`,
		Args: command.ExactArgs(1, "one name; put quotes around several words"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (record.Project, error) {
		a.Name = args[0]
		return c.Records().CreateProject(cmd.Context(), a)
	}, func(w io.Writer, q record.Project) error {
		_, err := fmt.Fprintln(w, q.ID)
		return err
	})
	cmd.Flags().StringVar(&a.ID, "id", "", "the project's id: lower-case letters, digits, dots, dashes (default: a generated one)")
	cmd.Flags().StringVar(&a.Description, "description", "", "a description of at most 2,000 characters")
	return f.JSONFlag(cmd)
}

func projectShowCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	return f.ReadFlags(command.New(&f, cobra.Command{
		Use:     "show [ID]",
		Short:   "Show a project and its tick, the count of its records' writes",
		Long:    `show prints a project's id, name and description, and its tick.`,
		Example: "  cairn project show\n  cairn project show checkout-design",
		Args:    command.AtMostOne("project's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (record.Project, error) {
		return c.Records().GetProject(cmd.Context(), record.GetProjectArgs{Caller: f.Named(args), At: f.At})
	}, printProject))
}

func printProject(w io.Writer, q record.Project) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "%s\t%s\n", q.ID, command.Printable(q.Name))
	if q.Description != "" {
		fmt.Fprintf(t, "about\t%s\n", command.OneLine(q.Description))
	}
	if q.Created != 0 {
		fmt.Fprintf(t, "created\t%s\n", q.Created)
	}
	fmt.Fprintf(t, "tick\t%d\n", q.Tick)
	return t.Flush()
}

func projectOverviewCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	return f.ReadFlags(command.New(&f, cobra.Command{
		Use:   "overview [ID]",
		Short: "Show the state of a project's records and who works on them",
		Long: `overview prints the records at the top of the tree, the OPEN and LATER records (at most
50 each), the open sessions, and the latest activity.`,
		Example: "  cairn project overview\n  cairn project overview checkout-design --at tick:17",
		Args:    command.AtMostOne("project's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (record.Overview, error) {
		return c.Records().Overview(cmd.Context(), record.OverviewArgs{Caller: f.Named(args), At: f.At})
	}, printOverview))
}

func printOverview(w io.Writer, o record.Overview) error {
	q := o.Project
	fmt.Fprintf(w, "%s, tick %d: %s, %d open, %d later\n", q.ID, q.Tick, command.Counted(o.Totals.Roots, "root"), o.Totals.Open, o.Totals.Later)
	if q.Description != "" {
		fmt.Fprintln(w, command.OneLine(q.Description))
	}
	for _, part := range []struct {
		title string
		refs  []record.Ref
	}{{"roots", o.RootRecords}, {"open", o.OpenRecords}, {"later", o.LaterRecords}} {
		if len(part.refs) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", part.title)
		if err := recordcmd.PrintRefs(w, part.refs); err != nil {
			return err
		}
	}
	if len(o.OpenSessions) > 0 {
		fmt.Fprint(w, "\nsessions\n")
		if err := recordcmd.PrintSessions(w, o.OpenSessions); err != nil {
			return err
		}
	}
	if len(o.RecentActivity) == 0 {
		return nil
	}
	fmt.Fprint(w, "\nactivity\n")
	return recordcmd.PrintActivity(w, o.RecentActivity)
}
