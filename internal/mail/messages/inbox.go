package messages

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/mail"
)

// Item is a message as its recipient sees it (mail §5, shapes).
type Item struct {
	Header
	Kind string  `json:"kind"`              // to, cc or bcc, for this recipient
	Body *string `json:"body_md,omitempty"` // nil if bodies were not requested
}

// InboxArgs are the arguments of fetch_inbox.
type InboxArgs struct {
	ProjectKey    string `arg:"project_key,required" lean:"The repository's path."`
	AgentName     string `arg:"agent_name,required"`
	Limit         *int   `arg:"limit,default=20,min=1,max=1000" about:"Maximum number of messages."`
	UnreadOnly    bool   `arg:"unread_only" about:"Only messages that you have not marked as read." lean:""`
	UrgentOnly    bool   `arg:"urgent_only" about:"Only messages of high or urgent importance."`
	IncludeBodies bool   `arg:"include_bodies" about:"Include body_md, otherwise only the headers." lean:""`
	Since         string `arg:"since_ts,or=since" about:"Only messages newer than this time (ISO 8601)."` // exclusive
	Topic         string `arg:"topic" about:"Only messages with this topic."`
	At            string `arg:"at"` // a moment in the past, see words.ParseMoment; "" for now
}

const (
	itemColumns = `SELECT m.id, m.project_id, m.sender_id, m.thread_id, m.subject, m.importance, m.ack_required, m.created_ts, m.attachments, a.name,
r.kind, CASE WHEN ?3 THEN m.body_md END, m.seq `
	receivedBy = itemColumns + `FROM mail_recipients r CROSS JOIN mail_messages m ON m.id = r.message_id CROSS JOIN mail_agents a ON a.id = m.sender_id
WHERE r.agent_id = ?1 AND r.created_ts > ?2 `
	newestItems = `ORDER BY r.created_ts DESC, r.message_id DESC LIMIT +?4`

	// Each condition has its own index.
	onlyUnread = `AND r.read_ts IS NULL `
	onlyUrgent = `AND r.importance IN ('high', 'urgent') `
	onlyDue    = `AND r.ack_required = 1 AND r.ack_ts IS NULL `

	selectItems        = receivedBy + newestItems
	selectUnread       = receivedBy + onlyUnread + newestItems
	selectUrgent       = receivedBy + onlyUrgent + newestItems
	SelectUnreadUrgent = receivedBy + onlyUrgent + onlyUnread + newestItems
	SelectDue          = receivedBy + onlyDue + newestItems
	SelectOverdue      = receivedBy + onlyDue + `AND r.created_ts <= ?5 ` + newestItems

	selectTopic = itemColumns + `FROM mail_messages m CROSS JOIN mail_recipients r ON r.message_id = m.id AND r.agent_id = ?1
CROSS JOIN mail_agents a ON a.id = m.sender_id
WHERE m.project_id = ?5 AND m.topic = ?6 AND m.created_ts > ?2 AND (NOT ?7 OR r.read_ts IS NULL) AND (NOT ?8 OR r.importance IN ('high', 'urgent'))
ORDER BY m.created_ts DESC, m.id DESC LIMIT +?4`
)

// FetchInbox returns the messages that an agent received, newest first; an empty list if there
// are none. It writes nothing and marks no message as read.
//
// Errors: NOT_FOUND; CAPABILITY_DENIED for a protected agent without its token; INVALID_LIMIT;
// INVALID_TIMESTAMP, also for At; INVALID_TOPIC.
func (o *Messages) FetchInbox(ctx context.Context, c mail.Caller, a InboxArgs) (out []Item, err error) {
	err = o.ReadIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, err := s.ReadAs(ctx, a.AgentName)
		if err != nil {
			return err
		}
		out, err = ReadInbox(ctx, s, me, a)
		return err
	})
	return out, err
}

// ReadInbox is FetchInbox inside a call.
func ReadInbox(ctx context.Context, s *mail.CallTx, me *mail.Agent, a InboxArgs) (out []Item, err error) {
	found, err := Items(ctx, s, me, a)
	out = make([]Item, 0, len(found))
	for _, i := range found {
		out = append(out, i.Item)
	}
	return out, err
}

// item is an Item with the number of its message in the change log.
type item struct {
	Item
	Seq    int64
	purged bool
}

// Window parses the arguments that bound the content of a box; since is 0 and topic nil if
// they are not given.
//
// Errors: INVALID_LIMIT, INVALID_TIMESTAMP, INVALID_TOPIC.
func (a *InboxArgs) Window() (n int, since mail.Time, topic *string, err error) {
	if n, err = mail.CheckLimit(a.Limit, 20); err != nil {
		return 0, 0, nil, err
	}
	if a.Since != "" {
		if since, err = mail.ParseTime("since_ts", a.Since); err != nil {
			return 0, 0, nil, err
		}
	}
	topic, err = mail.TopicOf(a.Topic)
	return n, since, topic, err
}

