package mailcmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/service"
)

func agentsCommand(p *command.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "Show and register the agents of a project",
		Long: `agents shows and registers the agents of a project. An agent writes mail and reserves
files under its name: an adjective and a noun, such as BlueLake. It gets the name from
the tools of cairn serve, or from cairn agents register. A name belongs to one project:
that of the current repository with all its worktrees, or that of --project.`,
		Example: `  cairn agents register --program codex --model gpt-5
  cairn agents list
  export CAIRN_AGENT=BlueLake      # commands of this shell act as BlueLake`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		agentsRegisterCommand(p, false), agentsRegisterCommand(p, true), agentsListCommand(p), agentsShowCommand(p),
		agentsRetireCommand(p), agentsTokenCommand(p),
	)
	return cmd
}

func agentsRegisterCommand(p *command.Process, create bool) *cobra.Command {
	f := newMailFlags(p)
	var a agents.RegisterArgs
	texts := cobra.Command{
		Use:   "register [NAME] --program PROGRAM --model MODEL",
		Short: "Register an agent, or update one",
		Long: `register registers an agent and prints its name. An invalid or missing NAME is replaced
by a generated one. For an existing agent it updates program, model and task, and ends
its retirement. A project that does not exist yet is created.`,
		Example: `  cairn agents register --program codex --model gpt-5 --task "the ledger's tests"
  cairn agents register BlueLake --program codex --model gpt-5 --token`,
		Args: command.AtMostOne("agent's name"),
	}
	if create {
		texts.Use, texts.Short = "create [NAME] --program PROGRAM --model MODEL", "Create another agent"
		texts.Long = "create does the same as register, but fails if NAME is taken."
		texts.Example = "  cairn agents create GreenCastle --program claude-code --model opus"
	}
	cmd := command.New(&f, texts, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (r agents.Registered, err error) {
		if err := command.RequireFlags(cmd, "program", "model"); err != nil {
			return r, err
		}
		if a.ProjectKey = f.key(c); len(args) > 0 {
			a.Name = args[0]
		}
		r, err = writeMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (agents.Registered, error) {
			if create {
				return o.CreateAgent(ctx, who, a)
			}
			return o.RegisterAgent(ctx, who, a)
		})
		if err == nil && len(args) > 0 && args[0] != r.Name {
			f.Note("%s is not a valid agent name, so another one was generated (mail.name_mode)", args[0])
		}
		return r, err
	}, printRegistered)
	cmd.Flags().StringVar(&a.Program, "program", "", "the agent's program, such as claude-code")
	cmd.Flags().StringVar(&a.Model, "model", "", "the agent's model")
	cmd.Flags().StringVar(&a.TaskDescription, "task", "", "the agent's task")
	cmd.Flags().StringVar(&a.AttachmentsPolicy, "attachments", "", "how attachments are stored: auto, inline, file or none (default auto)")
	cmd.Flags().BoolVar(&a.WantToken, "token", false, "create a token, printed only now; acting as the agent over MCP or HTTP then requires it")
	return f.readFlags(cmd)
}

func printRegistered(w io.Writer, r agents.Registered) error {
	fmt.Fprintln(w, command.Printable(r.Name))
	if r.Token != "" {
		_, err := fmt.Fprintf(w, "registration_token %s\n", r.Token)
		return err
	}
	return nil
}

func agentsListCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	a := agents.ListAgentsArgs{ActiveWithinDays: new(int), Limit: new(int)}
	cmd := command.New(&f, cobra.Command{
		Use:   "list",
		Short: "List the agents of a project",
		Long: `list prints a line per agent: name, time of the last activity, number of unread
messages, number of reservations, branch and task.`,
		Example: "  cairn agents list --active-days 1\n  cairn agents list --retired --json",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) ([]agents.ListedAgent, error) {
		q := a
		q.ProjectKey, q.Limit = f.key(c), limitFlag(cmd, a.Limit)
		if !cmd.Flags().Changed("active-days") {
			q.ActiveWithinDays = nil
		}
		return readMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) ([]agents.ListedAgent, error) {
			return o.ListAgents(ctx, who, q)
		})
	}, printAgents)
	cmd.Flags().IntVar(a.ActiveWithinDays, "active-days", 0, "only agents active within this number of days")
	cmd.Flags().BoolVar(&a.IncludeRetired, "retired", false, "also retired agents")
	cmd.Flags().StringVar(&a.Program, "program", "", "only agents of this program")
	cmd.Flags().IntVar(a.Limit, "limit", 100, "maximum number of agents (1–1000)")
	return f.readFlags(cmd)
}

