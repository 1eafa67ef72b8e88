package agents

import (
	"context"
	"database/sql"
	"strings"

	"cairn/internal/mail"
	"cairn/internal/project"
)

// AgentInfo is an agent in the results of tools (mail §5, shapes).
type AgentInfo struct {
	ID                int64     `json:"id"`
	Name              string    `json:"name"`
	Program           string    `json:"program"`
	Model             string    `json:"model"`
	TaskDescription   string    `json:"task_description"`
	Inception         mail.Time `json:"inception_ts"`
	LastActive        mail.Time `json:"last_active_ts"`
	ProjectID         int64     `json:"project_id"`
	AttachmentsPolicy string    `json:"attachments_policy"`
}

func Info(a *mail.Agent) AgentInfo {
	return AgentInfo{
		a.ID, a.Name, a.Program, a.Model, a.TaskDescription, a.Inception, a.LastActive, a.ProjectID, a.AttachmentsPolicy,
	}
}

// Registered is the result of registering.
type Registered struct {
	AgentInfo
	Token string `json:"registration_token,omitempty"` // if this call issued one; it is not shown again
}

func registered(a *mail.Agent, token string) Registered { return Registered{Info(a), token} }

// RegisterArgs are the arguments of register_agent and of create_agent_identity, where the
// name is name_hint.
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

// Registration holds the arguments of registering, checked and without secrets.
type Registration struct {
	name, program, model, task, policy string
	wantToken                          bool
	git                                project.Git // of the caller's working directory
}

// NewRegistration checks the arguments of registering (mail §2.1, §4).
func NewRegistration(o *mail.Kernel, c mail.Caller, a RegisterArgs) (p Registration, err error) {
	p = Registration{name: strings.TrimSpace(a.Name), policy: a.AttachmentsPolicy, wantToken: a.WantToken, git: c.Place.Git()}
	mail.Default(&p.policy, "auto")
	if err := mail.CheckText("name", a.Name); err != nil {
		return p, err
	}
	if p.program, err = o.Line("program", a.Program, maxWord); err != nil {
		return p, err
	}
	if p.model, err = o.Line("model", a.Model, maxWord); err != nil {
		return p, err
	}
	if p.task, err = o.Text("task_description", a.TaskDescription); err != nil {
		return p, err
	}
	switch {
	case p.program == "":
		return p, mail.Errorf(mail.CodeEmptyProgram, "program cannot be empty").With("field", "program").Hint("name the program that you run in, such as claude-code")
	case p.model == "":
		return p, mail.Errorf(mail.CodeEmptyModel, "model cannot be empty").With("field", "model").Hint("name the model that you are")
	case len(a.TaskDescription) > maxTask:
		return p, mail.InvalidArgument("task_description", a.TaskDescription, "task_description has at most 64 KiB")
	}
	switch p.policy {
	case "auto", "inline", "file", "none":
		return p, nil
	}
	return p, mail.InvalidArgument("attachments_policy", p.policy, "attachments_policy is auto, inline, file or none, not %s", mail.Quoted(p.policy))
}

// RegisterAgent creates an agent, or updates the agent of that name (mail §4, §5). It updates
// program, model, task, policy, branch and worktree. Number, name and inception stay, and a
// retired agent becomes active again. Config.NameMode decides how an invalid name is handled.
// Without a usable name, a session that took over an agent registers as that agent (amendments
// §B.7). The caller's session is bound to the agent. RegisterAgent is idempotent.
//
// A token is issued if the caller requests one or Config.Tokens enforces them, and the agent
// has no token yet.
//
// Errors: EMPTY_PROGRAM, EMPTY_MODEL, INVALID_ARGUMENT; with Strict the code of the mistake in
// the name; CAPABILITY_DENIED for a protected agent without its token and for a mirror;
// INVALID_AGENT_NAME for HumanOverseer; DISK_FULL.
func (o *Agents) RegisterAgent(ctx context.Context, c mail.Caller, a RegisterArgs) (out Registered, err error) {
	return registering(ctx, o.Kernel, c, a, false)
}

