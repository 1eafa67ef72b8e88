package mail

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/project"
	"cairn/internal/store"
)

// Caller describes the caller of a tool. The zero Caller is unknown and has no token.
type Caller struct {
	Token       string   // the argument registration_token
	HeaderToken string   // the header X-Cairn-Agent-Token
	Keyring     *Keyring // the tokens that this stdio process has seen; nil in other processes
	Owner       bool     // the file's owner at the command line: needs no token, and the change records it

	Session   string            // the argument session_id
	Ancestors []project.Process // the processes above this one, nearest first: the nearest with a session counts
	Transport string            // the session of the stdio server itself, created at first use; "" if there is none
	Place     project.Location  // the working directory, zero if unknown; its Home applies to every path that is inspected
}

// CallTx is one transaction of one call on a project. Each tool runs in one CallTx. A macro
// runs all its tools in the same one.
type CallTx struct {
	*Kernel
	Tx            *store.Tx
	Project       *Project
	Now           Time
	At            store.Moment // the moment in the past that the call asks about, if any; Now is then its time
	Caller        Caller
	Path          *Identity // of a project_key that is a path, else nil
	ProjectKey    string    // the project_key as it was given, for suggested calls
	Writes        bool
	Session       project.Session         // Key 0 if there is none, and in a read
	SessionSource string                  // how the session was found
	By            Actor                   // the author of the changes
	Me            *Agent                  // the acting agent, once SetActor has set it
	AgentUse      map[int64]AgentSessions // by agent id, of the agents looked up so far
}

// WriteIn runs fn in a transaction on the project that a key refers to. It creates the project
// for an unknown path. If fn fails, nothing is stored.
//
// Errors besides those of fn: NOT_FOUND with suggestions for any other unknown key,
// CONFIGURATION_ERROR for a placeholder, MISSING_FIELD for a blank key.
func (o *Kernel) WriteIn(ctx context.Context, c Caller, projectKey string, fn func(ctx context.Context, s *CallTx) error) error {
	t, err := c.Target(projectKey)
	if err != nil {
		return Fault(err)
	}
	return o.WriteTo(ctx, c, t, fn)
}

// WriteTo is WriteIn for a target.
func (o *Kernel) WriteTo(ctx context.Context, c Caller, t *Target, fn func(ctx context.Context, s *CallTx) error) error {
	return o.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		s := &CallTx{Kernel: o, Tx: tx, Now: Now(tx), Caller: c, Path: t.Path, ProjectKey: t.Key, Writes: true}
		if err := s.open(ctx, t); err != nil {
			return err
		}
		return fn(ctx, s)
	})
}

// open finds or creates the project of a write and finds the caller's session. A project that
// has no mail yet can be named by its id if cairn knows its path.
func (s *CallTx) open(ctx context.Context, t *Target) (err error) {
	if t.Path == nil {
		if s.Project, err = t.Find(ctx, s.Tx); s.Project == nil && err == nil {
			t.Path, err = t.known(ctx, s.Tx, s.Caller)
			s.Path = t.Path
		}
	}
	if t.Path != nil && err == nil {
		s.Project, err = t.Path.ensure(ctx, s.Tx, s.By, s.Config.Archive)
	}
	switch {
	case err != nil:
		return err
	case s.Project == nil:
		return t.NotFound(ctx, s.Tx)
	}
	err = s.findSession(ctx)
	s.By.Session = s.Session.ID
	return err
}

// ReadIn runs fn in a read of the project that a key refers to. It writes nothing and does not
// create the project.
//
// Errors besides those of fn: those of WriteIn, and NOT_FOUND for an unknown path.
func (o *Kernel) ReadIn(ctx context.Context, c Caller, projectKey string, fn func(ctx context.Context, s *CallTx) error) error {
	t, err := c.Target(projectKey)
	if err != nil {
		return Fault(err)
	}
	return o.ReadFrom(ctx, c, t, fn)
}

// ReadFrom is ReadIn for a target.
func (o *Kernel) ReadFrom(ctx context.Context, c Caller, t *Target, fn func(ctx context.Context, s *CallTx) error) error {
	return o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		p, err := t.Find(ctx, tx)
		switch {
		case err != nil:
			return err
		case p == nil:
			return t.NotFound(ctx, tx)
		}
		return fn(ctx, &CallTx{Kernel: o, Tx: tx, Project: p, Now: Now(tx), Caller: c, Path: t.Path, ProjectKey: t.Key})
	})
}

