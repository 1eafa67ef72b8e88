package mail

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/project"
	"cairn/internal/store"
)

// Caller says who calls, and from where. The zero Caller is an unknown one that has
// no token.
type Caller struct {
	Token       string   // the argument registration_token
	HeaderToken string   // the header X-Cairn-Agent-Token
	Keyring     *Keyring // the tokens that this stdio process has seen; nil elsewhere
	Owner       bool     // the file's owner at the command line: needs no token, and the change says so

	Session   string            // the argument session_id
	Ancestors []project.Process // the processes above this one, nearest first: the session of the nearest that has one
	Transport string            // the session of the stdio server itself, made at first need; "" for none
	Place     project.Location  // the working directory, zero if unknown; its Home counts for every path that is looked at
}

// callTx is one transaction of one call on a project. Every tool runs in one; those
// that span several tools (macros) run in one as well.
type callTx struct {
	*Service
	tx       *store.Tx
	p        *Project
	now      Time
	at       store.Moment // of the past, if the call asks about one; now is its time then
	caller   Caller
	path     *identity // of a project_key that is a path; nil for others
	key      string    // the project_key as it was given, for suggested calls
	writes   bool
	session  project.Session         // Key 0: none, and in a read
	source   string                  // how it was found
	by       Actor                   // of the changes
	me       *Agent                  // once actor has found it
	agentUse map[int64]agentSessions // of the agents that were asked about
}

// writeIn runs fn in a transaction over the project that a key names; an unknown
// path becomes a project. A failed fn leaves nothing behind.
//
// Errors besides fn's: NOT_FOUND with suggestions for any other unknown key,
// CONFIGURATION_ERROR for a placeholder, MISSING_FIELD for none.
func (o *Service) writeIn(ctx context.Context, c Caller, projectKey string, fn func(ctx context.Context, s *callTx) error) error {
	t, err := c.target(projectKey)
	if err != nil {
		return toFault(err)
	}
	return o.writeTo(ctx, c, t, fn)
}

// writeTo is writeIn for a target.
func (o *Service) writeTo(ctx context.Context, c Caller, t *target, fn func(ctx context.Context, s *callTx) error) error {
	return o.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		s := &callTx{Service: o, tx: tx, now: now(tx), caller: c, path: t.path, key: t.key, writes: true}
		if err := s.open(ctx, t); err != nil {
			return err
		}
		return fn(ctx, s)
	})
}

// open finds or makes the project of a write and finds the caller's session. The id of
// a project that has no mail yet is as good as the path at which cairn knows it.
func (s *callTx) open(ctx context.Context, t *target) (err error) {
	if t.path == nil {
		if s.p, err = t.find(ctx, s.tx); s.p == nil && err == nil {
			t.path, err = t.known(ctx, s.tx, s.caller)
			s.path = t.path
		}
	}
	if t.path != nil && err == nil {
		s.p, err = t.path.ensure(ctx, s.tx, s.by, s.config.Archive)
	}
	switch {
	case err != nil:
		return err
	case s.p == nil:
		return t.notFound(ctx, s.tx)
	}
	err = s.findSession(ctx)
	s.by.Session = s.session.ID
	return err
}

// readIn runs fn over the project that a key names. It writes nothing and makes
// nothing.
//
// Errors besides fn's are those of writeIn; NOT_FOUND for an unknown path too.
func (o *Service) readIn(ctx context.Context, c Caller, projectKey string, fn func(ctx context.Context, s *callTx) error) error {
	t, err := c.target(projectKey)
	if err != nil {
		return toFault(err)
	}
	return o.readFrom(ctx, c, t, fn)
}

// readFrom is readIn for a target.
func (o *Service) readFrom(ctx context.Context, c Caller, t *target, fn func(ctx context.Context, s *callTx) error) error {
	return o.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		p, err := t.find(ctx, tx)
		switch {
		case err != nil:
			return err
		case p == nil:
			return t.notFound(ctx, tx)
		}
		return fn(ctx, &callTx{Service: o, tx: tx, p: p, now: now(tx), caller: c, path: t.path, key: t.key})
	})
}

