package messages

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
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
	MaxLinkTTL        = 10 * 365 * 24 * time.Hour
)

// lifetime returns the time to live of a link, given in seconds, within the limits; usual for
// nil.
func lifetime(seconds *int64, usual time.Duration) time.Duration {
	if seconds == nil {
		return usual
	}
	return time.Duration(max(int64(minLinkTTL/time.Second), min(*seconds, int64(MaxLinkTTL/time.Second)))) * time.Second
}

// Link is a contact in the results of tools (mail §5, shapes).
type Link struct {
	From        string    `json:"from"`
	FromProject string    `json:"from_project"` // human_key
	To          string    `json:"to"`
	ToProject   string    `json:"to_project"`
	Status      string    `json:"status"`
	Expires     mail.Time `json:"expires_ts"`
}

func linkOf(c *mail.Contact, from, to Recipient) Link {
	return Link{from.Name, from.Project.HumanKey, to.Name, to.Project.HumanKey, c.Status, c.Expires}
}

// RequestArgs are the arguments of request_contact.
type RequestArgs struct {
	ProjectKey      string `arg:"project_key,required"`
	FromAgent       string `arg:"from_agent,required" about:"The asking agent: your own name."`
	ToAgent         string `arg:"to_agent,required" about:"The agent that it wants to write to."`
	ToProject       string `arg:"to_project"`
	Reason          string `arg:"reason,default=" about:"The reason, for the request message."` // 1,000 characters are kept
	TTLSeconds      *int64 `arg:"ttl_seconds,default=604800,min=60" about:"Lifetime of the approval or the request in seconds."`
	NoRegister      bool   `arg:"register_if_missing,not" about:"Register the asking agent if it does not exist. Needs program and model."`
	Program         string `arg:"program"`
	Model           string `arg:"model"`
	TaskDescription string `arg:"task_description" about:"What the registered agent works on."`
}

// RequestContact asks an agent for permission to write to it. A new request is delivered to
// the other agent as a message, unless that agent accepts none. An approved or blocked link
// stays as it is (mail §6).
//
// Errors: those of acting as the requester; NOT_FOUND for the other agent; DISK_FULL.
func (o *Messages) RequestContact(ctx context.Context, c mail.Caller, a RequestArgs) (out Link, err error) {
	reason, err := o.Line("reason", a.Reason, mail.MaxReason)
	if err != nil {
		return out, mail.Fault(err)
	}
	away, err := awayFrom(&c, a.ToProject)
	if err != nil {
		return out, mail.Fault(err)
	}
	err = o.WriteIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, to, err := pair(ctx, s, a, away)
		if err != nil {
			return err
		}
		k, err := request(ctx, s, me, to, reason, lifetime(a.TTLSeconds, defaultRequestTTL), true)
		if err != nil {
			return err
		}
		out = linkOf(k, Recipient{Agent: me, Project: s.Project}, to)
		return nil
	})
	return out, err
}

// awayFrom parses the key of another project before the transaction; nil for a blank key.
func awayFrom(c *mail.Caller, key string) (*mail.Target, error) {
	if strings.TrimSpace(key) == "" {
		return nil, nil
	}
	return c.Target(key)
}

// pair returns the two agents of a request.
func pair(ctx context.Context, s *mail.CallTx, a RequestArgs, away *mail.Target) (me *mail.Agent, to Recipient, err error) {
	if to, err = peer(ctx, s, "to_agent", a.ToAgent, away); err != nil {
		return nil, to, err
	}
	if me, err = requester(ctx, s, a); err != nil {
		return nil, to, err
	}
	if me.ID == to.ID {
		err = mail.InvalidArgument("to_agent", a.ToAgent, "an agent needs no leave to write to itself")
	}
	return me, to, err
}

// requester returns the agent that requests contact. It registers an unknown agent if the call
// contains its program and model, unless NoRegister is set.
func requester(ctx context.Context, s *mail.CallTx, a RequestArgs) (*mail.Agent, error) {
	name := strings.TrimSpace(a.FromAgent)
	if known, err := mail.AgentByName(ctx, s.Tx, s.Project.ID, name); known == nil && err == nil && name != "" && !a.NoRegister && a.Program != "" && a.Model != "" {
		p, err := agents.NewRegistration(s.Kernel, s.Caller, agents.RegisterArgs{Name: name, Program: a.Program, Model: a.Model, TaskDescription: a.TaskDescription})
		if err == nil {
			_, err = agents.Register(ctx, s, p, false)
		}
		return s.Me, err
	}
	return s.ActAs(ctx, name)
}

