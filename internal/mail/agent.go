package mail

import (
	"context"
	"database/sql"
	"strings"

	"cairn/internal/project"
)

// AgentInfo is an agent as tools show it (mail §5, shapes).
type AgentInfo struct {
	ID                int64  `json:"id"`
	Name              string `json:"name"`
	Program           string `json:"program"`
	Model             string `json:"model"`
	TaskDescription   string `json:"task_description"`
	Inception         Time   `json:"inception_ts"`
	LastActive        Time   `json:"last_active_ts"`
	ProjectID         int64  `json:"project_id"`
	AttachmentsPolicy string `json:"attachments_policy"`
}

func (a *Agent) info() AgentInfo {
	return AgentInfo{
		a.ID, a.Name, a.Program, a.Model, a.TaskDescription, a.Inception, a.LastActive, a.projectID, a.AttachmentsPolicy,
	}
}

// Registered is what registering answers.
type Registered struct {
	AgentInfo
	Token string `json:"registration_token,omitempty"` // where one was issued, this once
}

func registered(a *Agent, token string) Registered { return Registered{a.info(), token} }

// RegisterArgs are the arguments of register_agent and, with the name as
// name_hint, of create_agent_identity.
type RegisterArgs struct {
	ProjectKey        string `arg:"project_key,required"`
	Program           string `arg:"program,required"`
	Model             string `arg:"model,required"`
	Name              string `arg:"name" about:"The name you want: an adjective and a noun, such as GreenLake. Omitted or not valid: one is generated."`
	TaskDescription   string `arg:"task_description,default="` // at most 64 KiB
	AttachmentsPolicy string `arg:"attachments_policy,default=auto,enum=auto|inline|file|none"`
	WantToken         bool   `arg:"want_token"`
}

const (
	maxWord = 200      // characters of a program and of a model
	maxTask = 64 << 10 // bytes of a task description
)

// profile is what registering says of an agent, checked and without secrets.
type profile struct {
	name, program, model, task, policy string
	wantToken                          bool
	git                                project.Git // of the caller's working directory
}

// profile checks the arguments of registering (mail §2.1, §4).
func (o *Service) profile(c Caller, a RegisterArgs) (p profile, err error) {
	p = profile{name: strings.TrimSpace(a.Name), policy: a.AttachmentsPolicy, wantToken: a.WantToken, git: c.Place.Git()}
	def(&p.policy, "auto")
	if err := checkText("name", a.Name); err != nil {
		return p, err
	}
	if p.program, err = o.line("program", a.Program, maxWord); err != nil {
		return p, err
	}
	if p.model, err = o.line("model", a.Model, maxWord); err != nil {
		return p, err
	}
	if p.task, err = o.text("task_description", a.TaskDescription); err != nil {
		return p, err
	}
	switch {
	case p.program == "":
		return p, problemf(CodeEmptyProgram, "program cannot be empty").with("field", "program").hint("name the program that you run in, such as claude-code")
	case p.model == "":
		return p, problemf(CodeEmptyModel, "model cannot be empty").with("field", "model").hint("name the model that you are")
	case len(a.TaskDescription) > maxTask:
		return p, invalid("task_description", a.TaskDescription, "task_description has at most 64 KiB")
	}
	switch p.policy {
	case "auto", "inline", "file", "none":
		return p, nil
	}
	return p, invalid("attachments_policy", p.policy, "attachments_policy is auto, inline, file or none, not %s", quoted(p.policy))
}

// RegisterAgent makes an agent, or brings the one of that name up to date: program,
// model, task, policy, branch and worktree; number, name and inception stay, and a
// retired agent is back (mail §4, §5). What becomes of a name that is none is the
// Service's NameMode. Without a usable name a session that took an agent over registers as
// that agent (amendments §B.7). The session of the caller is bound to the agent. Repeating
// it leads to the same state.
//
// A token is issued where the caller wants one, or the Service enforces them, and
// the agent has none yet.
//
// Errors: EMPTY_PROGRAM, EMPTY_MODEL, INVALID_ARGUMENT; with Strict the code of the
// mistake in the name; CAPABILITY_DENIED for a protected agent without its token and
// for a mirror; INVALID_AGENT_NAME for HumanOverseer; DISK_FULL.
func (o *Service) RegisterAgent(ctx context.Context, c Caller, a RegisterArgs) (out Registered, err error) {
	return o.registering(ctx, c, a, false)
}

// CreateAgent makes an agent of its own: as RegisterAgent, but a name that is taken
// is refused.
//
// Errors: those of RegisterAgent; INVALID_ARGUMENT for a name that is taken.
func (o *Service) CreateAgent(ctx context.Context, c Caller, a RegisterArgs) (Registered, error) {
	return o.registering(ctx, c, a, true)
}

