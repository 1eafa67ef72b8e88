package messages

import (
	"context"
	"database/sql"
	"strings"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
)

// The recipient fields of a message. For an agent that is named twice, the first field counts.
const (
	FieldTo  = "to"
	fieldCC  = "cc"
	fieldBCC = "bcc"
)

// maxRecipients is the maximum number of recipients that a call names. A broadcast has no
// limit.
const maxRecipients = 200

// address is a recipient as a call names it.
type address struct {
	kind  string       // to, cc or bcc
	given string       // trimmed
	name  string       // of the agent
	away  *mail.Target // of the other project, if the address names one; else nil
}

// splitAddress splits Name@project and project:slug#Name; key is "" for a name alone (mail
// §2). The first @ or the last # separates them, since paths may contain more of them and
// names contain none.
func splitAddress(text string) (name, key string) {
	if rest, ok := strings.CutPrefix(text, "project:"); ok {
		if i := strings.LastIndexByte(rest, '#'); i > 0 && i < len(rest)-1 {
			return strings.TrimSpace(rest[i+1:]), strings.TrimSpace(rest[:i])
		}
	}
	if name, key, ok := strings.Cut(text, "@"); ok {
		name, key = strings.TrimSpace(name), strings.TrimSpace(key)
		if name != "" && key != "" {
			return name, key
		}
	}
	return text, ""
}

// addresses parses the recipients of one field.
//
// Errors: INVALID_ARGUMENT, CONFIGURATION_ERROR; BROADCAST_ATTEMPT for all and its synonyms.
func addresses(c *mail.Caller, kind string, list []string) ([]address, error) {
	var out []address
	for _, given := range list {
		if err := mail.CheckText(kind, given); err != nil {
			return nil, err
		}
		a := address{kind: kind, given: strings.TrimSpace(given)}
		if a.given == "" {
			return nil, mail.InvalidArgument(kind, given, "%s holds an empty name", kind)
		}
		if mail.IsEverybody(strings.ToLower(a.given)) {
			return nil, mail.BadName(kind, a.given)
		}
		var key string
		if a.name, key = splitAddress(a.given); mail.IsPlaceholder(a.name) {
			return nil, mail.PlaceholderGiven(kind, a.name, "the name of a registered agent")
		}
		if key != "" {
			away, err := c.Target(key)
			if err != nil {
				return nil, err
			}
			a.away = away
		}
		out = append(out, a)
	}
	return out, nil
}

// Recipient is an agent that receives a message, with the project that the agent belongs to.
type Recipient struct {
	*mail.Agent
	Project *mail.Project
	Field   string // to, cc or bcc
}

// shown returns the name of a recipient in the form that a sender in a project must use.
func (r Recipient) shown(from *mail.Project) string {
	if r.Project.ID == from.ID {
		return r.Name
	}
	return r.Name + "@" + r.Project.Slug
}

// resolver looks up recipients.
type resolver struct {
	*mail.CallTx
	projects map[string]*mail.Project
	seen     map[int64]bool
	out      []Recipient
	unknown  []address
	away     []string // unknown recipients of other projects
}

// recipients returns the agents that addresses refer to, each once, in the given order. A
// mirror is replaced by the agent that it represents.
//
// Errors: RECIPIENT_NOT_FOUND with suggestions; NOT_FOUND for a project; EMAIL_AS_AGENT for an
// e-mail address that does not name a project; INVALID_ARGUMENT for too many.
func recipients(ctx context.Context, s *mail.CallTx, all []address) ([]Recipient, error) {
	r := &resolver{CallTx: s, projects: map[string]*mail.Project{}, seen: map[int64]bool{}}
	for _, a := range all {
		if err := r.add(ctx, a); err != nil {
			return nil, err
		}
	}
	if len(r.unknown)+len(r.away) > 0 {
		return nil, r.missing(ctx)
	}
	if len(r.out) > maxRecipients {
		return nil, mail.InvalidArgument(FieldTo, len(r.out), "a message has at most %d recipients, not %d", maxRecipients, len(r.out))
	}
	return r.out, nil
}

func (r *resolver) add(ctx context.Context, a address) error {
	p, err := r.projectOf(ctx, a)
	if err != nil {
		return err
	}
	found, err := mail.AgentByName(ctx, r.Tx, p.ID, a.name)
	if err == nil && found == nil && p.ID == r.Project.ID && r.Config.RegisterRecipients {
		found, err = autoRegister(ctx, r.CallTx, a.name)
	}
	if err == nil && found != nil {
		found, p, err = resolveMirror(ctx, r.CallTx, found, p)
	}
	switch {
	case err != nil:
		return err
	case found == nil && p.ID == r.Project.ID:
		r.unknown = append(r.unknown, a)
	case found == nil:
		r.away = append(r.away, a.name+" @ "+p.HumanKey)
	case !r.seen[found.ID]:
		r.seen[found.ID] = true
		r.out = append(r.out, Recipient{found, p, a.kind})
	}
	return nil
}