// peer returns the other agent of a link; for a mirror, the agent that it represents. away is
// its project, nil for this one.
//
// Errors: NOT_FOUND.
func peer(ctx context.Context, s *mail.CallTx, field, name string, away *mail.Target) (Recipient, error) {
	in := s
	if away != nil {
		p, err := away.Find(ctx, s.Tx)
		if err == nil && p == nil {
			err = away.NotFound(ctx, s.Tx)
		}
		if err != nil {
			return Recipient{}, err
		}
		if p.ID != s.Project.ID {
			in = s.InProject(p)
		}
	}
	if strings.TrimSpace(name) == "" {
		return Recipient{}, mail.MissingField(field, "name the other agent; list_agents shows who there is")
	}
	a, err := in.Agent(ctx, name)
	if err != nil {
		return Recipient{}, err
	}
	home, p, err := resolveMirror(ctx, s, a, in.Project)
	if err == nil && home == nil {
		err = in.AgentNotFound(ctx, name)
	}
	return Recipient{Agent: home, Project: p}, err
}

// request is RequestContact inside a call, for an agent of this project. Without tell, the
// other agent gets no message.
func request(ctx context.Context, s *mail.CallTx, me *mail.Agent, to Recipient, reason string, ttl time.Duration, tell bool) (*mail.Contact, error) {
	if err := s.RequireDiskSpace(); err != nil {
		return nil, err
	}
	k, err := mail.QueryContact(ctx, s.Tx, me.ID, to.ID)
	if err != nil {
		return nil, err
	}
	fresh := k == nil
	if fresh {
		if k, err = newContact(ctx, s, Recipient{Agent: me, Project: s.Project}, to); err != nil {
			return nil, err
		}
	}
	switch {
	case k.Status == blockedLink, k.Status == approvedLink && (k.Expires == 0 || k.Expires > s.Now):
		return k, nil
	case k.Status == approvedLink:
		fresh = true
	}
	k.Status, k.Updated, k.Expires = pendingLink, s.Now, s.Now+mail.Time(ttl)
	if fresh || reason != "" {
		k.Reason = reason
	}
	if err := s.Put(ctx, k); err != nil || !fresh || !tell {
		return k, err
	}
	return k, sendContactRequest(ctx, s, me, to, reason)
}

// sendContactRequest notifies an agent of a contact request by a message. It ignores the
// contact policy, except block_all, and skips retired agents.
func sendContactRequest(ctx context.Context, s *mail.CallTx, me *mail.Agent, to Recipient, reason string) error {
	if to.Retired != 0 || to.ContactPolicy == "block_all" {
		return nil
	}
	body := me.Name + " requests permission to contact " + to.Name + "."
	if reason != "" {
		body += "\n\n" + reason
	}
	to.Field = FieldTo
	_, err := Deliver(ctx, s, me, &draft{
		subject: "Contact request from " + me.Name, body: body, importance: "normal", ackRequired: true,
	}, []Recipient{to})
	return err
}

const SelectContactCount = `SELECT count(*) FROM mail_agents a CROSS JOIN mail_contacts c ON c.a_agent_id = a.id WHERE a.project_id = ?`

// newContact returns a link that is not stored yet.
func newContact(ctx context.Context, s *mail.CallTx, from, to Recipient) (*mail.Contact, error) {
	var n int64
	if err := s.Tx.Get(ctx, []any{&n}, SelectContactCount, from.Project.ID); err != nil {
		return nil, err
	}
	return &mail.Contact{
		From: from.Name, FromProjectUID: from.Project.UID, To: to.Name, ToProjectUID: to.Project.UID, Created: s.Now,
		ArchivePath: "contacts/" + mail.BucketDir(n+1) + from.Name + "__" + to.Project.Slug + "__" + to.Name + ".json", FromID: from.ID, ToID: to.ID,
	}, nil
}

