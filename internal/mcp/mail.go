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
	"cairn/internal/mcp/toolargs"
	"cairn/internal/project"
)

// MailOptions are the options of the mail tools. The zero value is ready for use.
type MailOptions struct {
	// Keyring contains the agent tokens that this process has seen, for the client on its
	// standard input; nil for none.
	Keyring *mail.Keyring

	// Log receives unexpected errors. Nil discards them.
	Log *slog.Logger
}

// MailTools returns the mail tools with the names and parameters of contract mail §5.
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

// complete adds the common properties of all mail tools.
func (t *mailTools) complete(tool *Tool, texts map[string]string) {
	tool.Errors = ErrorEnvelope
	toolargs.WithTexts(tool.Params, texts)
	for i := range tool.Params {
		tool.Params[i].Style = toolargs.MailStyle
	}
	tool.do = t.withRecover(tool.Name, tool.do)
}

// mailTexts returns the descriptions of arguments that several tools share.
func mailTexts() map[string]string {
	return map[string]string{
		"project_key": "The project: the absolute path of its repository, or its slug, id or uid.",
		"agent_name":  "Your own name as an agent of the project.",
		"program":     "The program that runs you, such as claude-code or codex-cli.",
		"model":       "The model that you run on.",

		"task_description":   "What you work on, for the other agents.",
		"attachments_policy": "How your pictures are stored: inline in the message, as files, by their size (auto), or not at all: then attachments are refused.",
		"want_token":         "Protect the name with a token, shown only now. Acting under the name then requires the token.",
		"idempotency_key":    onceText,
		"at":                 momentText,

		"cc":             "Names of agents that get a copy.",
		"bcc":            "Names of agents that get a hidden copy.",
		"inbox_limit":    "How many messages of the inbox are returned.",
		"to_project":     "The project of that agent, as in project_key. Omitted: the same project.",
		"code_repo_path": "Absolute path of the repository.",
		"paths": "The files to reserve: at most 200 paths or globs relative to the repository's root. " +
			"* and ? match inside a segment, ** matches any depth, a folder includes everything below it.",
	}
}

// Descriptions of arguments that several parts share.
const (
	onceText   = "A key that you choose. A repetition with the same key and arguments returns the first result and changes nothing."
	momentText = "Show the state at a past time (RFC 3339, yesterday 14:00, 2h ago; without a zone in cairn's) or at #N, a position in the change log."
)

// ignoredByMail are arguments that old clients send (mail §2, results).
type ignoredByMail struct {
	Format        any `arg:"format,unlisted"`
	LLMMode       any `arg:"llm_mode,unlisted"`
	LLMModel      any `arg:"llm_model,unlisted"`
	ConvertImages any `arg:"convert_images,unlisted"`
}

// credentials are arguments that can identify the acting agent.
type credentials interface {
	credentials() (token, session string)
}

// noActor is for tools that do not act as an agent.
type noActor struct{ ignoredByMail }

// actor is for tools that act as an agent.
type actor struct {
	Token string `arg:"registration_token" about:"The token of a protected agent, shown once at its registration. Not needed in the process that registered it."`
	ignoredByMail
}

// namedActor is for tools that assign a name.
type namedActor struct {
	Session string `arg:"session_id" about:"Session that gets the name. Only for callers whose session cairn cannot detect."`
	actor
}

func (noActor) credentials() (token, session string)      { return "", "" }
func (a actor) credentials() (token, session string)      { return a.Token, "" }
func (a namedActor) credentials() (token, session string) { return a.Token, a.Session }