// CreateAgent always creates an agent: it is like RegisterAgent, but refuses a name that is
// taken.
//
// Errors: those of RegisterAgent; INVALID_ARGUMENT for a name that is taken.
func (o *Agents) CreateAgent(ctx context.Context, c mail.Caller, a RegisterArgs) (Registered, error) {
	return registering(ctx, o.Kernel, c, a, true)
}

func registering(ctx context.Context, o *mail.Kernel, c mail.Caller, a RegisterArgs, onlyNew bool) (out Registered, err error) {
	p, err := NewRegistration(o, c, a)
	if err != nil {
		return out, mail.Fault(err)
	}
	err = o.WriteIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) (err error) {
		out, err = Register(ctx, s, p, onlyNew)
		return err
	})
	return out, err
}

// Register is RegisterAgent inside a call, or CreateAgent with onlyNew. Afterwards the call
// acts as the agent.
func Register(ctx context.Context, s *mail.CallTx, p Registration, onlyNew bool) (out Registered, err error) {
	if err := s.RequireDiskSpace(); err != nil {
		return out, err
	}
	field := "name"
	if onlyNew {
		field = "name_hint"
	}
	a, err := named(ctx, s, field, p.name, onlyNew)
	if err != nil {
		return out, err
	}
	if a.ID != 0 {
		if onlyNew {
			return out, duplicate(s, field, a)
		}
		if a, err = s.ReadAs(ctx, a.Name); err != nil {
			return out, err
		}
	}
	before := *a
	a.Program, a.Model, a.TaskDescription, a.AttachmentsPolicy, a.Retired = p.program, p.model, p.task, p.policy, 0
	if err := place(ctx, s, a, p.git); err != nil {
		return out, err
	}
	if a.TokenSHA256 == nil && (p.wantToken && s.Config.Tokens != mail.TokensOff || s.Config.Tokens == mail.TokensEnforced) {
		out.Token = s.NewToken(a)
	}
	if a, err = save(ctx, s, a, &before); err != nil {
		return out, err
	}
	return registered(a, out.Token), s.BindTo(ctx, a)
}

