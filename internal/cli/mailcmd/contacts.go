package mailcmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/service"
)

func contactsCommand(p *command.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "contacts",
		Short: "Decide which agents may write to each other",
		Long: `contacts decides which agents may write to each other. Within a project most agents
need no permission (policy auto). An agent of another project, or one with the policy
contacts_only, must approve the sender as a contact first.`,
		Example: `  cairn contacts request GreenCastle --as BlueLake --reason "the schema"
  cairn contacts respond BlueLake --accept --as GreenCastle
  cairn contacts policy contacts_only --as GreenCastle`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		contactsRequestCommand(p), contactsRespondCommand(p), contactsCreateCommand(p), contactsListCommand(p), contactsPolicyCommand(p),
	)
	return cmd
}

// linkFlags are the flags of commands that work on one contact.
type linkFlags struct{ project, reason, ttl string }

func (l *linkFlags) flags(cmd *cobra.Command, ttl string) {
	cmd.Flags().StringVar(&l.project, "in", "", "the other agent's project, if it differs")
	cmd.Flags().StringVar(&l.reason, "reason", "", "the reason")
	cmd.Flags().StringVar(&l.ttl, "ttl", "", "how long the contact is valid: seconds, or a duration such as 48h (default "+ttl+")")
}

func contactsRequestCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	var l linkFlags
	cmd := command.New(&f, cobra.Command{
		Use:   "request NAME",
		Short: "Request permission to write to an agent",
		Long: `request sends the other agent a message that asks for permission. It does not change
a contact that was approved or blocked before.`,
		Example: `  cairn contacts request GreenCastle --as BlueLake --reason "the schema"
  cairn contacts request RedFox --in /home/me/other --as BlueLake`,
		Args: command.ExactArgs(1, "one agent's name"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (k messages.Link, err error) {
		me, ttl, err := f.linkArgs(cmd, c, l)
		if err != nil {
			return k, err
		}
		return writeMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (messages.Link, error) {
			return o.RequestContact(ctx, who, messages.RequestArgs{
				ProjectKey: f.key(c), FromAgent: me, ToAgent: args[0], ToProject: l.project, Reason: l.reason, TTLSeconds: ttl,
			})
		})
	}, printLink)
	l.flags(cmd, "a week")
	return f.actFlags(cmd)
}

// linkArgs returns the acting agent and the lifetime of a contact, nil for the default.
func (f *mailFlags) linkArgs(cmd *cobra.Command, c *cairn.Cairn, l linkFlags) (me string, ttl *int64, err error) {
	if ttl, err = lifetimeOf("ttl", l.ttl); err == nil {
		me, err = f.actor(cmd.Context(), c)
	}
	return me, ttl, err
}

func printLink(w io.Writer, k messages.Link) error {
	until := ""
	if k.Expires != 0 {
		until = " until " + formatTime(k.Expires)
	}
	_, err := fmt.Fprintf(w, "%s to %s: %s%s\n", command.Printable(k.From), command.Printable(k.To), k.Status, until)
	return err
}

func contactsRespondCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	var l linkFlags
	var accept, block bool
	cmd := command.New(&f, cobra.Command{
		Use:   "respond NAME --accept|--block",
		Short: "Allow an agent to write to you, or block it",
		Long: `respond approves or blocks an agent that requested permission. You can also run it
before there is a request. A block lasts until you accept the agent.`,
		Example: "  cairn contacts respond BlueLake --accept --as GreenCastle\n  cairn contacts respond BlueLake --block --as GreenCastle",
		Args:    command.ExactArgs(1, "one agent's name"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (r messages.Response, err error) {
		if accept == block {
			return r, fault.New(fault.Invalid, "usage", "requires --accept or --block").WithHint(command.SeeHelp(cmd))
		}
		me, ttl, err := f.linkArgs(cmd, c, l)
		if err != nil {
			return r, err
		}
		return writeMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (messages.Response, error) {
			return o.RespondContact(ctx, who, messages.RespondArgs{
				ProjectKey: f.key(c), ToAgent: me, FromAgent: args[0], Accept: accept, TTLSeconds: ttl, FromProject: l.project,
			})
		})
	}, func(w io.Writer, r messages.Response) error {
		status := "blocked"
		if r.Approved {
			status = "approved"
		}
		return printLink(w, messages.Link{From: r.From, To: r.To, Status: status, Expires: r.Expires})
	})
	cmd.Flags().BoolVar(&accept, "accept", false, "allow the agent to write")
	cmd.Flags().BoolVar(&block, "block", false, "do not allow it")
	cmd.Flags().StringVar(&l.project, "in", "", "the other agent's project, if it differs")
	cmd.Flags().StringVar(&l.ttl, "ttl", "", "how long the contact is valid: seconds, or a duration such as 48h (default 30 days)")
	return f.actFlags(cmd)
}

func contactsCreateCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	var l linkFlags
	cmd := command.New(&f, cobra.Command{
		Use:     "create NAME",
		Short:   "Allow an agent to write to you before it asks",
		Example: "  cairn contacts create RedFox --in /home/me/other --as GreenCastle",
		Args:    command.ExactArgs(1, "one agent's name"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (k messages.Link, err error) {
		me, ttl, err := f.linkArgs(cmd, c, l)
		if err != nil {
			return k, err
		}
		return writeMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (messages.Link, error) {
			return o.CreateContact(ctx, who, messages.CreateContactArgs{
				ProjectKey: f.key(c), AgentName: me, Contact: args[0], ContactProject: l.project, TTLSeconds: ttl, Reason: l.reason,
			})
		})
	}, printLink)
	l.flags(cmd, "30 days")
	return f.actFlags(cmd)
}

func contactsListCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	var direction string
	cmd := command.New(&f, cobra.Command{
		Use:     "list",
		Short:   "List an agent's contacts",
		Example: "  cairn contacts list --as BlueLake --direction both",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) ([]messages.ListedContact, error) {
		me, err := f.actor(cmd.Context(), c)
		if err != nil {
			return nil, err
		}
		return readMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) ([]messages.ListedContact, error) {
			return o.ListContacts(ctx, who, f.key(c), me, direction)
		})
	}, printContacts)
	cmd.Flags().StringVar(&direction, "direction", "", "out: agents it may write to; in: agents that may write to it; or both (default out)")
	return f.actFlags(cmd)
}

func printContacts(w io.Writer, list []messages.ListedContact) error {
	var lines [][]string
	for _, k := range list {
		who := "to " + k.To
		if k.From != "" {
			who = "from " + k.From
		}
		until := ""
		if k.Expires != 0 {
			until = "until " + formatTime(k.Expires)
		}
		lines = append(lines, []string{command.Printable(who), k.Status, until, command.OneLine(k.Reason)})
	}
	return command.Rows(w, lines)
}

func contactsPolicyCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	return f.actFlags(command.New(&f, cobra.Command{
		Use:   "policy POLICY",
		Short: "Set who may write to an agent",
		Long: `policy sets who may write to an agent:

  open           every agent of the project
  auto           every agent of the project; others as the settings allow (the default)
  contacts_only  only approved contacts
  block_all      no agent`,
		Example: "  cairn contacts policy contacts_only --as GreenCastle",
		Args:    command.ExactArgs(1, "open, auto, contacts_only or block_all"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (out messages.Policy, err error) {
		me, err := f.actor(cmd.Context(), c)
		if err != nil {
			return out, err
		}
		return writeMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (messages.Policy, error) {
			return o.SetContactPolicy(ctx, who, f.key(c), me, args[0])
		})
	}, func(w io.Writer, out messages.Policy) error {
		_, err := fmt.Fprintf(w, "%s: %s\n", command.Printable(out.Agent), out.Policy)
		return err
	}))
}
