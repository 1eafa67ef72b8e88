package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/project"
)

// MailOptions tune the tools of mail. The zero value is ready for use.
type MailOptions struct {
	// Keyring holds the tokens of agents that this process has seen, for the one
	// client of its standard input; nil for none.
	Keyring *mail.Keyring

	// Log receives defects. Nil discards it.
	Log *slog.Logger
}

// MailTools are the tools of mail (contract mail §5), named and called as there.
// Their errors have the codes of mail §2.1.
func MailTools(m cairn.Mail, o MailOptions) []Tool {
	t := newMailTools(m, o)
	tools := slices.Concat(t.identityTools(), t.messageTools(), t.searchTools(), t.contactTools(), t.reservationTools(), t.guardTools(), t.macroTools())
	for i := range tools {
		t.complete(&tools[i])
	}
	return tools
}

type mailTools struct {
	mail    cairn.Mail
	keyring *mail.Keyring
	log     *slog.Logger
}

func newMailTools(m cairn.Mail, o MailOptions) *mailTools {
	t := &mailTools{mail: m, keyring: o.Keyring, log: o.Log}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	return t
}

// complete gives a tool what all tools of mail have.
func (t *mailTools) complete(tool *Tool) {
	tool.Errors = ErrorEnvelope
	tool.Params = append(tool.Params, untold(Anything, "format", "llm_mode", "llm_model", "convert_images")...) // mail §2, results
	for i := range tool.Params {
		tool.Params[i].manner = mailed
	}
	tool.Call = t.guarded(tool.Name, tool.Call)
}

// guarded is a call whose defects and unclassified errors become an error of mail.
func (t *mailTools) guarded(name string, call func(context.Context, Args) (any, error)) func(context.Context, Args) (any, error) {
	return func(ctx context.Context, a Args) (v any, err error) {
		defer func() {
			if defect := recover(); defect != nil {
				v, err = nil, t.unexpected(ctx, name, fmt.Errorf("a %T at %s", defect, debug.Stack()))
			}
		}()
		v, err = call(ctx, a)
		f, known := errors.AsType[*fault.Error](err)
		switch {
		case known && f.Details["recoverable"] == nil:
			return nil, recoverable(f)
		case known, err == nil, ctx.Err() != nil:
			return v, err
		}
		return nil, t.unexpected(ctx, name, err)
	}
}

// recoverable is an error of another room with what those of mail tell.
func recoverable(f *fault.Error) error {
	e := *f
	e.Details = map[string]any{"recoverable": f.Kind != fault.Internal}
	maps.Copy(e.Details, f.Details)
	return &e
}

// unexpected is what a client is told of a defect: a word by which the log knows it.
func (t *mailTools) unexpected(ctx context.Context, tool string, err error) error {
	id := rand.Text()[:12]
	t.log.ErrorContext(ctx, "a tool failed", "tool", tool, "id", id, "error", err)
	e := fault.Newf(fault.Internal, mail.CodeUnhandled, "Unexpected error (%s)", id).
		WithHint("look for this word in the log of cairn; calling again may help")
	e.Details = map[string]any{"recoverable": false}
	return e
}

// caller is who makes a call.
func (t *mailTools) caller(a Args) mail.Caller {
	c := mail.Caller{
		Token: a.String("registration_token"), HeaderToken: a.AgentToken(), Session: a.String("session_id"), Transport: a.Connection(),
	}
	if a.IsRemote() {
		c.Ancestors = []project.Process{} // those of the server say nothing about its client
	} else {
		c.Keyring = t.keyring
	}
	return c
}

// ask is one method of the service.
type ask[A, T any] func(o *mail.Service, ctx context.Context, c mail.Caller, args A) (T, error)

// reads makes a tool's Call of a method that only reads.
func reads[A, T any](t *mailTools, method ask[A, T], args func(Args) A) func(context.Context, Args) (any, error) {
	return func(ctx context.Context, a Args) (any, error) {
		var out T
		err := t.mail.Read(ctx, t.caller(a), func(ctx context.Context, o *mail.Service, c mail.Caller) (err error) {
			out, err = method(o, ctx, c, args(a))
			return err
		})
		return out, err
	}
}