// save stores an agent as its own author and returns its new state. If the document did not
// change, it only records the agent's activity.
func save(ctx context.Context, s *mail.CallTx, a, before *mail.Agent) (_ *mail.Agent, err error) {
	s.SetActor(a)
	switch {
	case a.ID == 0:
		if a.ID, err = mail.NextID(ctx, s.Tx, mail.AgentTable); err == nil {
			err = s.Put(ctx, a)
		}
	case sameDocument(a, before):
		err = mail.TouchAgent(ctx, s.Tx, a.ID, s.Now)
	default:
		err = s.Put(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	s.Me, err = mail.AgentByName(ctx, s.Tx, s.Project.ID, a.Name)
	return s.Me, err
}

// NewAgent returns an agent of this project that is not stored yet.
func NewAgent(s *mail.CallTx, name string) *mail.Agent {
	return &mail.Agent{
		Name: name, Inception: s.Now, AttachmentsPolicy: "auto", ContactPolicy: "auto", ProjectUID: s.Project.UID,
	}
}

// named returns the agent that a given name refers to: the registered agent, or a new one with
// ID 0 and a valid name. Without a usable name it returns the agent that the session took
// over, unless onlyNew, or a new one.
func named(ctx context.Context, s *mail.CallTx, field, given string, onlyNew bool) (*mail.Agent, error) {
	mode := s.Config.NameMode
	if given == "" || mode == mail.AlwaysAuto {
		return unnamed(ctx, s, onlyNew)
	}
	switch {
	case mail.IsPlaceholder(given):
		return nil, mail.PlaceholderGiven(field, given, "a name such as GreenLake")
	case strings.EqualFold(mail.LettersAndDigits(given), mail.Overseer):
		return nil, mail.Errorf(mail.CodeAgentName, "%s is reserved for the person who oversees the agents", mail.Overseer).
			With("field", field).With("provided", given).Hint("leave the name out and get one")
	}
	for _, name := range [...]string{given, mail.LettersAndDigits(given)} {
		if a, err := mail.AgentByName(ctx, s.Tx, s.Project.ID, name); a != nil || err != nil {
			return a, err
		}
	}
	name, ok := mail.WholeName(given)
	switch {
	case ok:
		return NewAgent(s, name), nil
	case mode == mail.Strict:
		return nil, mail.BadName(field, given)
	}
	return unnamed(ctx, s, onlyNew)
}

func unnamed(ctx context.Context, s *mail.CallTx, onlyNew bool) (*mail.Agent, error) {
	if !onlyNew {
		if a, err := inherited(ctx, s); a != nil || err != nil {
			return a, err
		}
	}
	return generated(ctx, s)
}

func generated(ctx context.Context, s *mail.CallTx) (*mail.Agent, error) {
	name, err := s.FreeName(ctx)
	if err != nil {
		return nil, err
	}
	return NewAgent(s, name), nil
}

func duplicate(s *mail.CallTx, field string, a *mail.Agent) error {
	return mail.InvalidArgument(field, a.Name, "an agent called %s already exists in this project", mail.Quoted(a.Name)).
		Suggest(mail.RegisterCall(s.ProjectKey, a.Name, a.Program, a.Model)).Hint("register_agent takes the name up again; another name, or none, makes another agent")
}

// place records the branch and the linked worktree in which an agent works, if the call
// contains them. They come from a project_key that is a path, or from a working directory in a
// checkout of the project. Otherwise the recorded values stay.
func place(ctx context.Context, s *mail.CallTx, a *mail.Agent, here project.Git) error {
	git := here
	if here.Common != "" {
		row, ok, err := project.Current(ctx, s.Tx, s.Caller.Place)
		if err != nil {
			return err
		}
		if !ok || row.Key != s.Project.RowKey {
			git = project.Git{}
		}
	}
	if s.Path != nil && (s.Path.Git.Worktree != "" || git.Common != s.Path.Git.Common) {
		git = s.Path.Git
	}
	if git.Common != "" {
		a.Branch, a.Worktree = mail.OrNil(git.Branch), mail.OrNil(git.Worktree)
	}
	return nil
}

// sameDocument reports whether two states of an agent have the same document.
func sameDocument(a, b *mail.Agent) bool {
	x, y := *a, *b
	equal := mail.SameText(x.Branch, y.Branch) && mail.SameText(x.Worktree, y.Worktree) && mail.SameText(x.TokenSHA256, y.TokenSHA256)
	y.Branch, y.Worktree, y.TokenSHA256 = x.Branch, x.Worktree, x.TokenSHA256
	return equal && x == y
}

// Overseer returns the agent of the human overseer and creates it at first use (mail §4). It
// must only be called for a caller who has proved to be the overseer.
func Overseer(ctx context.Context, s *mail.CallTx) (*mail.Agent, error) {
	a, err := mail.AgentByName(ctx, s.Tx, s.Project.ID, mail.Overseer)
	if err == nil && a == nil {
		a = NewAgent(s, mail.Overseer)
		a.Program, a.Model, a.ContactPolicy = "WebUI", "Human", "open"
		return save(ctx, s, a, a)
	}
	if err != nil {
		return nil, err
	}
	s.SetActor(a)
	return a, nil
}

// Profile is the result of whois.
type Profile struct {
	AgentInfo
	Commits []mail.Commit `json:"recent_commits"` // newest first, never nil
}

// WhoisArgs are the arguments of whois.
type WhoisArgs struct {
	ProjectKey  string `arg:"project_key,required"`
	AgentName   string `arg:"agent_name,required" about:"The agent to look up."`
	NoCommits   bool   `arg:"include_recent_commits,not" about:"Whether recent_commits is filled."`
	CommitLimit *int   `arg:"commit_limit,default=5,min=1,max=1000" about:"Maximum number of commits."`
}

// Whois describes an agent, including a retired one. It also returns the newest commits of the
// archive that contain changes by the agent.
//
// Errors: NOT_FOUND with suggestions, INVALID_LIMIT.
func (o *Agents) Whois(ctx context.Context, c mail.Caller, a WhoisArgs) (out Profile, err error) {
	n, err := mail.CheckLimit(a.CommitLimit, 5)
	if err != nil {
		return out, mail.Fault(err)
	}
	err = o.ReadIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		found, err := s.Agent(ctx, a.AgentName)
		if err != nil {
			return err
		}
		out = Profile{Info(found), []mail.Commit{}}
		if a.NoCommits {
			return nil
		}
		commits, err := s.Config.Archive.ListCommits(ctx, s.Tx, s.Project.RowKey, mail.Stream(s.Project.UID), []string{found.Name, found.Name + mail.ByOwnerSuffix}, n)
		out.Commits = append(out.Commits, commits...)
		return err
	})
	return out, err
}