// InProject returns the call for another project, in the same transaction and with the same
// actor.
func (s *CallTx) InProject(p *Project) *CallTx {
	o := *s
	o.Project, o.Path, o.ProjectKey = p, nil, p.Slug
	return &o
}

// Put appends a document of this project to the change log in the actor's name and updates the
// rows to match it. It also records that the actor was active (mail §3).
func (s *CallTx) Put(ctx context.Context, d Document) error {
	if err := Put(ctx, s.Tx, s.By, s.Project.ProductID, d); err != nil || s.Me == nil {
		return err
	}
	return TouchAgent(ctx, s.Tx, s.Me.ID, s.Now)
}

// Agent returns an agent by its name, including retired agents.
//
// Errors: NOT_FOUND with suggestions, and with details.mistake if the name contains a known
// mistake; CONFIGURATION_ERROR for a placeholder, MISSING_FIELD for a blank name.
func (s *CallTx) Agent(ctx context.Context, name string) (*Agent, error) {
	if err := CheckText("agent_name", name); err != nil {
		return nil, err
	}
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return nil, MissingField("agent_name", "list_agents shows the names; register_agent gives you one")
	case IsPlaceholder(name):
		return nil, PlaceholderGiven("agent_name", name, "the name that register_agent gave you")
	}
	a, err := AgentByName(ctx, s.Tx, s.Project.ID, name)
	if err == nil && a == nil {
		err = s.AgentNotFound(ctx, name)
	}
	return a, err
}

