package service

import (
	"context"
	"database/sql"
	"math"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/store"
)

// The contents of the MCP resources (mail §5). All calls are read-only.

// ProjectResource is a project with its agents.
type ProjectResource struct {
	ProjectShort
	Agents []agents.AgentInfo `json:"agents"` // by name, without retired agents
}

func short(p *mail.Project) ProjectShort {
	return ProjectShort{p.ID, p.Slug, p.HumanKey, p.Created, p.ProductID}
}

// Projects lists all projects by number. The list is empty if there are none.
func (o *Mail) Projects(ctx context.Context) (out []ProjectShort, err error) {
	out = []ProjectShort{}
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		all, err := mail.Projects(ctx, tx)
		for _, p := range all {
			out = append(out, short(p))
		}
		return err
	})
	return out, err
}

// ProjectOf returns a project and its agents.
//
// Errors: NOT_FOUND.
func (o *Mail) ProjectOf(ctx context.Context, c mail.Caller, projectKey string) (out ProjectResource, err error) {
	err = o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		out = ProjectResource{short(s.Project), []agents.AgentInfo{}}
		return currentAgents(ctx, s, func(a *mail.Agent) { out.Agents = append(out.Agents, agents.Info(a)) })
	})
	return out, err
}

// AgentsResource contains the agents of a project.
type AgentsResource struct {
	Project ProjectName     `json:"project"`
	Agents  []AgentAndCount `json:"agents"`
}

// ProjectName is a project's slug and human_key.
type ProjectName struct {
	Slug     string `json:"slug"`
	HumanKey string `json:"human_key"`
}

// AgentAndCount is an agent and its number of unread messages.
type AgentAndCount struct {
	agents.AgentInfo
	Unread int `json:"unread_count"`
}

// AgentsOf returns the agents of a project by name, without retired agents.
//
// Errors: NOT_FOUND.
func (o *Mail) AgentsOf(ctx context.Context, c mail.Caller, projectKey string) (out AgentsResource, err error) {
	err = o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		out = AgentsResource{ProjectName{s.Project.Slug, s.Project.HumanKey}, []AgentAndCount{}}
		return currentAgents(ctx, s, func(a *mail.Agent) { out.Agents = append(out.Agents, AgentAndCount{agents.Info(a), a.Unread}) })
	})
	return out, err
}

const selectResidents = mail.AgentColumns + `WHERE a.project_id = ? AND a.retired_ts IS NULL ORDER BY a.name`

func currentAgents(ctx context.Context, s *mail.CallTx, each func(a *mail.Agent)) error {
	return s.Tx.Each(ctx, func(rows *sql.Rows) error {
		a := &mail.Agent{}
		err := rows.Scan(a.Columns()...)
		each(a)
		return err
	}, selectResidents, s.Project.ID)
}

// InboxMessage is an item with the commit that added its file to the archive. The commit is nil
// while it is pending.
type InboxMessage struct {
	messages.Item
	Commit *mail.Commit `json:"commit"`
}

// InboxResource is the inbox of an agent.
type InboxResource struct {
	Project  string         `json:"project"` // human_key
	Agent    string         `json:"agent"`
	Count    int            `json:"count"`
	Messages []InboxMessage `json:"messages"`
	At       *store.Moment  `json:"at,omitempty"` // only set for an inbox of the past
}

// Inbox is FetchInbox with commits.
//
// Errors: those of FetchInbox.
func (o *Mail) Inbox(ctx context.Context, c mail.Caller, a messages.InboxArgs) (out InboxResource, err error) {
	err = o.ReadIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, err := s.ReadAs(ctx, a.AgentName)
		if err != nil {
			return err
		}
		found, err := messages.Items(ctx, s, me, a)
		if err != nil {
			return err
		}
		out = InboxResource{Project: s.Project.HumanKey, Agent: me.Name, Count: len(found), Messages: []InboxMessage{}}
		if a.At != "" {
			out.At = &s.At
		}
		for _, i := range found {
			commit, err := s.Config.Archive.FindCommit(ctx, s.Tx, s.Project.RowKey, i.Seq)
			if err != nil {
				return err
			}
			out.Messages = append(out.Messages, InboxMessage{i.Item, commit})
		}
		return nil
	})
	return out, err
}