// ListedAgent is an agent in the result of list_agents.
type ListedAgent struct {
	AgentInfo
	ContactPolicy string    `json:"contact_policy"`
	Unread        int       `json:"unread_count"`
	Reservations  int       `json:"active_reservations"`
	Branch        *string   `json:"branch"`
	Worktree      *string   `json:"worktree"`
	Retired       mail.Time `json:"retired_ts"`
}

// ListAgentsArgs are the arguments of list_agents.
type ListAgentsArgs struct {
	ProjectKey       string `arg:"project_key,required"`
	ActiveWithinDays *int   `arg:"active_within_days,min=1" about:"Only agents active within this number of days."`
	IncludeRetired   bool   `arg:"include_retired" about:"Also agents that have retired."`
	Program          string `arg:"program" about:"Only agents of this program."` // case is ignored
	Limit            *int   `arg:"limit,default=100,min=1,max=1000" about:"Maximum number of agents."`
}

const selectListed = mail.AgentColumns + `WHERE a.project_id = ?1 AND a.last_active_ts >= ?2 AND (?3 OR a.retired_ts IS NULL)
AND (?4 = '' OR a.program = ?4 COLLATE NOCASE) ORDER BY a.name LIMIT +?5`

const selectHolding = `SELECT count(*) FROM mail_reservations WHERE project_id = ? AND agent_id = ? AND released_ts IS NULL AND expires_ts > ?`

// ListAgents returns the agents of a project, sorted by name; an empty list if there are none.
//
// Errors: NOT_FOUND for the project, INVALID_LIMIT, INVALID_ARGUMENT.
func (o *Agents) ListAgents(ctx context.Context, c mail.Caller, a ListAgentsArgs) (out []ListedAgent, err error) {
	n, err := mail.CheckLimit(a.Limit, 100)
	if err == nil && a.ActiveWithinDays != nil && *a.ActiveWithinDays < 1 {
		err = mail.InvalidArgument("active_within_days", *a.ActiveWithinDays, "active_within_days must be at least 1, got %d", *a.ActiveWithinDays)
	}
	if err != nil {
		return nil, mail.Fault(err)
	}
	err = o.ReadIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		out, err = list(ctx, s, a, n)
		return err
	})
	return out, err
}