// other is the scope of another project in the same transaction, for the same
// actor.
func (s *callTx) other(p *Project) *callTx {
	o := *s
	o.p, o.path, o.key = p, nil, p.Slug
	return &o
}

// findOther looks up another project that a call names; it never makes one.
//
// Errors: those of readIn.
func (s *callTx) findOther(ctx context.Context, key string) (*Project, error) {
	t, err := s.caller.target(key)
	if err != nil {
		return nil, err
	}
	p, err := t.find(ctx, s.tx)
	if err == nil && p == nil {
		err = t.notFound(ctx, s.tx)
	}
	return p, err
}

// put appends a document of this project to the change log, in the name of the
// actor, and brings the rows to it. The actor has been active (mail §3).
func (s *callTx) put(ctx context.Context, d Document) error {
	if err := put(ctx, s.tx, s.by, s.p.ProductID, d); err != nil || s.me == nil {
		return err
	}
	return touchAgent(ctx, s.tx, s.me.ID, s.now)
}

// agent finds an agent by its name, retired or not.
//
// Errors: NOT_FOUND with suggestions, and with details.mistake where the name is
// the sort of thing that is none; CONFIGURATION_ERROR for a placeholder,
// MISSING_FIELD for none.
func (s *callTx) agent(ctx context.Context, name string) (*Agent, error) {
	if err := checkText("agent_name", name); err != nil {
		return nil, err
	}
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return nil, missing("agent_name", "list_agents shows the names; register_agent gives you one")
	case isPlaceholder(name):
		return nil, placeholder("agent_name", name, "the name that register_agent gave you")
	}
	a, err := agentByName(ctx, s.tx, s.p.ID, name)
	if err == nil && a == nil {
		err = s.noAgent(ctx, name)
	}
	return a, err
}