func (o *Service) registering(ctx context.Context, c Caller, a RegisterArgs, onlyNew bool) (out Registered, err error) {
	p, err := o.profile(c, a)
	if err != nil {
		return out, toFault(err)
	}
	err = o.writeIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *callTx) (err error) {
		out, err = s.register(ctx, p, onlyNew)
		return err
	})
	return out, err
}

// register is RegisterAgent, or with onlyNew CreateAgent, inside a call. The agent
// acts from then on.
func (s *callTx) register(ctx context.Context, p profile, onlyNew bool) (out Registered, err error) {
	if err := s.needRoom(); err != nil {
		return out, err
	}
	field := "name"
	if onlyNew {
		field = "name_hint"
	}
	a, err := s.named(ctx, field, p.name, onlyNew)
	if err != nil {
		return out, err
	}
	if a.ID != 0 {
		if onlyNew {
			return out, s.duplicate(field, a)
		}
		if a, err = s.reader(ctx, a.Name); err != nil {
			return out, err
		}
	}
	before := *a
	a.Program, a.Model, a.TaskDescription, a.AttachmentsPolicy, a.Retired = p.program, p.model, p.task, p.policy, 0
	if err := s.place(ctx, a, p.git); err != nil {
		return out, err
	}
	if a.TokenSHA256 == nil && (p.wantToken && s.config.Tokens != TokensOff || s.config.Tokens == TokensEnforced) {
		out.Token = s.newToken(a)
	}
	if a, err = s.save(ctx, a, &before); err != nil {
		return out, err
	}
	return registered(a, out.Token), s.bindTo(ctx, a)
}

// save stores an agent in its own name, unless nothing but its activity is new, and
// returns it as it then stands.
func (s *callTx) save(ctx context.Context, a, before *Agent) (_ *Agent, err error) {
	s.actAs(a)
	switch {
	case a.ID == 0:
		if a.ID, err = nextID(ctx, s.tx, "mail_agents"); err == nil {
			err = s.put(ctx, a)
		}
	case sameDocument(a, before):
		err = touchAgent(ctx, s.tx, a.ID, s.now)
	default:
		err = s.put(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	s.me, err = agentByName(ctx, s.tx, s.p.ID, a.Name)
	return s.me, err
}

// newAgent is an agent of this project that is not stored yet.
func (s *callTx) newAgent(name string) *Agent {
	return &Agent{
		Name: name, Inception: s.now, AttachmentsPolicy: "auto", ContactPolicy: "auto", ProjectUID: s.p.UID,
	}
}

// named is the agent that a given name stands for: the registered one, or a new one,
// ID 0, with a valid name. Without a usable name it is the agent that the session took
// over, unless onlyNew, or a new one.
func (s *callTx) named(ctx context.Context, field, given string, onlyNew bool) (*Agent, error) {
	mode := s.config.NameMode
	if given == "" || mode == AlwaysAuto {
		return s.unnamed(ctx, onlyNew)
	}
	switch {
	case isPlaceholder(given):
		return nil, placeholder(field, given, "a name such as GreenLake")
	case strings.EqualFold(stripped(given), Overseer):
		return nil, problemf(CodeAgentName, "%s is reserved for the person who oversees the agents", Overseer).
			with("field", field).with("provided", given).hint("leave the name out and get one")
	}
	for _, name := range [...]string{given, stripped(given)} {
		if a, err := agentByName(ctx, s.tx, s.p.ID, name); a != nil || err != nil {
			return a, err
		}
	}
	name, ok := wholeName(given)
	switch {
	case ok:
		return s.newAgent(name), nil
	case mode == Strict:
		return nil, badName(field, given)
	}
	return s.unnamed(ctx, onlyNew)
}

func (s *callTx) unnamed(ctx context.Context, onlyNew bool) (*Agent, error) {
	if !onlyNew {
		if a, err := s.inherited(ctx); a != nil || err != nil {
			return a, err
		}
	}
	return s.generated(ctx)
}

func (s *callTx) generated(ctx context.Context) (*Agent, error) {
	name, err := s.freeName(ctx)
	if err != nil {
		return nil, err
	}
	return s.newAgent(name), nil
}

func (s *callTx) duplicate(field string, a *Agent) error {
	return invalid(field, a.Name, "an agent called %s already exists in this project", quoted(a.Name)).
		suggest(registerCall(s.key, a.Name, a.Program, a.Model)).hint("register_agent takes the name up again; another name, or none, makes another agent")
}

// place notes on which branch and in which linked worktree an agent works, where
// the call tells: by its project_key, or by the working directory in a checkout of the
// project. Otherwise what was known stays.
func (s *callTx) place(ctx context.Context, a *Agent, here project.Git) error {
	git := here
	if here.Common != "" {
		row, ok, err := project.Current(ctx, s.tx, s.caller.Place)
		if err != nil {
			return err
		}
		if !ok || row.Key != s.p.key {
			git = project.Git{}
		}
	}
	if s.path != nil && (s.path.git.Worktree != "" || git.Common != s.path.git.Common) {
		git = s.path.git
	}
	if git.Common != "" {
		a.Branch, a.Worktree = orNil(git.Branch), orNil(git.Worktree)
	}
	return nil
}

// sameDocument reports whether two states of an agent have the same document.
func sameDocument(a, b *Agent) bool {
	x, y := *a, *b
	equal := same(x.Branch, y.Branch) && same(x.Worktree, y.Worktree) && same(x.TokenSHA256, y.TokenSHA256)
	y.Branch, y.Worktree, y.TokenSHA256 = x.Branch, x.Worktree, x.TokenSHA256
	return equal && x == y
}

// overseer is the agent of the person who oversees the others, made at first use
// (mail §4). Only callers who have shown that they are this person may ask for it.
func (s *callTx) overseer(ctx context.Context) (*Agent, error) {
	a, err := agentByName(ctx, s.tx, s.p.ID, Overseer)
	if err == nil && a == nil {
		a = s.newAgent(Overseer)
		a.Program, a.Model, a.ContactPolicy = "WebUI", "Human", "open"
		return s.save(ctx, a, a)
	}
	if err != nil {
		return nil, err
	}
	s.actAs(a)
	return a, nil
}

// Profile is what whois answers.
type Profile struct {
	AgentInfo
	Commits []Commit `json:"recent_commits"` // the newest first, never nil
}

// WhoisArgs are the arguments of whois.
type WhoisArgs struct {
	ProjectKey  string `arg:"project_key,required"`
	AgentName   string `arg:"agent_name,required" about:"The agent to look up."`
	NoCommits   bool   `arg:"include_recent_commits,not" about:"Whether recent_commits is filled."`
	CommitLimit *int   `arg:"commit_limit,default=5,min=1,max=1000" about:"How many commits."`
}

// Whois tells about an agent, retired ones too, and which of the newest commits of
// the archive hold something of its doing.
//
// Errors: NOT_FOUND with suggestions, INVALID_LIMIT.
func (o *Service) Whois(ctx context.Context, c Caller, a WhoisArgs) (out Profile, err error) {
	n, err := limit(a.CommitLimit, 5)
	if err != nil {
		return out, toFault(err)
	}
	err = o.readIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *callTx) error {
		found, err := s.agent(ctx, a.AgentName)
		if err != nil {
			return err
		}
		out = Profile{found.info(), []Commit{}}
		if a.NoCommits {
			return nil
		}
		commits, err := s.config.Archive.commitsBy(ctx, s.tx, s.p.key, Stream(s.p.UID), []string{found.Name, found.Name + byOwner}, n)
		out.Commits = append(out.Commits, commits...)
		return err
	})
	return out, err
}