func list(ctx context.Context, s *mail.CallTx, a ListAgentsArgs, n int) ([]ListedAgent, error) {
	since := mail.Time(0)
	if a.ActiveWithinDays != nil {
		since = mail.TimeOf(s.Now.UTC().AddDate(0, 0, -min(*a.ActiveWithinDays, 36_500)))
	}
	out := []ListedAgent{}
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		found := &mail.Agent{}
		if err := rows.Scan(found.Columns()...); err != nil {
			return err
		}
		listed := ListedAgent{
			AgentInfo: Info(found), ContactPolicy: found.ContactPolicy, Unread: found.Unread,
			Branch: found.Branch, Worktree: found.Worktree, Retired: found.Retired,
		}
		err := s.Tx.Get(ctx, []any{&listed.Reservations}, selectHolding, s.Project.ID, found.ID, s.Now)
		out = append(out, listed)
		return err
	}, selectListed, s.Project.ID, since, a.IncludeRetired, strings.TrimSpace(a.Program), n)
	return out, err
}

// RetireArgs are the arguments of retire_agent.
type RetireArgs struct {
	ProjectKey string `arg:"project_key,required"`
	AgentName  string `arg:"agent_name,required" about:"The agent to retire."`
	// Reason must be valid text. It is not stored: neither a row nor profile.json has a field
	// for it. A value that only the log contained would be lost in the next rebuild. To inform
	// another agent, send it a message.
	Reason string `arg:"reason,default=" about:"The reason. cairn does not store it."`
}

// Retired is the result of retire_agent.
type Retired struct {
	Agent    string    `json:"agent"`
	Retired  bool      `json:"retired"` // always true
	At       mail.Time `json:"retired_at"`
	Released int       `json:"released"` // number of reservations that this call released
}

const selectHeld = mail.ReservationColumns + `WHERE r.project_id = ? AND r.agent_id = ? AND r.released_ts IS NULL AND r.expires_ts > ? ORDER BY r.id`

// RetireAgent removes an agent from lists, broadcasts and delivery and releases its
// reservations (mail §4). Its name and its mail stay, and registering it again reactivates it.
// Retiring it again returns the time of the first call.
//
// Errors: those of acting as the agent; CAPABILITY_DENIED for HumanOverseer.
func (o *Agents) RetireAgent(ctx context.Context, c mail.Caller, a RetireArgs) (out Retired, err error) {
	err = o.WriteIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		if err := mail.CheckText("reason", a.Reason); err != nil {
			return err
		}
		me, err := s.ReadAs(ctx, a.AgentName)
		switch {
		case err != nil:
			return err
		case me.Name == mail.Overseer:
			return mail.Errorf(mail.CodeDenied, "%s cannot be retired", mail.Overseer).With("agent", me.Name).Hint("retire agents")
		}
		s.SetActor(me)
		if out.Released, err = releaseAll(ctx, s, me, "retired"); err != nil {
			return err
		}
		if me.Retired == 0 {
			me.Retired = s.Now
			err = s.Put(ctx, me)
		}
		out.Agent, out.Retired, out.At = me.Name, true, me.Retired
		return err
	})
	return out, err
}

// releaseAll releases all active reservations of an agent and returns their number.
func releaseAll(ctx context.Context, s *mail.CallTx, a *mail.Agent, kind string) (released int, err error) {
	var held []*mail.Reservation
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		r := &mail.Reservation{}
		held = append(held, r)
		return rows.Scan(r.Columns()...)
	}, selectHeld, s.Project.ID, a.ID, s.Now)
	if err != nil {
		return 0, err
	}
	for _, r := range held {
		r.Released, r.ReleaseKind = s.Now, &kind
		if err := s.Put(ctx, r); err != nil {
			return 0, err
		}
	}
	return len(held), nil
}

// RotateToken gives an agent a new registration_token and makes it protected. The former token
// becomes invalid. The new one is shown only in this result.
//
// Errors: those of acting as the agent.
func (o *Agents) RotateToken(ctx context.Context, c mail.Caller, projectKey, name string) (out Registered, err error) {
	err = o.WriteIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		a, err := s.ActAs(ctx, name)
		if err != nil {
			return err
		}
		token := s.NewToken(a)
		if err := s.Put(ctx, a); err != nil {
			return err
		}
		out = registered(a, token)
		return nil
	})
	return out, err
}