// writes is reads for a method that stores something.
func writes[A, T any](t *mailTools, method ask[A, T], args func(Args) A) func(context.Context, Args) (any, error) {
	return func(ctx context.Context, a Args) (any, error) {
		var out T
		err := t.mail.Write(ctx, t.caller(a), func(ctx context.Context, o *mail.Service, c mail.Caller) (err error) {
			out, err = method(o, ctx, c, args(a))
			return err
		})
		return out, err
	}
}

// The parameters that many tools have.

func keyParam() Param {
	return must("project_key", "The project: the absolute path of its repository, or its slug, id or uid.").lean("The repository's path.")
}

func agentParam() Param {
	return must("agent_name", "Your own name as an agent of the project.").lean("")
}

// token is the parameter that all tools have which act for an agent.
func token() Param {
	return may("registration_token", "The token of a protected agent, which its registration showed once. Not needed in the process where that was.")
}

func reserved(name, about string) Param {
	return must(name, about+" Paths or globs relative to the repository's root: * and ? stay inside a segment, ** is any depth, a folder covers what is below it.").of(Strings)
}

func lifetime(name string, standard int) Param {
	return count(name, standard, "Seconds until the reservation expires.").least(60).most(7 * 24 * 3600)
}

func approval(standard int) Param {
	return count("ttl_seconds", standard, "Seconds for which the approval holds, or the request waits.").least(60)
}

func listLimit(name string, standard int, about string) Param {
	return count(name, standard, about).least(1).most(1000)
}

func once() Param {
	return may("idempotency_key", "A key of your own making. A repetition with the same key and arguments returns the first result and does nothing again.")
}

func program() Param {
	return must("program", "The program that runs you, such as claude-code or codex-cli.").lean("")
}
func model() Param { return must("model", "The model that you are.").lean("") }

// MailProfile narrows the tools of mail to those of a profile (contract mail §5):
// core, messaging or minimal; any other is all of them.
func MailProfile(tools []Tool, profile string) []Tool {
	identity := []string{"health_check", "ensure_project", "register_agent", "create_agent_identity", "whois", "list_agents", "retire_agent"}
	messages := []string{"send_message", "reply_message", "fetch_inbox", "mark_message_read", "acknowledge_message", "get_delivery_receipt"}
	var names []string
	switch profile {
	case "core":
		names = slices.Concat(identity, messages, []string{
			"file_reservation_paths", "check_file_reservation_conflicts", "release_file_reservations", "renew_file_reservations",
			"force_release_file_reservation",
			"macro_start_session", "macro_prepare_thread", "macro_file_reservation_cycle", "macro_contact_handshake",
		})
	case "messaging":
		names = slices.Concat(identity, messages, []string{
			"request_contact", "respond_contact", "create_contact", "list_contacts", "set_contact_policy", "search_messages", "summarize_thread",
		})
	case "minimal":
		names = []string{"health_check", "ensure_project", "register_agent", "send_message", "fetch_inbox", "acknowledge_message"}
	default:
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t Tool) bool { return !slices.Contains(names, t.Name) })
}

