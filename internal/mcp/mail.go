package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/service"
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
	texts := mailTexts()
	for i := range tools {
		t.complete(&tools[i], texts)
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
func (t *mailTools) complete(tool *Tool, texts map[string]string) {
	tool.Errors = ErrorEnvelope
	withTexts(tool.Params, texts)
	for i := range tool.Params {
		tool.Params[i].style = mailStyle
	}
	tool.do = t.guarded(tool.Name, tool.do)
}

// mailTexts are the descriptions of arguments that several tools have.
func mailTexts() map[string]string {
	return map[string]string{
		"project_key": "The project: the absolute path of its repository, or its slug, id or uid.",
		"agent_name":  "Your own name as an agent of the project.",
		"program":     "The program that runs you, such as claude-code or codex-cli.",
		"model":       "The model that you are.",

		"task_description":   "What you work on, for the other agents.",
		"attachments_policy": "How pictures that you send are kept: inline in the message, as files, by their size (auto), or not: then attachments are refused.",
		"want_token":         "Protect the name by a token, shown this once. Acting under the name then needs the token.",
		"idempotency_key":    onceText,
		"at":                 momentText,

		"cc":             "Names of agents that get a copy.",
		"bcc":            "Names of agents that get a copy of which only you know.",
		"inbox_limit":    "How many messages of the inbox are returned.",
		"to_project":     "The project of that agent, as in project_key. Omitted: the same project.",
		"code_repo_path": "Absolute path of the repository.",
		"paths": "What to reserve, at most 200. Paths or globs relative to the repository's root: " +
			"* and ? stay inside a segment, ** is any depth, a folder covers what is below it.",
	}
}

// The descriptions of arguments of several parts.
const (
	onceText   = "A key of your own making. A repetition with the same key and arguments returns the first result and does nothing again."
	momentText = "Shows it as it was: at a time (RFC 3339, yesterday 14:00, 2h ago; without a zone in cairn's own) or at #N, a position in the change log."
)

// ignoredByMail is what old clients send (mail §2, results).
type ignoredByMail struct {
	Format        any `arg:"format,unlisted"`
	LLMMode       any `arg:"llm_mode,unlisted"`
	LLMModel      any `arg:"llm_model,unlisted"`
	ConvertImages any `arg:"convert_images,unlisted"`
}

// credentials are the arguments that say who acts.
type credentials interface {
	credentials() (token, session string)
}

// nobody is for tools that act for no agent.
type nobody struct{ ignoredByMail }

// anAgent is for tools that act for an agent.
type anAgent struct {
	Token string `arg:"registration_token" about:"The token of a protected agent, which its registration showed once. Not needed in the process where that was."`
	ignoredByMail
}

// newAgent is for tools that give a name.
type newAgent struct {
	Session string `arg:"session_id" about:"The session that the name is bound to. Only for callers whose session cairn cannot find out."`
	anAgent
}

func (nobody) credentials() (token, session string)     { return "", "" }
func (a anAgent) credentials() (token, session string)  { return a.Token, "" }
func (a newAgent) credentials() (token, session string) { return a.Token, a.Session }

// guarded is a call whose defects and unclassified errors become errors of mail.
func (t *mailTools) guarded(name string, do toolFunc) toolFunc {
	return func(ctx context.Context, c Call, in any) (out any, err error) {
		defer func() {
			if defect := recover(); defect != nil {
				out, err = nil, t.unexpected(ctx, name, fmt.Errorf("a %T at %s", defect, debug.Stack()))
			}
		}()
		out, err = do(ctx, c, in)
		f, known := errors.AsType[*fault.Error](err)
		switch {
		case known && f.Details["recoverable"] == nil:
			return nil, recoverable(f)
		case known, err == nil, ctx.Err() != nil:
			return out, err
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
func (t *mailTools) caller(c Call) mail.Caller {
	who := mail.Caller{HeaderToken: c.AgentToken, Transport: c.Connection}
	who.Token, who.Session = c.common.(credentials).credentials()
	if c.Remote {
		who.Ancestors = []project.Process{} // those of the server say nothing about its client
	} else {
		who.Keyring = t.keyring
	}
	return who
}

// method is one method of the service.
type method[A, T any] func(o *service.Mail, ctx context.Context, c mail.Caller, args A) (T, error)

func (do method[A, T]) untyped() method[any, any] {
	return func(o *service.Mail, ctx context.Context, c mail.Caller, args any) (any, error) {
		return do(o, ctx, c, *args.(*A))
	}
}

// mailTool is a tool that calls a method, which stores something unless the tool is
// marked read-only.
func mailTool[A, T any](t *mailTools, by credentials, tool Tool, do method[A, T]) Tool {
	tool.common = reflect.TypeOf(by)
	return tool.with(reflect.TypeFor[A](), reflect.TypeFor[T](), t.calling(tool.ReadOnly, do.untyped()))
}

// calling is a call of a method.
func (t *mailTools) calling(reads bool, do method[any, any]) toolFunc {
	run := t.mail.Write
	if reads {
		run = t.mail.Read
	}
	return func(ctx context.Context, c Call, in any) (out any, err error) {
		err = run(ctx, t.caller(c), func(ctx context.Context, o *service.Mail, c mail.Caller) (err error) {
			out, err = do(o, ctx, c, in)
			return err
		})
		return out, err
	}
}

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

// identityArgs are the arguments of create_agent_identity: those of a registration, but
// for what the name is called.
type identityArgs struct {
	ProjectKey        string `arg:"project_key,required"`
	Program           string `arg:"program,required"`
	Model             string `arg:"model,required"`
	Name              string `arg:"name_hint" about:"The name for it: an adjective and a noun. Omitted: one is generated."`
	TaskDescription   string `arg:"task_description,default="`
	AttachmentsPolicy string `arg:"attachments_policy,default=auto,enum=auto|inline|file|none"`
	WantToken         bool   `arg:"want_token"`
}

func (t *mailTools) identityTools() []Tool {
	return []Tool{
		argumentsTool(Tool{
			Name: "health_check", ReadOnly: true, common: reflect.TypeFor[nobody](),
			Description: "Check the health of the server: store, archive, queues, disk. Use it when calls fail or take long. health_level is green, yellow or red.",
		}, func(ctx context.Context, _ struct{}) (cairn.HealthCheck, error) {
			h, err := t.mail.Cairn().HealthCheck(ctx)
			if err != nil {
				err = mail.Fault(err)
			}
			return h, err
		}),
		mailTool(t, nobody{}, Tool{
			Name:        "ensure_project",
			Description: "Make the repository at an absolute path a project, or find the project that it is. All worktrees of a repository are one project. macro_start_session does this too.",
		}, (*service.Mail).EnsureProject),
		mailTool(t, newAgent{}, Tool{
			Name: "register_agent", Words: "name join",
			Description: "Get a name to act under in a project, or update the program, model and task of the one you have. Returns the agent; use its name in all later calls.",
		}, (*service.Mail).RegisterAgent),
		mailTool(t, newAgent{}, Tool{
			Name:        "create_agent_identity",
			Description: "Register one more agent, never an existing one; for a subagent that you start, for example. Returns the new agent.",
		}, func(o *service.Mail, ctx context.Context, c mail.Caller, a identityArgs) (agents.Registered, error) {
			return o.CreateAgent(ctx, c, agents.RegisterArgs(a))
		}),
		mailTool(t, nobody{}, Tool{
			Name: "whois", ReadOnly: true,
			Description: "Look up one agent: its program, model and task, when it was last active, and the newest commits of its mail and reservations.",
		}, (*service.Mail).Whois),
		mailTool(t, nobody{}, Tool{
			Name: "list_agents", Words: "who here others team members", ReadOnly: true,
			Description: "List the agents of a project by name, with their tasks, unread mail and active reservations. Use it to find out whom to write to.",
		}, (*service.Mail).ListAgents),
		mailTool(t, anAgent{}, Tool{
			Name: "retire_agent", Words: "leave quit unregister",
			Description: "Retire an agent: its reservations are released, it gets no more mail and is listed no more. Its history stays; register_agent on the name revives it.",
		}, (*service.Mail).RetireAgent),
	}
}