// RespondArgs are the arguments of respond_contact.
type RespondArgs struct {
	ProjectKey  string `arg:"project_key,required"`
	ToAgent     string `arg:"to_agent,required" about:"The agent that answers: your own name."`
	FromAgent   string `arg:"from_agent,required" about:"The agent that asked."`
	Accept      bool   `arg:"accept,required" about:"true allows it to write to you, false blocks it for good."`
	TTLSeconds  *int64 `arg:"ttl_seconds,default=2592000,min=60" about:"Lifetime of the approval or the request in seconds."`
	FromProject string `arg:"from_project" about:"The project of the agent that asked, as in project_key. Omitted: the same project."`
}

// Response is the result of respond_contact.
type Response struct {
	From     string    `json:"from"`
	To       string    `json:"to"`
	Approved bool      `json:"approved"`
	Expires  mail.Time `json:"expires_ts"` // null after a denial
	Updated  int       `json:"updated"`    // always 1
}

// RespondContact permits another agent to write to this one, or blocks it permanently. It does
// not require a request. It is idempotent, except for the time of expiry.
//
// Errors: those of acting as the responding agent; NOT_FOUND for the other agent.
func (o *Messages) RespondContact(ctx context.Context, c mail.Caller, a RespondArgs) (out Response, err error) {
	away, err := awayFrom(&c, a.FromProject)
	if err != nil {
		return out, mail.Fault(err)
	}
	err = o.WriteIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, err := s.ActAs(ctx, a.ToAgent)
		if err != nil {
			return err
		}
		from, err := peer(ctx, s, "from_agent", a.FromAgent, away)
		if err != nil {
			return err
		}
		k, err := respond(ctx, s, from, Recipient{Agent: me, Project: s.Project}, a.Accept, nil, lifetime(a.TTLSeconds, defaultLinkTTL))
		if err != nil {
			return err
		}
		out = Response{from.Name, me.Name, a.Accept, k.Expires, 1}
		return nil
	})
	return out, err
}

// respond approves or blocks the link from one agent to another; a nil reason keeps the stored
// reason.
func respond(ctx context.Context, s *mail.CallTx, from, to Recipient, accept bool, reason *string, ttl time.Duration) (*mail.Contact, error) {
	if from.ID == to.ID {
		return nil, mail.InvalidArgument("from_agent", from.Name, "an agent needs no leave to write to itself")
	}
	k, err := mail.QueryContact(ctx, s.Tx, from.ID, to.ID)
	if err == nil && k == nil {
		k, err = newContact(ctx, s, from, to)
	}
	if err != nil {
		return nil, err
	}
	k.Status, k.Updated, k.Expires = blockedLink, s.Now, 0
	if accept {
		k.Status, k.Expires = approvedLink, s.Now+mail.Time(ttl)
	}
	if reason != nil {
		k.Reason = *reason
	}
	in := s
	if from.Project.ID != s.Project.ID {
		in = s.InProject(from.Project)
	}
	return k, in.Put(ctx, k)
}

// CreateContactArgs are the arguments of create_contact.
type CreateContactArgs struct {
	ProjectKey     string `arg:"project_key,required"`
	AgentName      string `arg:"agent_name,required"`
	Contact        string `arg:"contact,required" about:"The agent that may write to you."`
	ContactProject string `arg:"contact_project" about:"The project of that agent, as in project_key. Omitted: the same project."`
	TTLSeconds     *int64 `arg:"ttl_seconds,default=2592000,min=60" about:"Lifetime of the approval or the request in seconds."`
	Reason         string `arg:"reason,default=" about:"The reason, for your contact list."` // 1,000 characters are kept
}

// CreateContact permits another agent to write to this one without a request. It ends a block.
//
// Errors: those of acting as the agent; NOT_FOUND for the other agent.
func (o *Messages) CreateContact(ctx context.Context, c mail.Caller, a CreateContactArgs) (out Link, err error) {
	reason, err := o.Line("reason", a.Reason, mail.MaxReason)
	if err != nil {
		return out, mail.Fault(err)
	}
	away, err := awayFrom(&c, a.ContactProject)
	if err != nil {
		return out, mail.Fault(err)
	}
	err = o.WriteIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, err := s.ActAs(ctx, a.AgentName)
		if err != nil {
			return err
		}
		from, err := peer(ctx, s, "contact", a.Contact, away)
		if err != nil {
			return err
		}
		to := Recipient{Agent: me, Project: s.Project}
		k, err := respond(ctx, s, from, to, true, &reason, lifetime(a.TTLSeconds, defaultLinkTTL))
		if err != nil {
			return err
		}
		out = linkOf(k, from, to)
		return nil
	})
	return out, err
}