// ActAs returns the agent that the call acts as and makes it the author of the call's changes.
// A write also binds the caller's session to the agent.
//
// Errors: those of Agent; CAPABILITY_DENIED for a protected agent without its token, for a
// retired agent, for a mirror, and for HumanOverseer unless the caller is the file's owner.
func (s *CallTx) ActAs(ctx context.Context, name string) (*Agent, error) {
	a, err := s.ReadAs(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := s.CheckAlive(a); err != nil {
		return nil, err
	}
	s.SetActor(a)
	return a, s.BindTo(ctx, a)
}

func (s *CallTx) CheckAlive(a *Agent) error {
	if a.Retired == 0 {
		return nil
	}
	return Errorf(CodeDenied, "agent %s is retired", Quoted(a.Name)).With("agent", a.Name).
		Suggest(RegisterCall(s.ProjectKey, a.Name, a.Program, a.Model)).Hint("register_agent with this name brings it back")
}

// SetActor makes an agent the author of the call's changes.
func (s *CallTx) SetActor(a *Agent) {
	s.Me, s.By.Agent = a, a.Name
	if s.Caller.Owner {
		s.By.Agent += ByOwnerSuffix
	}
}

// BindTo binds the caller's session to the agent that it acts as. It does nothing in a read,
// without a session, and for the file's owner, who may act as any agent.
func (s *CallTx) BindTo(ctx context.Context, a *Agent) error {
	if !s.Writes || s.Caller.Owner || s.Session.Key == 0 {
		return nil
	}
	if err := Bind(ctx, s.Tx, s.Session.Key, a.ID, s.SessionSource, s.Now); err != nil || s.Session.ID != s.Caller.Transport {
		return err
	}
	return s.moveSession(ctx)
}

// moveSession makes the project the current project of the caller's connection. Later calls
// without a project belong to it (amendments §B.5).
func (s *CallTx) moveSession(ctx context.Context) error {
	if s.Session.ProjectID == s.Project.ProductID {
		return nil
	}
	q, ok, err := project.Find(ctx, s.Tx, s.Project.ProductID)
	if err != nil || !ok {
		return err
	}
	return project.MoveSession(ctx, s.Tx, s.Session, q)
}

// ByOwnerSuffix follows an agent's name in the author of a change that the file's owner made
// in that agent's name (mail §4).
const ByOwnerSuffix = " (by owner)"

// ReadAs returns the agent whose inbox or outbox the call reads. It checks the same as ActAs,
// but accepts a retired agent and writes nothing.
func (s *CallTx) ReadAs(ctx context.Context, name string) (*Agent, error) {
	a, err := s.localAgent(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := s.CheckToken(a); err != nil {
		return nil, err
	}
	return a, nil
}

// localAgent returns an agent that is not a mirror. It returns HumanOverseer only if the
// caller is the file's owner.
func (s *CallTx) localAgent(ctx context.Context, name string) (*Agent, error) {
	a, err := s.Agent(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case a.Home != nil:
		return nil, Errorf(CodeDenied, "agent %s is the mirror of an agent of another project and cannot act here", Quoted(a.Name)).
			With("agent", a.Name).With("home", *a.Home).Hint("act in the project where it lives, or register an agent of your own here")
	case a.Name == Overseer && !s.Caller.Owner:
		return nil, Errorf(CodeDenied, "%s is the person who oversees the agents; no agent acts in this name", Overseer).
			With("agent", a.Name).Hint("register an agent of your own")
	}
	return a, nil
}

// Checks of a call's arguments.

// CheckText returns INVALID_ARGUMENT for a text that is not valid UTF-8 or contains NUL.
func CheckText(field, text string) error {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return nil
	}
	return InvalidArgument(field, Printable(strings.ToValidUTF8(text, "")), "%s must be valid UTF-8 without NUL", field)
}

// Text checks a text and returns it as it is stored, without secrets.
//
// Errors: INVALID_ARGUMENT.
func (o *Kernel) Text(field, text string) (string, error) {
	if err := CheckText(field, text); err != nil {
		return "", err
	}
	if o.Config.Filter != nil {
		text, _ = o.Config.Filter.Text(text)
	}
	return text, nil
}

// Line is Text for a text of one line. It also replaces control characters by spaces, trims
// the text and truncates it to limit characters.
//
// Errors: INVALID_ARGUMENT.
func (o *Kernel) Line(field, text string, limit int) (string, error) {
	text, err := o.Text(field, text)
	if err != nil {
		return "", err
	}
	return Truncate(strings.TrimSpace(Flat(text)), limit), nil
}

// Flat replaces control characters, U+2028 and U+2029 by spaces.
func Flat(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}

// Truncate returns the beginning of a text, at most n characters.
func Truncate(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

const MaxLimit = 1000

// CheckLimit returns the number of rows that a call asks for, at most MaxLimit; usual if n is
// nil (mail §2).
//
// Errors: INVALID_LIMIT below 1.
func CheckLimit(n *int, usual int) (int, error) {
	switch {
	case n == nil:
		return usual, nil
	case *n < 1:
		return 0, Errorf(CodeLimit, "limit must be at least 1, got %d. Use a positive integer.", *n).
			With("provided", *n).With("min", 1).With("max", MaxLimit).Hint("leave limit out or give 1 to 1000")
	}
	return min(*n, MaxLimit), nil
}

// RequireDiskSpace returns DISK_FULL while the disk is almost full. Calls that create content
// check it (mail §10.4).
func (o *Kernel) RequireDiskSpace() error {
	if o.Config.DiskLevel == nil || o.Config.DiskLevel() != DiskFatal {
		return nil
	}
	return Errorf(CodeDiskFull, "The disk is full.").Hint("free some space; reading, acknowledging and releasing still work")
}

func MissingField(field, hint string) error {
	return Errorf(CodeMissing, "%s is missing", field).With("field", field).With("provided", nil).Hint(hint)
}

// IsPlaceholder reports whether a text, or a folder of a path, is a placeholder from an
// example (mail §2.1).
func IsPlaceholder(text string) bool {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == '\\' }) {
		switch part {
		case "PLACEHOLDER", "<PROJECT>", "{PROJECT}", "$PROJECT", "AGENT_NAME", "<AGENT>":
			return true
		}
		if strings.HasPrefix(part, "YOUR_PROJECT") || strings.HasPrefix(part, "YOUR_AGENT") {
			return true
		}
	}
	return false
}

func PlaceholderGiven(field, text, want string) error {
	return Errorf(CodeConfiguration, "%s is the placeholder %s; put %s there", field, Quoted(text), want).
		With("field", field).With("provided", Clip(text, MaxShown)).Hint("look into the configuration or the instructions that the value comes from")
}

// MaxShown is the maximum number of bytes of an argument that an error repeats.
const MaxShown = 200
