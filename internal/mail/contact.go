package mail

import (
	"context"
	"database/sql"
	"strings"
	"time"
)

// The states of a link.
const (
	pendingLink  = "pending"
	approvedLink = "approved"
	blockedLink  = "blocked"
)

const (
	defaultRequestTTL = 7 * 24 * time.Hour
	defaultLinkTTL    = 30 * 24 * time.Hour
	minLinkTTL        = time.Minute
	maxLinkTTL        = 10 * 365 * 24 * time.Hour
)

// lifetime is a time to live of a link in seconds as it is used.
func lifetime(seconds *int64, usual time.Duration) time.Duration {
	if seconds == nil {
		return usual
	}
	return time.Duration(max(int64(minLinkTTL/time.Second), min(*seconds, int64(maxLinkTTL/time.Second)))) * time.Second
}

// Link is a contact as the tools answer it (mail §5, shapes).
type Link struct {
	From        string `json:"from"`
	FromProject string `json:"from_project"` // human_key
	To          string `json:"to"`
	ToProject   string `json:"to_project"`
	Status      string `json:"status"`
	Expires     Time   `json:"expires_ts"`
}

func linkOf(c *Contact, from, to recipient) Link {
	return Link{from.Name, from.p.HumanKey, to.Name, to.p.HumanKey, c.Status, c.Expires}
}

// RequestArgs are the arguments of request_contact.
type RequestArgs struct {
	ProjectKey      string `arg:"project_key,required"`
	FromAgent       string `arg:"from_agent,required" about:"Who asks: your own name."`
	ToAgent         string `arg:"to_agent,required" about:"Whom it wants to write to."`
	ToProject       string `arg:"to_project"`
	Reason          string `arg:"reason,default=" about:"Why, for the message that asks."` // 1,000 characters are kept
	TTLSeconds      *int64 `arg:"ttl_seconds,default=604800,min=60" about:"Seconds for which the approval holds, or the request waits."`
	NoRegister      bool   `arg:"register_if_missing,not" about:"Register the agent that asks if it does not exist and program and model are given."`
	Program         string `arg:"program"`
	Model           string `arg:"model"`
	TaskDescription string `arg:"task_description" about:"What the registered agent works on."`
}

// RequestContact asks an agent for leave to write to it. A new request comes to the
// other one as a message, unless it takes none at all; what was approved or blocked
// stays as it is (mail §6).
//
// Errors: those of acting as the requester; NOT_FOUND for the other one; DISK_FULL.
func (o *Service) RequestContact(ctx context.Context, c Caller, a RequestArgs) (out Link, err error) {
	reason, err := o.line("reason", a.Reason, maxReason)
	if err != nil {
		return out, toFault(err)
	}
	away, err := c.awayFrom(a.ToProject)
	if err != nil {
		return out, toFault(err)
	}
	err = o.writeIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *callTx) error {
		me, to, err := s.pair(ctx, a, away)
		if err != nil {
			return err
		}
		k, err := s.request(ctx, me, to, reason, lifetime(a.TTLSeconds, defaultRequestTTL), true)
		if err != nil {
			return err
		}
		out = linkOf(k, recipient{Agent: me, p: s.p}, to)
		return nil
	})
	return out, err
}

// awayFrom reads the key of another project before the transaction; nil for none.
func (c *Caller) awayFrom(key string) (*target, error) {
	if strings.TrimSpace(key) == "" {
		return nil, nil
	}
	return c.target(key)
}

// pair finds the two agents of a request.
func (s *callTx) pair(ctx context.Context, a RequestArgs, away *target) (me *Agent, to recipient, err error) {
	if to, err = s.peer(ctx, "to_agent", a.ToAgent, away); err != nil {
		return nil, to, err
	}
	if me, err = s.requester(ctx, a); err != nil {
		return nil, to, err
	}
	if me.ID == to.ID {
		err = invalid("to_agent", a.ToAgent, "an agent needs no leave to write to itself")
	}
	return me, to, err
}

