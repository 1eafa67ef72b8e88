package cli

import (
	"context"
	"fmt"
	"io"

	"cairn"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/service"

	"github.com/spf13/cobra"
)

func agentsCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "Show and register the agents of a project",
		Long: `agents is about the names under which agents write mail and reserve files. An agent
gets one from the tools of cairn serve, or here; it is an adjective and a noun, such
as BlueLake, and means one agent in one project: the repository here, all of its
worktrees, or that of --project.`,
		Example: `  cairn agents register --program codex --model gpt-5
  cairn agents list
  export CAIRN_AGENT=BlueLake      # commands of this shell act as BlueLake`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		agentsRegisterCommand(p, false), agentsRegisterCommand(p, true), agentsListCommand(p), agentsShowCommand(p),
		agentsRetireCommand(p), agentsTokenCommand(p),
	)
	return cmd
}

func agentsRegisterCommand(p *Process, create bool) *cobra.Command {
	f := mailing(p)
	var a agents.RegisterArgs
	command := cobra.Command{
		Use:   "register [NAME] --program PROGRAM --model MODEL",
		Short: "Register an agent, or update one",
		Long: `register prints the name of an agent: NAME if it is one, else one that is generated.
Of an agent that is there it changes program, model and task, and brings it back if it
was retired. The project is made if it is not there.`,
		Example: `  cairn agents register --program codex --model gpt-5 --task "the ledger's tests"
  cairn agents register BlueLake --program codex --model gpt-5 --token`,
		Args: atMostOne("agent's name"),
	}
	if create {
		command.Use, command.Short = "create [NAME] --program PROGRAM --model MODEL", "Create another agent"
		command.Long = "create is register, but refuses a NAME that is taken."
		command.Example = "  cairn agents create GreenCastle --program claude-code --model opus"
	}
	cmd := answering(&f, command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (r agents.Registered, err error) {
		if err := wanted(cmd, "program", "model"); err != nil {
			return r, err
		}
		if a.ProjectKey = f.key(c); len(args) > 0 {
			a.Name = args[0]
		}
		r, err = done(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (agents.Registered, error) {
			if create {
				return o.CreateAgent(ctx, who, a)
			}
			return o.RegisterAgent(ctx, who, a)
		})
		if err == nil && len(args) > 0 && args[0] != r.Name {
			f.say("%s is no name for an agent, so it got another (mail.name_mode)", args[0])
		}
		return r, err
	}, printRegistered)
	cmd.Flags().StringVar(&a.Program, "program", "", "the program that it runs in, such as claude-code")
	cmd.Flags().StringVar(&a.Model, "model", "", "the model that it is")
	cmd.Flags().StringVar(&a.TaskDescription, "task", "", "what it is here for")
	cmd.Flags().StringVar(&a.AttachmentsPolicy, "attachments", "", "auto, inline, file or none (default auto)")
	cmd.Flags().BoolVar(&a.WantToken, "token", false, "protect it: whoever acts as it over MCP or HTTP then needs its token, printed this once")
	return f.reading(cmd)
}

func printRegistered(w io.Writer, r agents.Registered) error {
	fmt.Fprintln(w, printable(r.Name))
	if r.Token != "" {
		_, err := fmt.Fprintf(w, "registration_token %s\n", r.Token)
		return err
	}
	return nil
}

func agentsListCommand(p *Process) *cobra.Command {
	f := mailing(p)
	a := agents.ListAgentsArgs{ActiveWithinDays: new(int), Limit: new(int)}
	cmd := answering(&f, cobra.Command{
		Use:   "list",
		Short: "List the agents of a project",
		Long: `list prints a line per agent: its name, when it last did something, how many messages
it has not read and reservations it holds, its branch, and what it is here for.`,
		Example: "  cairn agents list --active-days 1\n  cairn agents list --retired --json",
		Args:    noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) ([]agents.ListedAgent, error) {
		q := a
		q.ProjectKey, q.Limit = f.key(c), limited(cmd, a.Limit)
		if !cmd.Flags().Changed("active-days") {
			q.ActiveWithinDays = nil
		}
		return asked(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) ([]agents.ListedAgent, error) {
			return o.ListAgents(ctx, who, q)
		})
	}, printAgents)
	cmd.Flags().IntVar(a.ActiveWithinDays, "active-days", 0, "only those that did something within so many days")
	cmd.Flags().BoolVar(&a.IncludeRetired, "retired", false, "also those that are retired")
	cmd.Flags().StringVar(&a.Program, "program", "", "only those that run in this program")
	cmd.Flags().IntVar(a.Limit, "limit", 100, "most agents, 1 to 1000")
	return f.reading(cmd)
}