// OutboxMessage is a payload with the commit of its file.
type OutboxMessage struct {
	messages.Payload
	Commit *mail.Commit `json:"commit"`
}

// OutboxResource contains the messages that an agent has sent within its project.
type OutboxResource struct {
	Project  string          `json:"project"`
	Agent    string          `json:"agent"`
	Count    int             `json:"count"`
	Messages []OutboxMessage `json:"messages"`
	At       *store.Moment   `json:"at,omitempty"` // only set for an outbox of the past
}

const (
	outbox     = `WHERE m.sender_id = ?1 AND m.created_ts > ?2 AND (?3 IS NULL OR m.topic = ?3) AND m.seq <= ?5 `
	newestSent = `ORDER BY m.created_ts DESC, m.id DESC LIMIT +?4`

	selectOutbox       = mail.MessageColumns + outbox + newestSent
	selectOutboxUrgent = mail.MessageColumns + outbox + `AND m.importance IN ('high', 'urgent') ` + newestSent
)

// Outbox lists the messages that an agent has sent, the newest first, with the recipients of blind
// copies. It ignores UnreadOnly.
//
// Errors: those of FetchInbox.
func (o *Mail) Outbox(ctx context.Context, c mail.Caller, a messages.InboxArgs) (out OutboxResource, err error) {
	err = o.ReadIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, err := s.ReadAs(ctx, a.AgentName)
		if err != nil {
			return err
		}
		sent, err := sent(ctx, s, me, a)
		if err != nil {
			return err
		}
		out = OutboxResource{Project: s.Project.HumanKey, Agent: me.Name, Count: len(sent), Messages: []OutboxMessage{}}
		if a.At != "" {
			out.At = &s.At
		}
		for _, m := range sent {
			p := messages.PayloadOf(m)
			if !a.IncludeBodies {
				p.Body = nil
			}
			commit, err := s.Config.Archive.FindCommit(ctx, s.Tx, s.Project.RowKey, m.Seq)
			if err != nil {
				return err
			}
			out.Messages = append(out.Messages, OutboxMessage{p, commit})
		}
		return nil
	})
	return out, err
}

func sent(ctx context.Context, s *mail.CallTx, me *mail.Agent, a messages.InboxArgs) ([]*mail.Message, error) {
	n, since, topic, err := a.Window()
	if err != nil {
		return nil, err
	}
	until := int64(math.MaxInt64)
	if a.At != "" {
		if err := s.Moment(ctx, a.At); err != nil {
			return nil, err
		}
		until = s.At.Tick
	}
	query := selectOutbox
	if a.UrgentOnly {
		query = selectOutboxUrgent
	}
	return mail.MessagesOf(ctx, s.Tx, query, me.ID, since, topic, n, until)
}

// ThreadMessage is a message without its recipients.
type ThreadMessage struct {
	messages.Header
	Body *string `json:"body_md,omitempty"` // nil if bodies were not requested
}

// MessageOf returns a message without its recipients, for any caller that can read the project.
//
// Errors: NOT_FOUND.
func (o *Mail) MessageOf(ctx context.Context, c mail.Caller, projectKey string, id int64) (out ThreadMessage, err error) {
	err = o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		m, err := messages.FindMessage(ctx, s, id)
		if err == nil {
			out = ThreadMessage{messages.HeaderOf(m), &m.Body}
		}
		return err
	})
	return out, err
}

// ThreadResource is a thread, the oldest message first.
type ThreadResource struct {
	Project  string          `json:"project"`
	ThreadID string          `json:"thread_id"`
	Messages []ThreadMessage `json:"messages"`
}

const selectThreadMessages = `SELECT m.id, m.project_id, m.sender_id, m.thread_id, m.subject, m.importance, m.ack_required, m.created_ts, m.attachments, a.name,
CASE WHEN ?5 THEN m.body_md END FROM ` + messages.NewestIn