func Items(ctx context.Context, s *mail.CallTx, me *mail.Agent, a InboxArgs) ([]item, error) {
	if a.At != "" {
		return itemsAt(ctx, s, me, a)
	}
	n, since, topic, err := a.Window()
	if err != nil {
		return nil, err
	}
	args := []any{me.ID, since, a.IncludeBodies, n}
	query := selectItems
	switch {
	case topic != nil:
		query, args = selectTopic, append(args, s.Project.ID, *topic, a.UnreadOnly, a.UrgentOnly)
	case a.UnreadOnly && a.UrgentOnly:
		query = SelectUnreadUrgent
	case a.UnreadOnly:
		query = selectUnread
	case a.UrgentOnly:
		query = selectUrgent
	}
	return ItemsOf(ctx, s, query, args...)
}

func ItemsOf(ctx context.Context, s *mail.CallTx, query string, args ...any) (out []item, err error) {
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var i item
		var attached sql.NullString
		err := rows.Scan(&i.ID, &i.ProjectID, &i.SenderID, &i.ThreadID, &i.Subject, &i.Importance, &i.AckRequired, &i.Created, &attached, &i.From,
			&i.Kind, &i.Body, &i.Seq)
		i.Attachments, i.purged = AttachmentsOf(attached), mail.MarkerOf(attached) != nil
		out = append(out, i)
		return err
	}, query, args...)
	return out, err
}

func AttachmentsOf(text sql.NullString) json.RawMessage {
	if text.Valid && mail.MarkerOf(text) == nil {
		return json.RawMessage(text.String)
	}
	return json.RawMessage("[]")
}

// Read is the result of mark_message_read.
type Read struct {
	MessageID int64     `json:"message_id"`
	Read      bool      `json:"read"` // always true
	At        mail.Time `json:"read_at"`
}

// MarkMessageRead records that a recipient has read a message. It keeps and returns the time
// of the first call.
//
// Errors: those of acting as the agent; NOT_FOUND for a message that does not exist, belongs
// to another project, or was not sent to the agent.
func (o *Messages) MarkMessageRead(ctx context.Context, c mail.Caller, projectKey, agentName string, messageID int64) (out Read, err error) {
	d, err := stamp(ctx, o.Kernel, c, projectKey, agentName, messageID, false)
	if err != nil {
		return out, err
	}
	return Read{messageID, true, d.Read}, nil
}

// Acknowledged is the result of acknowledge_message.
type Acknowledged struct {
	MessageID    int64     `json:"message_id"`
	Acknowledged bool      `json:"acknowledged"` // always true
	At           mail.Time `json:"acknowledged_at"`
	Read         mail.Time `json:"read_at"`
}

// AcknowledgeMessage records that a recipient has acknowledged and read a message. It keeps
// and returns the times of the first calls.
//
// Errors: those of MarkMessageRead.
func (o *Messages) AcknowledgeMessage(ctx context.Context, c mail.Caller, projectKey, agentName string, messageID int64) (out Acknowledged, err error) {
	d, err := stamp(ctx, o.Kernel, c, projectKey, agentName, messageID, true)
	if err != nil {
		return out, err
	}
	return Acknowledged{messageID, true, d.Ack, d.Read}, nil
}

const selectReceived = `SELECT m.id, m.uid, p.uid, a.name, r.kind, ifnull(r.shown_ts, 0), r.shown_via, ifnull(r.read_ts, 0), ifnull(r.ack_ts, 0), a.id,
m.created_ts, m.ordinal
FROM mail_recipients r CROSS JOIN mail_messages m ON m.id = r.message_id CROSS JOIN mail_projects p ON p.id = m.project_id
CROSS JOIN mail_agents a ON a.id = r.agent_id
WHERE r.message_id = ? AND r.agent_id = ?`

// received returns the delivery of a message to an agent of this project, nil if there is
// none.
func received(ctx context.Context, s *mail.CallTx, me *mail.Agent, messageID int64) (*mail.Delivery, error) {
	d := &mail.Delivery{}
	var created mail.Time
	var ordinal int64
	found, err := mail.QueryOne(ctx, s.Tx, d.Columns(&created, &ordinal), selectReceived, messageID, me.ID)
	if !found {
		return nil, err
	}
	d.ArchivePath = mail.StatePath(d.Agent, created, d.MessageID, ordinal)
	return d, nil
}

// stamp marks a message as read or, with ack, as read and acknowledged.
func stamp(ctx context.Context, o *mail.Kernel, c mail.Caller, projectKey, agentName string, messageID int64, ack bool) (d *mail.Delivery, err error) {
	err = o.WriteIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, err := s.ActAs(ctx, agentName)
		if err != nil {
			return err
		}
		d, err = received(ctx, s, me, messageID)
		if err != nil {
			return err
		}
		if d == nil {
			return noMessage(s, messageID)
		}
		if d.Read != 0 && (!ack || d.Ack != 0) {
			return mail.TouchAgent(ctx, s.Tx, me.ID, s.Now)
		}
		mail.Default(&d.Read, s.Now)
		if ack {
			mail.Default(&d.Ack, s.Now)
		}
		return s.Put(ctx, d)
	})
	return d, err
}