func printAgents(w io.Writer, list []agents.ListedAgent) error {
	var lines [][]string
	for _, a := range list {
		where := text(a.Branch)
		if a.Worktree != nil {
			where += " (" + text(a.Worktree) + ")"
		}
		name := printable(a.Name)
		if a.Retired != 0 {
			name += " (retired)"
		}
		lines = append(lines, []string{
			name, upTo(a.LastActive), fmt.Sprintf("%d unread", a.Unread), fmt.Sprintf("%d held", a.Reservations),
			oneLine(a.Program), where, oneLine(a.TaskDescription),
		})
	}
	return rows(w, lines)
}

func agentsShowCommand(p *Process) *cobra.Command {
	f := mailing(p)
	return f.reading(answering(&f, cobra.Command{
		Use:     "show NAME",
		Short:   "Show an agent and its latest commits",
		Example: "  cairn agents show BlueLake",
		Args:    exactArgs(1, "one agent's name"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (agents.Profile, error) {
		return asked(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (agents.Profile, error) {
			return o.Whois(ctx, who, agents.WhoisArgs{ProjectKey: f.key(c), AgentName: args[0]})
		})
	}, printProfile))
}

func printProfile(w io.Writer, a agents.Profile) error {
	lines := [][]string{{printable(a.Name), oneLine(a.Program) + ", " + oneLine(a.Model)}}
	if a.TaskDescription != "" {
		lines = append(lines, []string{"task", oneLine(a.TaskDescription)})
	}
	lines = append(lines, []string{"since", upTo(a.Inception)}, []string{"last active", upTo(a.LastActive)})
	for _, k := range a.Commits {
		lines = append(lines, []string{"commit", k.SHA[:min(12, len(k.SHA))] + "  " + upTo(k.Authored) + "  " + oneLine(k.Summary)})
	}
	return rows(w, lines)
}

func agentsRetireCommand(p *Process) *cobra.Command {
	f := mailing(p)
	var reason string
	cmd := answering(&f, cobra.Command{
		Use:   "retire NAME",
		Short: "Remove an agent from lists and delivery, and release its reservations",
		Long: `retire takes an agent out of lists, broadcasts and delivery and releases its
reservations. Its name and its mail stay; registering it again brings it back.`,
		Example: "  cairn agents retire BlueLake",
		Args:    exactArgs(1, "one agent's name"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (agents.Retired, error) {
		return done(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (agents.Retired, error) {
			return o.RetireAgent(ctx, who, agents.RetireArgs{ProjectKey: f.key(c), AgentName: args[0], Reason: reason})
		})
	}, func(w io.Writer, r agents.Retired) error {
		_, err := fmt.Fprintf(w, "%s retired at %s, %s released\n", printable(r.Agent), upTo(r.At), counted(r.Released, "reservation"))
		return err
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is not kept, tell it in a message")
	return f.reading(cmd)
}

func agentsTokenCommand(p *Process) *cobra.Command {
	f := mailing(p)
	return f.reading(answering(&f, cobra.Command{
		Use:   "token NAME",
		Short: "Replace the token of an agent",
		Long: `token prints a new registration_token of an agent, this once, and makes the former
one worthless. Whoever acts as the agent over MCP or HTTP needs it from now on.`,
		Example: "  cairn agents token BlueLake",
		Args:    exactArgs(1, "one agent's name"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (agents.Registered, error) {
		return done(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (agents.Registered, error) {
			return o.RotateToken(ctx, who, f.key(c), args[0])
		})
	}, func(w io.Writer, r agents.Registered) error {
		_, err := fmt.Fprintln(w, r.Token)
		return err
	}))
}