// requester finds who asks or, where it is missing and the call says what it is,
// registers it.
func (s *callTx) requester(ctx context.Context, a RequestArgs) (*Agent, error) {
	name := strings.TrimSpace(a.FromAgent)
	if known, err := agentByName(ctx, s.tx, s.p.ID, name); known == nil && err == nil && name != "" && !a.NoRegister && a.Program != "" && a.Model != "" {
		p, err := s.profile(s.caller, RegisterArgs{Name: name, Program: a.Program, Model: a.Model, TaskDescription: a.TaskDescription})
		if err == nil {
			_, err = s.register(ctx, p, false)
		}
		return s.me, err
	}
	return s.actor(ctx, name)
}

// peer finds the other agent of a link, at home where it is a mirror; away is its
// project, nil for this one.
//
// Errors: NOT_FOUND.
func (s *callTx) peer(ctx context.Context, field, name string, away *target) (recipient, error) {
	in := s
	if away != nil {
		p, err := away.find(ctx, s.tx)
		if err == nil && p == nil {
			err = away.notFound(ctx, s.tx)
		}
		if err != nil {
			return recipient{}, err
		}
		if p.ID != s.p.ID {
			in = s.other(p)
		}
	}
	if strings.TrimSpace(name) == "" {
		return recipient{}, missing(field, "name the other agent; list_agents shows who there is")
	}
	a, err := in.agent(ctx, name)
	if err != nil {
		return recipient{}, err
	}
	home, p, err := s.atHome(ctx, a, in.p)
	if err == nil && home == nil {
		err = in.noAgent(ctx, name)
	}
	return recipient{Agent: home, p: p}, err
}

// request is RequestContact inside a call, for an agent of this project. Without
// tell the other one gets no message.
func (s *callTx) request(ctx context.Context, me *Agent, to recipient, reason string, ttl time.Duration, tell bool) (*Contact, error) {
	if err := s.needRoom(); err != nil {
		return nil, err
	}
	k, err := findContact(ctx, s.tx, me.ID, to.ID)
	if err != nil {
		return nil, err
	}
	fresh := k == nil
	if fresh {
		if k, err = s.newContact(ctx, recipient{Agent: me, p: s.p}, to); err != nil {
			return nil, err
		}
	}
	switch {
	case k.Status == blockedLink, k.Status == approvedLink && (k.Expires == 0 || k.Expires > s.now):
		return k, nil
	case k.Status == approvedLink:
		fresh = true
	}
	k.Status, k.Updated, k.Expires = pendingLink, s.now, s.now+Time(ttl)
	if fresh || reason != "" {
		k.Reason = reason
	}
	if err := s.put(ctx, k); err != nil || !fresh || !tell {
		return k, err
	}
	return k, s.introduce(ctx, me, to, reason)
}

// introduce tells an agent that somebody asks for contact. Policies are not asked,
// but for one.
func (s *callTx) introduce(ctx context.Context, me *Agent, to recipient, reason string) error {
	if to.Retired != 0 || to.ContactPolicy == "block_all" {
		return nil
	}
	body := me.Name + " requests permission to contact " + to.Name + "."
	if reason != "" {
		body += "\n\n" + reason
	}
	to.kind = fieldTo
	_, err := s.deliver(ctx, me, &draft{
		subject: "Contact request from " + me.Name, body: body, importance: "normal", ackRequired: true,
	}, []recipient{to})
	return err
}

const selectContactCount = `SELECT count(*) FROM mail_agents a CROSS JOIN mail_contacts c ON c.a_agent_id = a.id WHERE a.project_id = ?`

// newContact is a link that is not stored yet.
func (s *callTx) newContact(ctx context.Context, from, to recipient) (*Contact, error) {
	var n int64
	if err := s.tx.Get(ctx, []any{&n}, selectContactCount, from.p.ID); err != nil {
		return nil, err
	}
	return &Contact{
		From: from.Name, FromProjectUID: from.p.UID, To: to.Name, ToProjectUID: to.p.UID, Created: s.now,
		ArchivePath: "contacts/" + shelf(n+1) + from.Name + "__" + to.p.Slug + "__" + to.Name + ".json", fromID: from.ID, toID: to.ID,
	}, nil
}