func (t *mailTools) identityTools() []Tool {
	register := func(name string) func(a Args) mail.RegisterArgs {
		return func(a Args) mail.RegisterArgs {
			return mail.RegisterArgs{
				ProjectKey: a.String("project_key"), Program: a.String("program"), Model: a.String("model"), Name: a.String(name),
				TaskDescription: a.String("task_description"), AttachmentsPolicy: a.String("attachments_policy"), WantToken: a.Bool("want_token"),
			}
		}
	}
	profile := params(
		may("task_description", "What you work on, for the other agents.").by(""),
		may("attachments_policy", "How pictures that you send are kept: inline in the message, as files, by their size (auto), or not: then attachments are refused.").
			by("auto").among("auto", "inline", "file", "none"),
		flag("want_token", "Protect the name by a token, shown this once. Acting under the name then needs the token."),
		may("session_id", "The session that the name is bound to. Only for callers whose session cairn cannot find out."),
		token(),
	)
	return []Tool{
		{
			Name: "health_check", ReadOnly: true, Result: gives[cairn.HealthCheck](),
			Description: "Check the health of the server: store, archive, queues, disk. Use it when calls fail or take long. health_level is green, yellow or red.",
			Call: func(ctx context.Context, _ Args) (any, error) {
				h, err := t.mail.Cairn().HealthCheck(ctx)
				if err != nil {
					return nil, mail.Fault(err)
				}
				return h, nil
			},
		},
		{
			Name: "ensure_project", Result: gives[mail.ProjectInfo](),
			Description: "Make the repository at an absolute path a project, or find the project that it is. All worktrees of a repository are one project. macro_start_session does this too.",
			Params: params(
				must("human_key", "Absolute path of the repository, or of any folder."),
				may("identity_mode", "What tells the project from others. Omitted: the repository if the path is inside one, else the folder.").
					among("dir", "git-remote", "git-toplevel", "git-common-dir"),
			),
			Call: writes(t, (*mail.Service).EnsureProject, func(a Args) mail.EnsureArgs {
				return mail.EnsureArgs{HumanKey: a.String("human_key"), IdentityMode: a.String("identity_mode")}
			}),
		},
		{
			Name: "register_agent", Words: "name join", Result: gives[mail.Registered](),
			Description: "Get a name to act under in a project, or update the program, model and task of the one you have. Returns the agent; use its name in all later calls.",
			Params: and(params(
				keyParam(), program(), model(),
				may("name", "The name you want: an adjective and a noun, such as GreenLake. Omitted or not valid: one is generated."),
			), profile...),
			Call: writes(t, (*mail.Service).RegisterAgent, register("name")),
		},
		{
			Name: "create_agent_identity", Result: gives[mail.Registered](),
			Description: "Register one more agent, never an existing one; for a subagent that you start, for example. Returns the new agent.",
			Params: and(params(
				keyParam(), program(), model(), may("name_hint", "The name for it: an adjective and a noun. Omitted: one is generated."),
			), profile...),
			Call: writes(t, (*mail.Service).CreateAgent, register("name_hint")),
		},
		{
			Name: "whois", ReadOnly: true, Result: gives[mail.Profile](),
			Description: "Look up one agent: its program, model and task, when it was last active, and the newest commits of its mail and reservations.",
			Params: params(
				keyParam(), must("agent_name", "The agent to look up."),
				setting("include_recent_commits", "Whether recent_commits is filled."), listLimit("commit_limit", 5, "How many commits."),
			),
			Call: reads(t, (*mail.Service).Whois, func(a Args) mail.WhoisArgs {
				return mail.WhoisArgs{
					ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), NoCommits: a.IsFalse("include_recent_commits"),
					CommitLimit: a.Int("commit_limit"),
				}
			}),
		},
		{
			Name: "list_agents", Words: "who here others team members", ReadOnly: true, Result: gives[[]mail.ListedAgent](),
			Description: "List the agents of a project by name, with their tasks, unread mail and active reservations. Use it to find out whom to write to.",
			Params: params(
				keyParam(), may("active_within_days", "Only agents active within so many days.").of(Integer).least(1),
				flag("include_retired", "Also agents that have retired."), may("program", "Only agents of this program."),
				listLimit("limit", 100, "How many agents."),
			),
			Call: reads(t, (*mail.Service).ListAgents, func(a Args) mail.ListAgentsArgs {
				return mail.ListAgentsArgs{
					ProjectKey: a.String("project_key"), ActiveWithinDays: a.Int("active_within_days"), IncludeRetired: a.Bool("include_retired"),
					Program: a.String("program"), Limit: a.Int("limit"),
				}
			}),
		},
		{
			Name: "retire_agent", Words: "leave quit unregister", Result: gives[mail.Retired](),
			Description: "Retire an agent: its reservations are released, it gets no more mail and is listed no more. Its history stays; register_agent on the name revives it.",
			Params:      params(keyParam(), must("agent_name", "The agent to retire."), may("reason", "Why. cairn does not store it.").by(""), token()),
			Call: writes(t, (*mail.Service).RetireAgent, func(a Args) mail.RetireArgs {
				return mail.RetireArgs{ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), Reason: a.String("reason")}
			}),
		},
	}
}