// withRecover wraps a tool's function: panics and unclassified errors become mail errors.
func (t *mailTools) withRecover(name string, do toolFunc) toolFunc {
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

// recoverable adds the details of mail errors to an error of another package.
func recoverable(f *fault.Error) error {
	e := *f
	e.Details = map[string]any{"recoverable": f.Kind != fault.Internal}
	maps.Copy(e.Details, f.Details)
	return &e
}

// unexpected returns the error for an unexpected failure. It contains an id that is also
// in the log.
func (t *mailTools) unexpected(ctx context.Context, tool string, err error) error {
	id := rand.Text()[:12]
	t.log.ErrorContext(ctx, "a tool failed", "tool", tool, "id", id, "error", err)
	e := fault.Newf(fault.Internal, mail.CodeUnhandled, "Unexpected error (%s)", id).
		WithHint("search cairn's log for this id; retrying may help")
	e.Details = map[string]any{"recoverable": false}
	return e
}

// caller returns the caller of the mail service.
func (t *mailTools) caller(c Call) mail.Caller {
	who := mail.Caller{HeaderToken: c.AgentToken, Transport: c.Connection}
	who.Token, who.Session = c.common.(credentials).credentials()
	if c.Remote {
		who.Ancestors = []project.Process{} // the server's ancestors are not the client's
	} else {
		who.Keyring = t.keyring
	}
	return who
}

// method is a method of the mail service.
type method[A, T any] func(o *service.Mail, ctx context.Context, c mail.Caller, args A) (T, error)

func (do method[A, T]) untyped() method[any, any] {
	return func(o *service.Mail, ctx context.Context, c mail.Caller, args any) (any, error) {
		return do(o, ctx, c, *args.(*A))
	}
}

// mailTool returns a tool that calls a method. The method may write unless the tool is
// read-only.
func mailTool[A, T any](t *mailTools, by credentials, tool Tool, do method[A, T]) Tool {
	tool.common = reflect.TypeOf(by)
	return tool.with(reflect.TypeFor[A](), reflect.TypeFor[T](), t.handler(tool.ReadOnly, do.untyped()))
}

// handler returns the tool's function, which calls a method.
func (t *mailTools) handler(reads bool, do method[any, any]) toolFunc {
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

// MailProfile returns the mail tools of a profile (contract mail §5): core, messaging or
// minimal. For any other profile it returns all tools.
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

// identityArgs are the arguments of create_agent_identity. They are those of a
// registration, except that the name is called name_hint.
type identityArgs struct {
	ProjectKey        string `arg:"project_key,required"`
	Program           string `arg:"program,required"`
	Model             string `arg:"model,required"`
	Name              string `arg:"name_hint" about:"The agent's name: an adjective and a noun. Omitted: one is generated."`
	TaskDescription   string `arg:"task_description,default="`
	AttachmentsPolicy string `arg:"attachments_policy,default=auto,enum=auto|inline|file|none"`
	WantToken         bool   `arg:"want_token"`
}

func (t *mailTools) identityTools() []Tool {
	return []Tool{
		argumentsTool(Tool{
			Name: "health_check", ReadOnly: true, common: reflect.TypeFor[noActor](),
			Description: "Check the health of the server: store, archive, queues, disk. Use it when calls fail or take long. health_level is green, yellow or red.",
		}, func(ctx context.Context, _ struct{}) (cairn.HealthCheck, error) {
			h, err := t.mail.Cairn().HealthCheck(ctx)
			if err != nil {
				err = mail.Fault(err)
			}
			return h, err
		}),
		mailTool(t, noActor{}, Tool{
			Name:        "ensure_project",
			Description: "Create or find the project of the repository at an absolute path. All worktrees of a repository are one project. macro_start_session does this too.",
		}, (*service.Mail).EnsureProject),
		mailTool(t, namedActor{}, Tool{
			Name: "register_agent", Words: "name join",
			Description: "Get a name in a project, or update your program, model and task. Returns the agent; use its name in all later calls.",
		}, (*service.Mail).RegisterAgent),
		mailTool(t, namedActor{}, Tool{
			Name:        "create_agent_identity",
			Description: "Register an additional agent, never an existing one; for example for a subagent that you start. Returns the new agent.",
		}, func(o *service.Mail, ctx context.Context, c mail.Caller, a identityArgs) (agents.Registered, error) {
			return o.CreateAgent(ctx, c, agents.RegisterArgs(a))
		}),
		mailTool(t, noActor{}, Tool{
			Name: "whois", ReadOnly: true,
			Description: "Look up one agent: its program, model and task, when it was last active, and the newest commits of its mail and reservations.",
		}, (*service.Mail).Whois),
		mailTool(t, noActor{}, Tool{
			Name: "list_agents", Words: "who here others team members", ReadOnly: true,
			Description: "List the agents of a project by name, with tasks, unread mail and active reservations. Use it to find the right recipient.",
		}, (*service.Mail).ListAgents),
		mailTool(t, actor{}, Tool{
			Name: "retire_agent", Words: "leave quit unregister",
			Description: "Retire an agent: it is no longer listed, gets no more mail, and its reservations are released. Its history stays; register_agent with the name undoes this.",
		}, (*service.Mail).RetireAgent),
	}
}