// RespondArgs are the arguments of respond_contact.
type RespondArgs struct {
	ProjectKey  string `arg:"project_key,required"`
	ToAgent     string `arg:"to_agent,required" about:"Who answers: your own name."`
	FromAgent   string `arg:"from_agent,required" about:"Who asked."`
	Accept      bool   `arg:"accept,required" about:"true allows it to write to you, false blocks it for good."`
	TTLSeconds  *int64 `arg:"ttl_seconds,default=2592000,min=60" about:"Seconds for which the approval holds, or the request waits."`
	FromProject string `arg:"from_project" about:"The project of the agent that asked, as in project_key. Omitted: the same project."`
}

// Response is what respond_contact answers.
type Response struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Approved bool   `json:"approved"`
	Expires  Time   `json:"expires_ts"` // null upon a denial
	Updated  int    `json:"updated"`    // 1
}

// RespondContact lets another agent write to this one, or blocks it for ever; it may
// do so before it is asked. Repeating it leads to the same state, its end aside.
//
// Errors: those of acting as the one that answers; NOT_FOUND for the other one.
func (o *Service) RespondContact(ctx context.Context, c Caller, a RespondArgs) (out Response, err error) {
	away, err := c.awayFrom(a.FromProject)
	if err != nil {
		return out, toFault(err)
	}
	err = o.writeIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *callTx) error {
		me, err := s.actor(ctx, a.ToAgent)
		if err != nil {
			return err
		}
		from, err := s.peer(ctx, "from_agent", a.FromAgent, away)
		if err != nil {
			return err
		}
		k, err := s.respond(ctx, from, recipient{Agent: me, p: s.p}, a.Accept, nil, lifetime(a.TTLSeconds, defaultLinkTTL))
		if err != nil {
			return err
		}
		out = Response{from.Name, me.Name, a.Accept, k.Expires, 1}
		return nil
	})
	return out, err
}

// respond approves or blocks the link from one agent to another; reason nil leaves
// that as it is.
func (s *callTx) respond(ctx context.Context, from, to recipient, accept bool, reason *string, ttl time.Duration) (*Contact, error) {
	if from.ID == to.ID {
		return nil, invalid("from_agent", from.Name, "an agent needs no leave to write to itself")
	}
	k, err := findContact(ctx, s.tx, from.ID, to.ID)
	if err == nil && k == nil {
		k, err = s.newContact(ctx, from, to)
	}
	if err != nil {
		return nil, err
	}
	k.Status, k.Updated, k.Expires = blockedLink, s.now, 0
	if accept {
		k.Status, k.Expires = approvedLink, s.now+Time(ttl)
	}
	if reason != nil {
		k.Reason = *reason
	}
	in := s
	if from.p.ID != s.p.ID {
		in = s.other(from.p)
	}
	return k, in.put(ctx, k)
}

// CreateContactArgs are the arguments of create_contact.
type CreateContactArgs struct {
	ProjectKey     string `arg:"project_key,required"`
	AgentName      string `arg:"agent_name,required"`
	Contact        string `arg:"contact,required" about:"The agent that may write to you."`
	ContactProject string `arg:"contact_project" about:"The project of that agent, as in project_key. Omitted: the same project."`
	TTLSeconds     *int64 `arg:"ttl_seconds,default=2592000,min=60" about:"Seconds for which the approval holds, or the request waits."`
	Reason         string `arg:"reason,default=" about:"Why, for your list of contacts."` // 1,000 characters are kept
}

// CreateContact lets another agent write to this one without being asked. It ends a
// block.
//
// Errors: those of acting as the agent; NOT_FOUND for the other one.
func (o *Service) CreateContact(ctx context.Context, c Caller, a CreateContactArgs) (out Link, err error) {
	reason, err := o.line("reason", a.Reason, maxReason)
	if err != nil {
		return out, toFault(err)
	}
	away, err := c.awayFrom(a.ContactProject)
	if err != nil {
		return out, toFault(err)
	}
	err = o.writeIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *callTx) error {
		me, err := s.actor(ctx, a.AgentName)
		if err != nil {
			return err
		}
		from, err := s.peer(ctx, "contact", a.Contact, away)
		if err != nil {
			return err
		}
		to := recipient{Agent: me, p: s.p}
		k, err := s.respond(ctx, from, to, true, &reason, lifetime(a.TTLSeconds, defaultLinkTTL))
		if err != nil {
			return err
		}
		out = linkOf(k, from, to)
		return nil
	})
	return out, err
}