func printAgents(w io.Writer, list []agents.ListedAgent) error {
	var lines [][]string
	for _, a := range list {
		where := optionalText(a.Branch)
		if a.Worktree != nil {
			where += " (" + optionalText(a.Worktree) + ")"
		}
		name := command.Printable(a.Name)
		if a.Retired != 0 {
			name += " (retired)"
		}
		lines = append(lines, []string{
			name, formatTime(a.LastActive), fmt.Sprintf("%d unread", a.Unread), fmt.Sprintf("%d held", a.Reservations),
			command.OneLine(a.Program), where, command.OneLine(a.TaskDescription),
		})
	}
	return command.Rows(w, lines)
}

func agentsShowCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	return f.readFlags(command.New(&f, cobra.Command{
		Use:     "show NAME",
		Short:   "Show an agent and its latest commits",
		Example: "  cairn agents show BlueLake",
		Args:    command.ExactArgs(1, "one agent's name"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (agents.Profile, error) {
		return readMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (agents.Profile, error) {
			return o.Whois(ctx, who, agents.WhoisArgs{ProjectKey: f.key(c), AgentName: args[0]})
		})
	}, printProfile))
}

func printProfile(w io.Writer, a agents.Profile) error {
	lines := [][]string{{command.Printable(a.Name), command.OneLine(a.Program) + ", " + command.OneLine(a.Model)}}
	if a.TaskDescription != "" {
		lines = append(lines, []string{"task", command.OneLine(a.TaskDescription)})
	}
	lines = append(lines, []string{"since", formatTime(a.Inception)}, []string{"last active", formatTime(a.LastActive)})
	for _, k := range a.Commits {
		lines = append(lines, []string{"commit", k.SHA[:min(12, len(k.SHA))] + "  " + formatTime(k.Authored) + "  " + command.OneLine(k.Summary)})
	}
	return command.Rows(w, lines)
}

func agentsRetireCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	var reason string
	cmd := command.New(&f, cobra.Command{
		Use:   "retire NAME",
		Short: "Remove an agent from lists and delivery, and release its reservations",
		Long: `retire removes an agent from lists, broadcasts and delivery, and releases its
reservations. Its name and its mail stay. To undo it, register the agent again.`,
		Example: "  cairn agents retire BlueLake",
		Args:    command.ExactArgs(1, "one agent's name"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (agents.Retired, error) {
		return writeMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (agents.Retired, error) {
			return o.RetireAgent(ctx, who, agents.RetireArgs{ProjectKey: f.key(c), AgentName: args[0], Reason: reason})
		})
	}, func(w io.Writer, r agents.Retired) error {
		_, err := fmt.Fprintf(w, "%s retired at %s, %s released\n", command.Printable(r.Agent), formatTime(r.At), command.Counted(r.Released, "reservation"))
		return err
	})
	cmd.Flags().StringVar(&reason, "reason", "", "the reason; it is not stored, so also write it in a message")
	return f.readFlags(cmd)
}

func agentsTokenCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	return f.readFlags(command.New(&f, cobra.Command{
		Use:   "token NAME",
		Short: "Replace the token of an agent",
		Long: `token creates a new registration_token for an agent and prints it, only now. The old
token becomes invalid. Acting as the agent over MCP or HTTP requires the new one.`,
		Example: "  cairn agents token BlueLake",
		Args:    command.ExactArgs(1, "one agent's name"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (agents.Registered, error) {
		return writeMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (agents.Registered, error) {
			return o.RotateToken(ctx, who, f.key(c), args[0])
		})
	}, func(w io.Writer, r agents.Registered) error {
		_, err := fmt.Fprintln(w, r.Token)
		return err
	}))
}