// ListedContact is a contact in the result of list_contacts. Either To or From is set. The
// name of an agent of another project is followed by @ and the project's slug.
type ListedContact struct {
	To      string    `json:"to,omitempty"`
	From    string    `json:"from,omitempty"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Updated mail.Time `json:"updated_ts"`
	Expires mail.Time `json:"expires_ts"`
}

const (
	listedContact = `SELECT CASE WHEN p.id = ?2 THEN b.name ELSE b.name || '@' || p.slug END AS name, c.status, c.reason, c.updated_ts, ifnull(c.expires_ts, 0)
FROM mail_contacts c JOIN mail_agents b ON b.id = `
	selectContactsOut = listedContact + `c.b_agent_id JOIN mail_projects p ON p.id = b.project_id WHERE c.a_agent_id = ?1 ORDER BY name LIMIT 1000`
	selectContactsIn  = listedContact + `c.a_agent_id JOIN mail_projects p ON p.id = b.project_id WHERE c.b_agent_id = ?1 ORDER BY name LIMIT 1000`
)

// ListContacts returns the links of an agent, sorted by name, at most 1,000 per direction.
// Direction out lists the agents that it may or requested to write to. Direction in lists the
// agents that may or requested to write to it. both lists out, then in. The list is empty if
// there are no links.
//
// Errors: NOT_FOUND, INVALID_ARGUMENT for another direction.
func (o *Messages) ListContacts(ctx context.Context, c mail.Caller, projectKey, agentName, direction string) (out []ListedContact, err error) {
	mail.Default(&direction, "out")
	if direction != "out" && direction != "in" && direction != "both" {
		return nil, mail.Fault(mail.InvalidArgument("direction", direction, "direction is out, in or both, not %s", mail.Quoted(direction)))
	}
	err = o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		a, err := s.Agent(ctx, agentName)
		if err != nil {
			return err
		}
		out = []ListedContact{}
		if direction != "in" {
			err = contacts(ctx, s, a, selectContactsOut, func(k ListedContact, name string) { k.To = name; out = append(out, k) })
		}
		if err == nil && direction != "out" {
			err = contacts(ctx, s, a, selectContactsIn, func(k ListedContact, name string) { k.From = name; out = append(out, k) })
		}
		return err
	})
	return out, err
}

func contacts(ctx context.Context, s *mail.CallTx, a *mail.Agent, query string, add func(k ListedContact, name string)) error {
	return s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var k ListedContact
		var name string
		err := rows.Scan(&name, &k.Status, &k.Reason, &k.Updated, &k.Expires)
		add(k, name)
		return err
	}, query, a.ID, s.Project.ID)
}

// Policy is the result of set_contact_policy.
type Policy struct {
	Agent  string `json:"agent"`
	Policy string `json:"policy"`
}

// SetContactPolicy sets which agents may write to an agent: open, auto, contacts_only or
// block_all. It is idempotent.
//
// Errors: INVALID_ARGUMENT for another policy; those of acting as the agent.
func (o *Messages) SetContactPolicy(ctx context.Context, c mail.Caller, projectKey, agentName, policy string) (out Policy, err error) {
	switch policy {
	case "open", "auto", "contacts_only", "block_all":
	default:
		return out, mail.Fault(mail.InvalidArgument("policy", policy, "policy is open, auto, contacts_only or block_all, not %s", mail.Quoted(policy)))
	}
	err = o.WriteIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, err := s.ActAs(ctx, agentName)
		if err != nil {
			return err
		}
		out = Policy{me.Name, policy}
		if me.ContactPolicy == policy {
			return mail.TouchAgent(ctx, s.Tx, me.ID, s.Now)
		}
		me.ContactPolicy = policy
		return s.Put(ctx, me)
	})
	return out, err
}