func (r *resolver) projectOf(ctx context.Context, a address) (*mail.Project, error) {
	if a.away == nil {
		return r.Project, nil
	}
	if p := r.projects[a.away.Key]; p != nil {
		return p, nil
	}
	p, err := a.away.Find(ctx, r.Tx)
	switch {
	case err != nil:
		return nil, err
	case p == nil && mail.IsEmail(a.given):
		return nil, mail.BadName(a.kind, a.given)
	case p == nil:
		return nil, a.away.NotFound(ctx, r.Tx)
	}
	r.projects[a.away.Key] = p
	return p, nil
}

// resolveMirror returns the agent that a mirror represents, nil if it no longer exists. It
// returns any other agent unchanged.
func resolveMirror(ctx context.Context, s *mail.CallTx, a *mail.Agent, p *mail.Project) (*mail.Agent, *mail.Project, error) {
	if a.Home == nil {
		return a, p, nil
	}
	uid, name, _ := strings.Cut(*a.Home, "/")
	home, err := mail.ProjectByUID(ctx, s.Tx, uid)
	if err != nil || home == nil {
		return nil, p, err
	}
	a, err = mail.AgentByName(ctx, s.Tx, home.ID, name)
	return a, home, err
}

// autoRegister registers an unknown recipient. It returns nil if the name is not a valid agent
// name.
func autoRegister(ctx context.Context, s *mail.CallTx, name string) (*mail.Agent, error) {
	name, ok := mail.WholeName(name)
	if !ok {
		return nil, nil
	}
	a, err := mail.AgentByName(ctx, s.Tx, s.Project.ID, name)
	if a != nil || err != nil {
		return a, err
	}
	a = agents.NewAgent(s, name)
	a.Program, a.Model = "unknown", "unknown"
	return added(ctx, s, a)
}

// added stores an agent that did not register itself: a recipient or a mirror.
func added(ctx context.Context, s *mail.CallTx, a *mail.Agent) (_ *mail.Agent, err error) {
	if a.ID, err = mail.NextID(ctx, s.Tx, mail.AgentTable); err != nil {
		return nil, err
	}
	if err := s.Put(ctx, a); err != nil {
		return nil, err
	}
	return mail.AgentByName(ctx, s.Tx, s.Project.ID, a.Name)
}

// missing returns the error for recipients that do not exist.
func (r *resolver) missing(ctx context.Context) error {
	names, near, mistakes := []string{}, []mail.Suggestion{}, map[string]string{}
	for _, a := range r.unknown {
		names = append(names, mail.Clip(a.name, mail.MaxShown))
		more, err := r.SimilarAgents(ctx, a.name)
		if err != nil {
			return err
		}
		near = append(near, more...)
		if code := mail.MistakeIn(a.name); code != "" {
			mistakes[mail.Clip(a.name, mail.MaxShown)] = code
		}
	}
	const advice = "list_agents shows who is registered in the project; whoever is missing has to call register_agent"
	where, what := r.Project.HumanKey, "local recipients "+mail.Printable(strings.Join(names, ", "))
	if len(names) == 0 {
		where, what = "theirs", "recipients of other projects "+mail.Printable(strings.Join(r.away, "; "))
	}
	p := mail.Errorf(mail.CodeRecipient, "%s are not registered in project %s", what, where).
		With("unknown_local", names).With("hint", advice).With("suggestions", mail.BestSuggestions(distinct(near)))
	if len(r.away) > 0 {
		p = p.With("unknown_external", r.away)
	}
	calls := []mail.Call{mail.ListCall(r.ProjectKey)}
	if len(names) > 0 {
		name, _ := mail.WholeName(names[0])
		calls = append(calls, mail.RegisterCall(r.ProjectKey, name, "", ""))
		if code := mistakes[names[0]]; code != "" {
			p = p.With("mistake", code)
		}
	}
	return p.Suggest(calls...).Hint(advice)
}

// distinct returns the best suggestion for each name.
func distinct(all []mail.Suggestion) []mail.Suggestion {
	at := map[string]int{}
	out := []mail.Suggestion{}
	for _, s := range all {
		i, twice := at[s.Name]
		if !twice {
			at[s.Name] = len(out)
			out = append(out, s)
		} else if s.Score > out[i].Score {
			out[i] = s
		}
	}
	return out
}

const selectActive = mail.AgentColumns + `WHERE a.project_id = ? AND a.last_active_ts >= ? AND a.id <> ? AND a.retired_ts IS NULL AND a.home IS NULL ORDER BY a.name`

// broadcastCandidates returns the possible recipients of a broadcast: the agents of the
// project that were active in the last 30 days. It omits the sender, mirrors and retired
// agents (mail §6).
func broadcastCandidates(ctx context.Context, s *mail.CallTx, from *mail.Agent) ([]Recipient, error) {
	since := s.Now - mail.Time(30*24*60*60*1e9)
	var out []Recipient
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		a := &mail.Agent{}
		out = append(out, Recipient{a, s.Project, FieldTo})
		return rows.Scan(a.Columns()...)
	}, selectActive, s.Project.ID, since, from.ID)
	return out, err
}