// ListedContact is a contact as list_contacts shows it: one of To and From is set,
// with @ and the project's slug behind an agent of another project.
type ListedContact struct {
	To      string `json:"to,omitempty"`
	From    string `json:"from,omitempty"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Updated Time   `json:"updated_ts"`
	Expires Time   `json:"expires_ts"`
}

const (
	listedContact = `SELECT CASE WHEN p.id = ?2 THEN b.name ELSE b.name || '@' || p.slug END AS name, c.status, c.reason, c.updated_ts, ifnull(c.expires_ts, 0)
FROM mail_contacts c JOIN mail_agents b ON b.id = `
	selectContactsOut = listedContact + `c.b_agent_id JOIN mail_projects p ON p.id = b.project_id WHERE c.a_agent_id = ?1 ORDER BY name LIMIT 1000`
	selectContactsIn  = listedContact + `c.a_agent_id JOIN mail_projects p ON p.id = b.project_id WHERE c.b_agent_id = ?1 ORDER BY name LIMIT 1000`
)

// ListContacts lists the links of an agent by name, at most 1,000 each way: out, to
// whom it may or would write, in, who may or would write to it, or both, in that
// order. None gives an empty list.
//
// Errors: NOT_FOUND, INVALID_ARGUMENT for another direction.
func (o *Service) ListContacts(ctx context.Context, c Caller, projectKey, agentName, direction string) (out []ListedContact, err error) {
	def(&direction, "out")
	if direction != "out" && direction != "in" && direction != "both" {
		return nil, toFault(invalid("direction", direction, "direction is out, in or both, not %s", quoted(direction)))
	}
	err = o.readIn(ctx, c, projectKey, func(ctx context.Context, s *callTx) error {
		a, err := s.agent(ctx, agentName)
		if err != nil {
			return err
		}
		out = []ListedContact{}
		if direction != "in" {
			err = s.contacts(ctx, a, selectContactsOut, func(k ListedContact, name string) { k.To = name; out = append(out, k) })
		}
		if err == nil && direction != "out" {
			err = s.contacts(ctx, a, selectContactsIn, func(k ListedContact, name string) { k.From = name; out = append(out, k) })
		}
		return err
	})
	return out, err
}

func (s *callTx) contacts(ctx context.Context, a *Agent, query string, add func(k ListedContact, name string)) error {
	return s.tx.Each(ctx, func(rows *sql.Rows) error {
		var k ListedContact
		var name string
		err := rows.Scan(&name, &k.Status, &k.Reason, &k.Updated, &k.Expires)
		add(k, name)
		return err
	}, query, a.ID, s.p.ID)
}

// Policy is what set_contact_policy answers.
type Policy struct {
	Agent  string `json:"agent"`
	Policy string `json:"policy"`
}

// SetContactPolicy says who may write to an agent: open, auto, contacts_only or
// block_all. Repeating it changes nothing.
//
// Errors: INVALID_ARGUMENT for another word; those of acting as the agent.
func (o *Service) SetContactPolicy(ctx context.Context, c Caller, projectKey, agentName, policy string) (out Policy, err error) {
	switch policy {
	case "open", "auto", "contacts_only", "block_all":
	default:
		return out, toFault(invalid("policy", policy, "policy is open, auto, contacts_only or block_all, not %s", quoted(policy)))
	}
	err = o.writeIn(ctx, c, projectKey, func(ctx context.Context, s *callTx) error {
		me, err := s.actor(ctx, agentName)
		if err != nil {
			return err
		}
		out = Policy{me.Name, policy}
		if me.ContactPolicy == policy {
			return touchAgent(ctx, s.tx, me.ID, s.now)
		}
		me.ContactPolicy = policy
		return s.put(ctx, me)
	})
	return out, err
}
