package mail

import (
	"context"
	"database/sql"
	"strings"
)

// The fields of a message in which recipients stand, in the order in which they
// count where somebody is named twice.
const (
	fieldTo  = "to"
	fieldCC  = "cc"
	fieldBCC = "bcc"
)

// maxRecipients bounds those that a call names; a broadcast has as many as there are.
const maxRecipients = 200

// address is a recipient as a call names it.
type address struct {
	kind  string  // the field
	given string  // without blanks around it
	name  string  // of the agent
	away  *target // of the project that it names; nil for the caller's
}

// splitAddress parts Name@project and project:slug#Name; key is "" for a name alone
// (mail §2). Of several marks the first @ and the last # count, since paths may hold
// more and names none.
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

// addresses reads the recipients of one field.
//
// Errors: INVALID_ARGUMENT, CONFIGURATION_ERROR; BROADCAST_ATTEMPT for all and the
// like.
func (c *Caller) addresses(kind string, list []string) ([]address, error) {
	var out []address
	for _, given := range list {
		if err := checkText(kind, given); err != nil {
			return nil, err
		}
		a := address{kind: kind, given: strings.TrimSpace(given)}
		if a.given == "" {
			return nil, invalid(kind, given, "%s holds an empty name", kind)
		}
		if isEverybody(strings.ToLower(a.given)) {
			return nil, badName(kind, a.given)
		}
		var key string
		if a.name, key = splitAddress(a.given); isPlaceholder(a.name) {
			return nil, placeholder(kind, a.name, "the name of a registered agent")
		}
		if key != "" {
			away, err := c.target(key)
			if err != nil {
				return nil, err
			}
			a.away = away
		}
		out = append(out, a)
	}
	return out, nil
}

// recipient is an agent that a message goes to, in the project where it lives.
type recipient struct {
	*Agent
	p    *Project
	kind string // to, cc or bcc
}

// shown is how a recipient is named from a project: so that it can be written to.
func (r recipient) shown(from *Project) string {
	if r.p.ID == from.ID {
		return r.Name
	}
	return r.Name + "@" + r.p.Slug
}

// resolver looks recipients up.
type resolver struct {
	*callTx
	projects map[string]*Project
	seen     map[int64]bool
	out      []recipient
	unknown  []address
	away     []string // likewise, of other projects
}

// recipients finds whom addresses name, each once, in the order given. The mirror of
// an agent of another project stands for that agent.
//
// Errors: RECIPIENT_NOT_FOUND with suggestions; NOT_FOUND for a project;
// EMAIL_AS_AGENT for what looks like an address and names no project;
// INVALID_ARGUMENT for too many.
func (s *callTx) recipients(ctx context.Context, all []address) ([]recipient, error) {
	r := &resolver{callTx: s, projects: map[string]*Project{}, seen: map[int64]bool{}}
	for _, a := range all {
		if err := r.add(ctx, a); err != nil {
			return nil, err
		}
	}
	if len(r.unknown)+len(r.away) > 0 {
		return nil, r.missing(ctx)
	}
	if len(r.out) > maxRecipients {
		return nil, invalid(fieldTo, len(r.out), "a message has at most %d recipients, not %d", maxRecipients, len(r.out))
	}
	return r.out, nil
}

func (r *resolver) add(ctx context.Context, a address) error {
	p, err := r.projectOf(ctx, a)
	if err != nil {
		return err
	}
	found, err := agentByName(ctx, r.tx, p.ID, a.name)
	if err == nil && found == nil && p.ID == r.p.ID && r.config.RegisterRecipients {
		found, err = r.invite(ctx, a.name)
	}
	if err == nil && found != nil {
		found, p, err = r.atHome(ctx, found, p)
	}
	switch {
	case err != nil:
		return err
	case found == nil && p.ID == r.p.ID:
		r.unknown = append(r.unknown, a)
	case found == nil:
		r.away = append(r.away, a.name+" @ "+p.HumanKey)
	case !r.seen[found.ID]:
		r.seen[found.ID] = true
		r.out = append(r.out, recipient{found, p, a.kind})
	}
	return nil
}