// ListedAgent is an agent as list_agents shows it.
type ListedAgent struct {
	AgentInfo
	ContactPolicy string  `json:"contact_policy"`
	Unread        int     `json:"unread_count"`
	Reservations  int     `json:"active_reservations"`
	Branch        *string `json:"branch"`
	Worktree      *string `json:"worktree"`
	Retired       Time    `json:"retired_ts"`
}

// ListAgentsArgs are the arguments of list_agents.
type ListAgentsArgs struct {
	ProjectKey       string `arg:"project_key,required"`
	ActiveWithinDays *int   `arg:"active_within_days,min=1" about:"Only agents active within so many days."`
	IncludeRetired   bool   `arg:"include_retired" about:"Also agents that have retired."`
	Program          string `arg:"program" about:"Only agents of this program."` // case does not matter
	Limit            *int   `arg:"limit,default=100,min=1,max=1000" about:"How many agents."`
}

const selectListed = agentColumns + `WHERE a.project_id = ?1 AND a.last_active_ts >= ?2 AND (?3 OR a.retired_ts IS NULL)
AND (?4 = '' OR a.program = ?4 COLLATE NOCASE) ORDER BY a.name LIMIT +?5`

const selectHolding = `SELECT count(*) FROM mail_reservations WHERE project_id = ? AND agent_id = ? AND released_ts IS NULL AND expires_ts > ?`

