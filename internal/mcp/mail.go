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
	tool.Errors, tool.unhinted = Enveloped, true
	for _, name := range []string{"format", "llm_mode", "llm_model", "convert_images"} {
		tool.Params = append(tool.Params, Param{Name: name, Kind: Anything, untold: true})
	}
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

// ask is one method of the office.
type ask[A, T any] func(o *mail.Office, ctx context.Context, c mail.Caller, args A) (T, error)

// reads makes a tool's Call of a method that only reads.
func reads[A, T any](t *mailTools, method ask[A, T], args func(Args) A) func(context.Context, Args) (any, error) {
	return func(ctx context.Context, a Args) (any, error) {
		var out T
		err := t.mail.Read(ctx, t.caller(a), func(ctx context.Context, o *mail.Office, c mail.Caller) (err error) {
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
		err := t.mail.Write(ctx, t.caller(a), func(ctx context.Context, o *mail.Office, c mail.Caller) (err error) {
			out, err = method(o, ctx, c, args(a))
			return err
		})
		return out, err
	}
}

// The parameters that many tools have. What is not told is taken all the same: each
// byte of a definition is paid in each session.

func must(name string) Param                { return Param{Name: name, Required: true} }
func mustBe(name string, kind Kind) Param   { return Param{Name: name, Kind: kind, Required: true} }
func told(name string, kind Kind) Param     { return Param{Name: name, Kind: kind} }
func keyParam() Param                       { return must("project_key") }
func agentParam() Param                     { return must("agent_name") }
func (p Param) or(aliases ...string) Param  { p.Aliases = aliases; return p }
func (p Param) among(words ...string) Param { p.Enum = words; return p }

func untold(kind Kind, names ...string) []Param {
	all := make([]Param, len(names))
	for i, name := range names {
		all[i] = Param{Name: name, Kind: kind, untold: true}
	}
	return all
}

func params(told ...Param) []Param { return told }

func and(told []Param, more ...[]Param) []Param {
	return slices.Concat(append([][]Param{told}, more...)...)
}

// acting is the parameter that all have which act for an agent.
func acting() []Param { return untold(String, "registration_token") }

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
	more := and(untold(String, "attachments_policy", "session_id"), untold(Boolean, "want_token"), acting())
	return []Tool{
		{
			Name: "health_check", ReadOnly: true, Description: "Are you well?",
			Call: func(ctx context.Context, _ Args) (any, error) {
				h, err := t.mail.Cairn().HealthCheck(ctx)
				if err != nil {
					return nil, mail.Fault(err)
				}
				return h, nil
			},
		},
		{
			Name: "ensure_project", Description: "Make an absolute path a project.",
			Params: and(params(must("human_key")), untold(String, "identity_mode")),
			Call: writes(t, (*mail.Office).EnsureProject, func(a Args) mail.EnsureArgs {
				return mail.EnsureArgs{HumanKey: a.String("human_key"), IdentityMode: a.String("identity_mode")}
			}),
		},
		{
			Name: "register_agent", Description: "Get your name, or update it.",
			Params: and(params(keyParam(), must("program"), must("model"), told("name", String)), untold(String, "task_description"), more),
			Call:   writes(t, (*mail.Office).RegisterAgent, register("name")),
		},
		{
			Name: "create_agent_identity", Description: "Register another agent.",
			Params: and(params(keyParam(), must("program"), must("model")), untold(String, "name_hint", "task_description"), more),
			Call:   writes(t, (*mail.Office).CreateAgent, register("name_hint")),
		},
		{
			Name: "whois", ReadOnly: true, Description: "About an agent.",
			Params: and(params(keyParam(), agentParam()), untold(Boolean, "include_recent_commits"), untold(Integer, "commit_limit")),
			Call: reads(t, (*mail.Office).Whois, func(a Args) mail.WhoisArgs {
				return mail.WhoisArgs{
					ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), NoCommits: a.IsFalse("include_recent_commits"),
					CommitLimit: a.Int("commit_limit"),
				}
			}),
		},
		{
			Name: "list_agents", ReadOnly: true, Description: "Who is here.",
			Params: and(params(keyParam()), untold(Integer, "active_within_days", "limit"), untold(Boolean, "include_retired"), untold(String, "program")),
			Call: reads(t, (*mail.Office).ListAgents, func(a Args) mail.ListAgentsArgs {
				return mail.ListAgentsArgs{
					ProjectKey: a.String("project_key"), ActiveWithinDays: a.Int("active_within_days"), IncludeRetired: a.Bool("include_retired"),
					Program: a.String("program"), Limit: a.Int("limit"),
				}
			}),
		},
		{
			Name: "retire_agent", Description: "Leave.",
			Params: and(params(keyParam(), agentParam()), untold(String, "reason"), acting()),
			Call: writes(t, (*mail.Office).RetireAgent, func(a Args) mail.RetireArgs {
				return mail.RetireArgs{ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), Reason: a.String("reason")}
			}),
		},
	}
}