func (r *resolver) projectOf(ctx context.Context, a address) (*Project, error) {
	if a.away == nil {
		return r.p, nil
	}
	if p := r.projects[a.away.key]; p != nil {
		return p, nil
	}
	p, err := a.away.find(ctx, r.tx)
	switch {
	case err != nil:
		return nil, err
	case p == nil && isEmail(a.given):
		return nil, badName(a.kind, a.given)
	case p == nil:
		return nil, a.away.notFound(ctx, r.tx)
	}
	r.projects[a.away.key] = p
	return p, nil
}

// atHome is the agent that a mirror stands for, nil if it is not there any more, or
// the agent itself.
func (s *callTx) atHome(ctx context.Context, a *Agent, p *Project) (*Agent, *Project, error) {
	if a.Home == nil {
		return a, p, nil
	}
	uid, name, _ := strings.Cut(*a.Home, "/")
	home, err := projectByUID(ctx, s.tx, uid)
	if err != nil || home == nil {
		return nil, p, err
	}
	a, err = agentByName(ctx, s.tx, home.ID, name)
	return a, home, err
}

// invite registers an unknown recipient, if it has a name that an agent can have.
func (s *callTx) invite(ctx context.Context, name string) (*Agent, error) {
	name, ok := wholeName(name)
	if !ok {
		return nil, nil
	}
	a, err := agentByName(ctx, s.tx, s.p.ID, name)
	if a != nil || err != nil {
		return a, err
	}
	a = s.newAgent(name)
	a.Program, a.Model = "unknown", "unknown"
	return s.added(ctx, a)
}

// added stores an agent that did not come by itself: a recipient or a mirror.
func (s *callTx) added(ctx context.Context, a *Agent) (_ *Agent, err error) {
	if a.ID, err = nextID(ctx, s.tx, "mail_agents"); err != nil {
		return nil, err
	}
	if err := s.put(ctx, a); err != nil {
		return nil, err
	}
	return agentByName(ctx, s.tx, s.p.ID, a.Name)
}

// missing is the error for recipients that are not there.
func (r *resolver) missing(ctx context.Context) error {
	names, near, mistakes := []string{}, []Suggestion{}, map[string]string{}
	for _, a := range r.unknown {
		names = append(names, clip(a.name, maxShown))
		more, err := r.alike(ctx, a.name)
		if err != nil {
			return err
		}
		near = append(near, more...)
		if code := mistakeIn(a.name); code != "" {
			mistakes[clip(a.name, maxShown)] = code
		}
	}
	const advice = "list_agents shows who is registered in the project; whoever is missing has to call register_agent"
	where, what := r.p.HumanKey, "local recipients "+printable(strings.Join(names, ", "))
	if len(names) == 0 {
		where, what = "theirs", "recipients of other projects "+printable(strings.Join(r.away, "; "))
	}
	p := problemf(CodeRecipient, "%s are not registered in project %s", what, where).
		with("unknown_local", names).with("hint", advice).with("suggestions", best(distinct(near)))
	if len(r.away) > 0 {
		p = p.with("unknown_external", r.away)
	}
	calls := []Call{listCall(r.key)}
	if len(names) > 0 {
		name, _ := wholeName(names[0])
		calls = append(calls, registerCall(r.key, name, "", ""))
		if code := mistakes[names[0]]; code != "" {
			p = p.with("mistake", code)
		}
	}
	return p.suggest(calls...).hint(advice)
}

// distinct keeps the best suggestion of each name.
func distinct(all []Suggestion) []Suggestion {
	at := map[string]int{}
	out := []Suggestion{}
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

const selectActive = agentColumns + `WHERE a.project_id = ? AND a.last_active_ts >= ? AND a.id <> ? AND a.retired_ts IS NULL AND a.home IS NULL ORDER BY a.name`

// everybody is whom a broadcast is for: all agents of the project that were active
// recently and live in it, but not the sender (mail §6).
func (s *callTx) everybody(ctx context.Context, from *Agent) ([]recipient, error) {
	since := s.now - Time(30*24*60*60*1e9)
	var out []recipient
	err := s.tx.Each(ctx, func(rows *sql.Rows) error {
		a := &Agent{}
		out = append(out, recipient{a, s.p, fieldTo})
		return rows.Scan(a.columns()...)
	}, selectActive, s.p.ID, since, from.ID)
	return out, err
}
