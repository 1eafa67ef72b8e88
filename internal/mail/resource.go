package mail

import (
	"context"
	"database/sql"
	"math"

	"cairn/internal/store"
)

// What resources show (mail §5). All of it is read only.

// ProjectResource is a project with its agents.
type ProjectResource struct {
	ProjectShort
	Agents []AgentInfo `json:"agents"` // by name, without those that are retired
}

func (p *Project) short() ProjectShort {
	return ProjectShort{p.ID, p.Slug, p.HumanKey, p.Created, p.ProductID}
}

// Projects lists all projects by their numbers; none gives an empty list.
func (o *Service) Projects(ctx context.Context) (out []ProjectShort, err error) {
	out = []ProjectShort{}
	err = o.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		all, err := projects(ctx, tx)
		for _, p := range all {
			out = append(out, p.short())
		}
		return err
	})
	return out, err
}

// ProjectOf shows a project and who is in it.
//
// Errors: NOT_FOUND.
func (o *Service) ProjectOf(ctx context.Context, c Caller, projectKey string) (out ProjectResource, err error) {
	err = o.readIn(ctx, c, projectKey, func(ctx context.Context, s *callTx) error {
		out = ProjectResource{s.p.short(), []AgentInfo{}}
		return s.residents(ctx, func(a *Agent) { out.Agents = append(out.Agents, a.info()) })
	})
	return out, err
}

// AgentsResource is who is in a project.
type AgentsResource struct {
	Project ProjectName     `json:"project"`
	Agents  []AgentAndCount `json:"agents"`
}

// ProjectName is how a project is called.
type ProjectName struct {
	Slug     string `json:"slug"`
	HumanKey string `json:"human_key"`
}

// AgentAndCount is an agent and how much it has not read.
type AgentAndCount struct {
	AgentInfo
	Unread int `json:"unread_count"`
}

// AgentsOf shows who is in a project, by name, without those that are retired.
//
// Errors: NOT_FOUND.
func (o *Service) AgentsOf(ctx context.Context, c Caller, projectKey string) (out AgentsResource, err error) {
	err = o.readIn(ctx, c, projectKey, func(ctx context.Context, s *callTx) error {
		out = AgentsResource{ProjectName{s.p.Slug, s.p.HumanKey}, []AgentAndCount{}}
		return s.residents(ctx, func(a *Agent) { out.Agents = append(out.Agents, AgentAndCount{a.info(), a.Unread}) })
	})
	return out, err
}

const selectResidents = agentColumns + `WHERE a.project_id = ? AND a.retired_ts IS NULL ORDER BY a.name`

func (s *callTx) residents(ctx context.Context, each func(a *Agent)) error {
	return s.tx.Each(ctx, func(rows *sql.Rows) error {
		a := &Agent{}
		err := rows.Scan(a.columns()...)
		each(a)
		return err
	}, selectResidents, s.p.ID)
}

// InboxMessage is an item with the commit that brought its file to the archive, nil
// while that is pending.
type InboxMessage struct {
	Item
	Commit *Commit `json:"commit"`
}

// InboxResource is the inbox of an agent.
type InboxResource struct {
	Project  string         `json:"project"` // human_key
	Agent    string         `json:"agent"`
	Count    int            `json:"count"`
	Messages []InboxMessage `json:"messages"`
	At       *store.Moment  `json:"at,omitempty"` // of an inbox of the past
}

// Inbox is FetchInbox with commits.
//
// Errors: those of FetchInbox.
func (o *Service) Inbox(ctx context.Context, c Caller, a InboxArgs) (out InboxResource, err error) {
	err = o.readIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *callTx) error {
		me, err := s.reader(ctx, a.AgentName)
		if err != nil {
			return err
		}
		found, err := s.items(ctx, me, a)
		if err != nil {
			return err
		}
		out = InboxResource{Project: s.p.HumanKey, Agent: me.Name, Count: len(found), Messages: []InboxMessage{}}
		if a.At != "" {
			out.At = &s.at
		}
		for _, i := range found {
			commit, err := s.config.Archive.commitOf(ctx, s.tx, s.p.key, i.seq)
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
	Payload
	Commit *Commit `json:"commit"`
}

// OutboxResource is what an agent has sent within its project.
type OutboxResource struct {
	Project  string          `json:"project"`
	Agent    string          `json:"agent"`
	Count    int             `json:"count"`
	Messages []OutboxMessage `json:"messages"`
	At       *store.Moment   `json:"at,omitempty"` // of an outbox of the past
}

const (
	outbox     = `WHERE m.sender_id = ?1 AND m.created_ts > ?2 AND (?3 IS NULL OR m.topic = ?3) AND m.seq <= ?5 `
	newestSent = `ORDER BY m.created_ts DESC, m.id DESC LIMIT +?4`

	selectOutbox       = messageColumns + outbox + newestSent
	selectOutboxUrgent = messageColumns + outbox + `AND m.importance IN ('high', 'urgent') ` + newestSent
)

// Outbox lists what an agent has sent, the newest first, with those who got blind
// copies. Of the arguments UnreadOnly means nothing here.
//
// Errors: those of FetchInbox.
func (o *Service) Outbox(ctx context.Context, c Caller, a InboxArgs) (out OutboxResource, err error) {
	err = o.readIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *callTx) error {
		me, err := s.reader(ctx, a.AgentName)
		if err != nil {
			return err
		}
		sent, err := s.sent(ctx, me, a)
		if err != nil {
			return err
		}
		out = OutboxResource{Project: s.p.HumanKey, Agent: me.Name, Count: len(sent), Messages: []OutboxMessage{}}
		if a.At != "" {
			out.At = &s.at
		}
		for _, m := range sent {
			p := m.payload()
			if !a.IncludeBodies {
				p.Body = nil
			}
			commit, err := s.config.Archive.commitOf(ctx, s.tx, s.p.key, m.seq)
			if err != nil {
				return err
			}
			out.Messages = append(out.Messages, OutboxMessage{p, commit})
		}
		return nil
	})
	return out, err
}