// ListAgents lists the agents of a project by name; none gives an empty list.
//
// Errors: NOT_FOUND for the project, INVALID_LIMIT, INVALID_ARGUMENT.
func (o *Service) ListAgents(ctx context.Context, c Caller, a ListAgentsArgs) (out []ListedAgent, err error) {
	n, err := limit(a.Limit, 100)
	if err == nil && a.ActiveWithinDays != nil && *a.ActiveWithinDays < 1 {
		err = invalid("active_within_days", *a.ActiveWithinDays, "active_within_days must be at least 1, got %d", *a.ActiveWithinDays)
	}
	if err != nil {
		return nil, toFault(err)
	}
	err = o.readIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *callTx) error {
		out, err = s.list(ctx, a, n)
		return err
	})
	return out, err
}

func (s *callTx) list(ctx context.Context, a ListAgentsArgs, n int) ([]ListedAgent, error) {
	since := Time(0)
	if a.ActiveWithinDays != nil {
		since = timeOf(s.now.UTC().AddDate(0, 0, -min(*a.ActiveWithinDays, 36_500)))
	}
	out := []ListedAgent{}
	err := s.tx.Each(ctx, func(rows *sql.Rows) error {
		found := &Agent{}
		if err := rows.Scan(found.columns()...); err != nil {
			return err
		}
		listed := ListedAgent{
			AgentInfo: found.info(), ContactPolicy: found.ContactPolicy, Unread: found.Unread,
			Branch: found.Branch, Worktree: found.Worktree, Retired: found.Retired,
		}
		err := s.tx.Get(ctx, []any{&listed.Reservations}, selectHolding, s.p.ID, found.ID, s.now)
		out = append(out, listed)
		return err
	}, selectListed, s.p.ID, since, a.IncludeRetired, strings.TrimSpace(a.Program), n)
	return out, err
}

// RetireArgs are the arguments of retire_agent.
type RetireArgs struct {
	ProjectKey string `arg:"project_key,required"`
	AgentName  string `arg:"agent_name,required" about:"The agent to retire."`
	// Reason must be a text. It is not kept: neither a row nor profile.json has a place
	// for it, and what the log alone held would be gone with the next rebuild. Who is to
	// know it is written a message.
	Reason string `arg:"reason,default=" about:"Why. cairn does not store it."`
}

// Retired is what retire_agent answers.
type Retired struct {
	Agent    string `json:"agent"`
	Retired  bool   `json:"retired"` // true
	At       Time   `json:"retired_at"`
	Released int    `json:"released"` // reservations, by this call
}

const selectHeld = reservationColumns + `WHERE r.project_id = ? AND r.agent_id = ? AND r.released_ts IS NULL AND r.expires_ts > ? ORDER BY r.id`

// RetireAgent takes an agent out of lists, broadcasts and delivery and releases its
// reservations (mail §4). Its name and its mail stay; registering it again brings it
// back. Retiring again answers the first time.
//
// Errors: those of acting as the agent; CAPABILITY_DENIED for HumanOverseer.
func (o *Service) RetireAgent(ctx context.Context, c Caller, a RetireArgs) (out Retired, err error) {
	err = o.writeIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *callTx) error {
		if err := checkText("reason", a.Reason); err != nil {
			return err
		}
		me, err := s.reader(ctx, a.AgentName)
		switch {
		case err != nil:
			return err
		case me.Name == Overseer:
			return problemf(CodeDenied, "%s cannot be retired", Overseer).with("agent", me.Name).hint("retire agents")
		}
		s.actAs(me)
		if out.Released, err = s.releaseAll(ctx, me, "retired"); err != nil {
			return err
		}
		if me.Retired == 0 {
			me.Retired = s.now
			err = s.put(ctx, me)
		}
		out.Agent, out.Retired, out.At = me.Name, true, me.Retired
		return err
	})
	return out, err
}

// releaseAll ends every active reservation of an agent.
func (s *callTx) releaseAll(ctx context.Context, a *Agent, kind string) (released int, err error) {
	var held []*Reservation
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		r := &Reservation{}
		held = append(held, r)
		return rows.Scan(r.columns()...)
	}, selectHeld, s.p.ID, a.ID, s.now)
	if err != nil {
		return 0, err
	}
	for _, r := range held {
		r.Released, r.ReleaseKind = s.now, &kind
		if err := s.put(ctx, r); err != nil {
			return 0, err
		}
	}
	return len(held), nil
}

// RotateToken gives an agent another registration_token, which makes it protected
// if it was not; the former one is worth nothing any more. The token is shown this
// once.
//
// Errors: those of acting as the agent.
func (o *Service) RotateToken(ctx context.Context, c Caller, projectKey, name string) (out Registered, err error) {
	err = o.writeIn(ctx, c, projectKey, func(ctx context.Context, s *callTx) error {
		a, err := s.actor(ctx, name)
		if err != nil {
			return err
		}
		token := s.newToken(a)
		if err := s.put(ctx, a); err != nil {
			return err
		}
		out = registered(a, token)
		return nil
	})
	return out, err
}