// actor finds the agent in whose name the call acts, and makes it the author of
// what the call writes. In a write the caller's session becomes bound to it.
//
// Errors: those of agent; CAPABILITY_DENIED for a protected agent without its token,
// for a retired one, for a mirror, and for HumanOverseer unless the caller is the
// file's owner.
func (s *callTx) actor(ctx context.Context, name string) (*Agent, error) {
	a, err := s.reader(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := s.checkAlive(a); err != nil {
		return nil, err
	}
	s.actAs(a)
	return a, s.bindTo(ctx, a)
}

func (s *callTx) checkAlive(a *Agent) error {
	if a.Retired == 0 {
		return nil
	}
	return problemf(CodeDenied, "agent %s is retired", quoted(a.Name)).with("agent", a.Name).
		suggest(registerCall(s.key, a.Name, a.Program, a.Model)).hint("register_agent with this name brings it back")
}

// actAs makes an agent the author of what the call writes.
func (s *callTx) actAs(a *Agent) {
	s.me, s.by.Agent = a, a.Name
	if s.caller.Owner {
		s.by.Agent += byOwner
	}
}

// bindTo binds the caller's session to the agent as which it acts. Of the file's
// owner, who may act as anyone, that says nothing.
func (s *callTx) bindTo(ctx context.Context, a *Agent) error {
	if !s.writes || s.caller.Owner || s.session.Key == 0 {
		return nil
	}
	if err := bind(ctx, s.tx, s.session.Key, a.ID, s.source, s.now); err != nil || s.session.ID != s.caller.Transport {
		return err
	}
	return s.moveSession(ctx)
}

// moveSession makes the project the current one of the caller's connection, where later
// calls that name none belong (amendments §B.5).
func (s *callTx) moveSession(ctx context.Context) error {
	if s.session.ProjectID == s.p.ProductID {
		return nil
	}
	q, ok, err := project.Find(ctx, s.tx, s.p.ProductID)
	if err != nil || !ok {
		return err
	}
	return project.MoveSession(ctx, s.tx, s.session, q)
}

// byOwner stands behind the name of an agent in the author of a change that the
// file's owner made in its name (mail §4).
const byOwner = " (by owner)"

// reader finds the agent whose inbox or outbox the call reads: as actor, but a
// retired agent's can be read, and nothing is written.
func (s *callTx) reader(ctx context.Context, name string) (*Agent, error) {
	a, err := s.resident(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := s.checkToken(a); err != nil {
		return nil, err
	}
	return a, nil
}

// resident finds an agent that is nobody's mirror and, unless the caller is the
// file's owner, no person.
func (s *callTx) resident(ctx context.Context, name string) (*Agent, error) {
	a, err := s.agent(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case a.Home != nil:
		return nil, problemf(CodeDenied, "agent %s is the mirror of an agent of another project and cannot act here", quoted(a.Name)).
			with("agent", a.Name).with("home", *a.Home).hint("act in the project where it lives, or register an agent of your own here")
	case a.Name == Overseer && !s.caller.Owner:
		return nil, problemf(CodeDenied, "%s is the person who oversees the agents; no agent acts in this name", Overseer).
			with("agent", a.Name).hint("register an agent of your own")
	}
	return a, nil
}

// The texts of a call.

// checkText refuses what is not text: broken UTF-8 and NUL.
func checkText(field, text string) error {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return nil
	}
	return invalid(field, printable(strings.ToValidUTF8(text, "")), "%s must be valid UTF-8 without NUL", field)
}

// text is a text as it is stored: checked, and without secrets.
//
// Errors: INVALID_ARGUMENT.
func (o *Service) text(field, text string) (string, error) {
	if err := checkText(field, text); err != nil {
		return "", err
	}
	if o.config.Filter != nil {
		text, _ = o.config.Filter.Text(text)
	}
	return text, nil
}

// line is a text of one line as it is stored: as text, trimmed, with spaces for
// control characters, and cut to a number of characters.
//
// Errors: INVALID_ARGUMENT.
func (o *Service) line(field, text string, limit int) (string, error) {
	text, err := o.text(field, text)
	if err != nil {
		return "", err
	}
	return cut(strings.TrimSpace(flat(text)), limit), nil
}

// flat puts spaces for control characters and for the other ends of lines.
func flat(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}

// cut is the beginning of a text, at most n characters.
func cut(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

const maxLimit = 1000

// limit is how many rows a call asks for, usual if it does not say (mail §2).
//
// Errors: INVALID_LIMIT below 1.
func limit(n *int, usual int) (int, error) {
	switch {
	case n == nil:
		return usual, nil
	case *n < 1:
		return 0, problemf(CodeLimit, "limit must be at least 1, got %d. Use a positive integer.", *n).
			with("provided", *n).with("min", 1).with("max", maxLimit).hint("leave limit out or give 1 to 1000")
	}
	return min(*n, maxLimit), nil
}

// needRoom refuses what creates content while the disk is all but full (mail §10.4).
func (o *Service) needRoom() error {
	if o.config.DiskLevel == nil || o.config.DiskLevel() != DiskFatal {
		return nil
	}
	return problemf(CodeDiskFull, "The disk is full.").hint("free some space; reading, acknowledging and releasing still work")
}

func missing(field, hint string) error {
	return problemf(CodeMissing, "%s is missing", field).with("field", field).with("provided", nil).hint(hint)
}

// isPlaceholder recognises what stands in examples for a name, or for a folder of a
// path (mail §2.1).
func isPlaceholder(text string) bool {
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

func placeholder(field, text, want string) error {
	return problemf(CodeConfiguration, "%s is the placeholder %s; put %s there", field, quoted(text), want).
		with("field", field).with("provided", clip(text, maxShown)).hint("look into the configuration or the instructions that the value comes from")
}

// maxShown bounds what an error repeats of an argument, in bytes.
const maxShown = 200