func (s *callTx) sent(ctx context.Context, me *Agent, a InboxArgs) ([]*Message, error) {
	n, since, topic, err := a.window()
	if err != nil {
		return nil, err
	}
	until := int64(math.MaxInt64)
	if a.At != "" {
		if err := s.moment(ctx, a.At); err != nil {
			return nil, err
		}
		until = s.at.Tick
	}
	query := selectOutbox
	if a.UrgentOnly {
		query = selectOutboxUrgent
	}
	return messagesOf(ctx, s.tx, query, me.ID, since, topic, n, until)
}

// ThreadMessage is a message without its recipients.
type ThreadMessage struct {
	Header
	Body *string `json:"body_md,omitempty"` // nil where bodies were not asked for
}

// MessageOf shows a message to whoever can read the project, without its recipients.
//
// Errors: NOT_FOUND.
func (o *Service) MessageOf(ctx context.Context, c Caller, projectKey string, id int64) (out ThreadMessage, err error) {
	err = o.readIn(ctx, c, projectKey, func(ctx context.Context, s *callTx) error {
		m, err := s.message(ctx, id)
		if err == nil {
			out = ThreadMessage{m.header(), &m.Body}
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
CASE WHEN ?5 THEN m.body_md END FROM ` + newestIn

// ThreadOf shows the newest 1,000 messages of a thread, the oldest first.
//
// Errors: NOT_FOUND for one without messages, INVALID_THREAD_ID.
func (o *Service) ThreadOf(ctx context.Context, c Caller, projectKey, thread string, bodies bool) (out ThreadResource, err error) {
	id, err := threadID(thread)
	if err != nil {
		return out, toFault(err)
	}
	if id == nil {
		return out, toFault(missing("thread_id", "name the thread"))
	}
	err = o.readIn(ctx, c, projectKey, func(ctx context.Context, s *callTx) error {
		out = ThreadResource{s.p.HumanKey, *id, []ThreadMessage{}}
		err := s.tx.Each(ctx, func(rows *sql.Rows) error {
			var m ThreadMessage
			var attached sql.NullString
			err := rows.Scan(&m.ID, &m.ProjectID, &m.SenderID, &m.ThreadID, &m.Subject, &m.Importance, &m.AckRequired, &m.Created, &attached, &m.From, &m.Body)
			m.Attachments = attachmentsOf(attached)
			out.Messages = append(out.Messages, m)
			return err
		}, selectThreadMessages, s.p.ID, *id, beginning(id), maxLimit, bodies)
		if err == nil && len(out.Messages) == 0 {
			err = s.noThread(*id)
		}
		return err
	})
	return out, err
}

// The views of an inbox.
const (
	ViewUrgentUnread = "urgent-unread" // unread, and high or urgent
	ViewAckRequired  = "ack-required"  // to be acknowledged
	ViewAcksStale    = "acks-stale"    // likewise, and older than the limit
	ViewAckOverdue   = "ack-overdue"   // likewise
)

// View is what one of the views shows.
type View struct {
	Project    string `json:"project"`
	Agent      string `json:"agent"`
	TTLSeconds *int64 `json:"ttl_seconds,omitempty"` // of ViewAcksStale
	Count      int    `json:"count"`
	Messages   []Item `json:"messages"`
}

// ViewArgs say which view of whose inbox.
type ViewArgs struct {
	ProjectKey, AgentName, View string
	TTLSeconds                  *int64 // the limit of the two last; nil for Config.AckTTL and Config.AckOverdue; below 0 is 0
	Limit                       *int   // nil for 20
}

// ViewOf shows a view of an agent's inbox, the newest first.
//
// Errors: those of FetchInbox, NOT_FOUND for another view.
func (o *Service) ViewOf(ctx context.Context, c Caller, a ViewArgs) (out View, err error) {
	n, err := limit(a.Limit, 20)
	if err != nil {
		return out, toFault(err)
	}
	query, ttl := "", int64(0)
	switch a.View {
	case ViewUrgentUnread:
		query = selectUnreadUrgent
	case ViewAckRequired:
		query = selectDue
	case ViewAcksStale:
		query, ttl = selectOverdue, int64(o.config.AckTTL.Seconds())
	case ViewAckOverdue:
		query, ttl = selectOverdue, int64(o.config.AckOverdue.Seconds())
	default:
		return out, toFault(notFound("view", a.View).hint("the views are urgent-unread, ack-required, acks-stale and ack-overdue"))
	}
	if a.TTLSeconds != nil {
		ttl = min(max(*a.TTLSeconds, 0), int64(maxLinkTTL.Seconds()))
	}
	err = o.readIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *callTx) error {
		me, err := s.reader(ctx, a.AgentName)
		if err != nil {
			return err
		}
		args := []any{me.ID, 0, false, n}
		if query == selectOverdue {
			args = append(args, s.now-Time(ttl*1e9))
		}
		found, err := s.itemsOf(ctx, query, args...)
		out = View{Project: s.p.HumanKey, Agent: me.Name, Count: len(found), Messages: []Item{}}
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