// ThreadOf returns the newest 1,000 messages of a thread, the oldest first.
//
// Errors: NOT_FOUND for a thread without messages, INVALID_THREAD_ID.
func (o *Mail) ThreadOf(ctx context.Context, c mail.Caller, projectKey, thread string, bodies bool) (out ThreadResource, err error) {
	id, err := mail.ThreadID(thread)
	if err != nil {
		return out, mail.Fault(err)
	}
	if id == nil {
		return out, mail.Fault(mail.MissingField("thread_id", "name the thread"))
	}
	err = o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		out = ThreadResource{s.Project.HumanKey, *id, []ThreadMessage{}}
		err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
			var m ThreadMessage
			var attached sql.NullString
			err := rows.Scan(&m.ID, &m.ProjectID, &m.SenderID, &m.ThreadID, &m.Subject, &m.Importance, &m.AckRequired, &m.Created, &attached, &m.From, &m.Body)
			m.Attachments = messages.AttachmentsOf(attached)
			out.Messages = append(out.Messages, m)
			return err
		}, selectThreadMessages, s.Project.ID, *id, mail.Beginning(id), mail.MaxLimit, bodies)
		if err == nil && len(out.Messages) == 0 {
			err = messages.ThreadNotFound(s, *id)
		}
		return err
	})
	return out, err
}

// The views of an inbox.
const (
	ViewUrgentUnread = "urgent-unread" // unread, with importance high or urgent
	ViewAckRequired  = "ack-required"  // not acknowledged
	ViewAcksStale    = "acks-stale"    // not acknowledged and older than the limit
	ViewAckOverdue   = "ack-overdue"   // not acknowledged and older than the limit
)

// View is the result of ViewOf.
type View struct {
	Project    string          `json:"project"`
	Agent      string          `json:"agent"`
	TTLSeconds *int64          `json:"ttl_seconds,omitempty"` // of ViewAcksStale
	Count      int             `json:"count"`
	Messages   []messages.Item `json:"messages"`
}

// ViewArgs select a view of an agent's inbox.
type ViewArgs struct {
	ProjectKey, AgentName, View string
	TTLSeconds                  *int64 // age limit of acks-stale and ack-overdue; nil means Config.AckTTL and Config.AckOverdue; negative means 0
	Limit                       *int   // nil means 20
}

// ViewOf returns a view of an agent's inbox, the newest message first.
//
// Errors: those of FetchInbox, NOT_FOUND for an unknown view.
func (o *Mail) ViewOf(ctx context.Context, c mail.Caller, a ViewArgs) (out View, err error) {
	n, err := mail.CheckLimit(a.Limit, 20)
	if err != nil {
		return out, mail.Fault(err)
	}
	query, ttl := "", int64(0)
	switch a.View {
	case ViewUrgentUnread:
		query = messages.SelectUnreadUrgent
	case ViewAckRequired:
		query = messages.SelectDue
	case ViewAcksStale:
		query, ttl = messages.SelectOverdue, int64(o.Config.AckTTL.Seconds())
	case ViewAckOverdue:
		query, ttl = messages.SelectOverdue, int64(o.Config.AckOverdue.Seconds())
	default:
		return out, mail.Fault(mail.NotFound("view", a.View).Hint("the views are urgent-unread, ack-required, acks-stale and ack-overdue"))
	}
	if a.TTLSeconds != nil {
		ttl = min(max(*a.TTLSeconds, 0), int64(messages.MaxLinkTTL.Seconds()))
	}
	err = o.ReadIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, err := s.ReadAs(ctx, a.AgentName)
		if err != nil {
			return err
		}
		args := []any{me.ID, 0, false, n}
		if query == messages.SelectOverdue {
			args = append(args, s.Now-mail.Time(ttl*1e9))
		}
		found, err := messages.ItemsOf(ctx, s, query, args...)
		out = View{Project: s.Project.HumanKey, Agent: me.Name, Count: len(found), Messages: []messages.Item{}}
		if a.View == ViewAcksStale {
			out.TTLSeconds = &ttl
		}
		for _, i := range found {
			out.Messages = append(out.Messages, i.Item)
		}
		return err
	})
	return out, err
}
