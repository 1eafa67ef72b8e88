package mail

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"

	"cairn/internal/store"
)

const (
	ProjectColumns = `SELECT m.id, m.uid, m.slug, m.human_key, m.created_ts, m.identity_mode, m.normalized_remote, m.folds_case, p.id, p.key,
ifnull(p.root, ''), p.identity NOTNULL FROM mail_projects m JOIN projects p ON p.key = m.project_key `
	selectProjectByUID  = ProjectColumns + `WHERE m.uid = ?`
	SelectProjectByID   = ProjectColumns + `WHERE m.id = ?`
	selectProjectBySlug = ProjectColumns + `WHERE m.slug = ?`
	SelectProjectByKey  = ProjectColumns + `WHERE m.project_key = ?`
	selectProjects      = ProjectColumns + `ORDER BY m.id`

	AgentColumns = `SELECT a.id, a.name, a.program, a.model, a.task_description, a.inception_ts, a.attachments_policy, a.contact_policy,
p.uid, a.branch, a.worktree, a.token_sha256, a.home, ifnull(a.retired_ts, 0), a.last_active_ts, a.received, a.unread, a.ack_due, a.project_id
FROM mail_agents a JOIN mail_projects p ON p.id = a.project_id `
	selectAgentByName = AgentColumns + `WHERE a.project_id = ? AND a.name = ?`
	SelectAgentByID   = AgentColumns + `WHERE a.id = ?`
	selectAgents      = AgentColumns + `WHERE a.project_id = ? ORDER BY a.name`

	MessageColumns = `SELECT m.id, m.uid, p.uid, s.name, m.thread_id, m.reply_to, r.uid, m.topic, m.importance, m.ack_required, m.created_ts,
m.subject, m.attachments, m.body_md, m.ordinal, m.archive_path, m.sender_id, m.project_id, m.seq
FROM mail_messages m JOIN mail_projects p ON p.id = m.project_id JOIN mail_agents s ON s.id = m.sender_id
LEFT JOIN mail_messages r ON r.id = m.reply_to `
	SelectMessageByID  = MessageColumns + `WHERE m.id = ?`
	SelectMessageByUID = MessageColumns + `WHERE m.uid = ?`
	selectRecipients   = `SELECT r.kind, a.name FROM mail_recipients r JOIN mail_agents a ON a.id = r.agent_id
WHERE r.message_id = ? ORDER BY r.position`

	selectDelivery = `SELECT m.id, m.uid, p.uid, a.name, r.kind, ifnull(r.shown_ts, 0), r.shown_via, ifnull(r.read_ts, 0), ifnull(r.ack_ts, 0), a.id,
m.created_ts, m.ordinal
FROM mail_messages m JOIN mail_projects p ON p.id = m.project_id
JOIN mail_agents a ON a.project_id = p.id JOIN mail_recipients r ON r.message_id = m.id AND r.agent_id = a.id
WHERE m.uid = ? AND p.uid = ? AND a.name = ?`

	ContactColumns = `SELECT a.name, p.uid, b.name, q.uid, c.status, c.reason, c.created_ts, c.updated_ts, ifnull(c.expires_ts, 0), c.archive_path,
c.a_agent_id, c.b_agent_id
FROM mail_contacts c JOIN mail_agents a ON a.id = c.a_agent_id JOIN mail_projects p ON p.id = a.project_id
JOIN mail_agents b ON b.id = c.b_agent_id JOIN mail_projects q ON q.id = b.project_id `
	selectContact = ContactColumns + `WHERE c.a_agent_id = ? AND c.b_agent_id = ?`

	ReservationColumns = `SELECT r.id, r.uid, p.uid, a.name, r.path_pattern, r.exclusive, r.advisory, r.source, s.id, r.reason, r.created_ts,
r.expires_ts, r.renewals, ifnull(r.released_ts, 0), r.release_kind, r.ordinal, r.archive_path, r.lit_prefix, r.agent_id, r.project_id
FROM mail_reservations r JOIN mail_projects p ON p.id = r.project_id JOIN mail_agents a ON a.id = r.agent_id
LEFT JOIN sessions s ON s.key = r.session_key `
	SelectReservationByID = ReservationColumns + `WHERE r.id = ?`
)

func (p *Project) Columns() []any {
	return []any{&p.ID, &p.UID, &p.Slug, &p.HumanKey, &p.Created, &p.IdentityMode, &p.Remote, &p.FoldsCase, &p.ProductID, &p.RowKey, &p.root, &p.versioned}
}

func (a *Agent) Columns() []any {
	return []any{
		&a.ID, &a.Name, &a.Program, &a.Model, &a.TaskDescription, &a.Inception, &a.AttachmentsPolicy, &a.ContactPolicy, &a.ProjectUID,
		&a.Branch, &a.Worktree, &a.TokenSHA256, &a.Home, &a.Retired, &a.LastActive, &a.Received, &a.Unread, &a.AckDue, &a.ProjectID,
	}
}

func (m *Message) Columns(attachments *sql.NullString) []any {
	return []any{
		&m.ID, &m.UID, &m.ProjectUID, &m.From, &m.ThreadID, &m.ReplyTo, &m.ReplyToUID, &m.Topic, &m.Importance, &m.AckRequired, &m.Created,
		&m.Subject, attachments, &m.Body, &m.Ordinal, &m.ArchivePath, &m.SenderID, &m.ProjectID, &m.Seq,
	}
}

func (d *Delivery) Columns(created *Time, ordinal *int64) []any {
	return []any{&d.MessageID, &d.UID, &d.ProjectUID, &d.Agent, &d.Recipient, &d.Shown, &d.ShownVia, &d.Read, &d.Ack, &d.agentID, created, ordinal}
}

func (c *Contact) Columns() []any {
	return []any{
		&c.From, &c.FromProjectUID, &c.To, &c.ToProjectUID, &c.Status, &c.Reason, &c.Created, &c.Updated, &c.Expires, &c.ArchivePath,
		&c.FromID, &c.ToID,
	}
}

func (r *Reservation) Columns() []any {
	return []any{
		&r.ID, &r.UID, &r.ProjectUID, &r.Agent, &r.PathPattern, &r.Exclusive, &r.Advisory, &r.Source, &r.Session, &r.Reason, &r.Created,
		&r.Expires, &r.Renewals, &r.Released, &r.ReleaseKind, &r.Ordinal, &r.ArchivePath, &r.LitPrefix, &r.AgentID, &r.ProjectID,
	}
}

// QueryOne runs a query for at most one row; found is false if there is none.
func QueryOne(ctx context.Context, tx *store.Tx, dest []any, query string, args ...any) (found bool, err error) {
	err = tx.Get(ctx, dest, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// The following functions return nil if the entity does not exist.

func ProjectByUID(ctx context.Context, tx *store.Tx, uid string) (*Project, error) {
	return QueryProject(ctx, tx, selectProjectByUID, uid)
}

func QueryProject(ctx context.Context, tx *store.Tx, query string, args ...any) (*Project, error) {
	p := &Project{Format: 1}
	found, err := QueryOne(ctx, tx, p.Columns(), query, args...)
	if !found {
		return nil, err
	}
	return p, nil
}

func AgentByName(ctx context.Context, tx *store.Tx, projectID int64, name string) (*Agent, error) {
	return QueryAgent(ctx, tx, selectAgentByName, projectID, name)
}

func QueryAgent(ctx context.Context, tx *store.Tx, query string, args ...any) (*Agent, error) {
	a := &Agent{}
	found, err := QueryOne(ctx, tx, a.Columns(), query, args...)
	if !found {
		return nil, err
	}
	return a, nil
}

// QueryMessage returns a message with its recipients.
func QueryMessage(ctx context.Context, tx *store.Tx, query string, arg any) (*Message, error) {
	m := &Message{To: []string{}, CC: []string{}, BCC: []string{}}
	var attachments sql.NullString
	found, err := QueryOne(ctx, tx, m.Columns(&attachments), query, arg)
	if !found {
		return nil, err
	}
	m.SetAttachments(attachments)
	return m, m.LoadRecipients(ctx, tx)
}

func (m *Message) SetAttachments(text sql.NullString) {
	m.Attachments = json.RawMessage("[]")
	if left := MarkerOf(text); left != nil {
		m.Purged, m.Dropped = left.Purged, left.Dropped
	} else if text.Valid {
		m.Attachments = json.RawMessage(text.String)
	}
}

func (m *Message) LoadRecipients(ctx context.Context, tx *store.Tx) error {
	return tx.Each(ctx, func(rows *sql.Rows) error {
		var kind, name string
		if err := rows.Scan(&kind, &name); err != nil {
			return err
		}
		switch kind {
		case "to":
			m.To = append(m.To, name)
		case "cc":
			m.CC = append(m.CC, name)
		default:
			m.BCC = append(m.BCC, name)
		}
		return nil
	}, selectRecipients, m.ID)
}

func DeliveryOf(ctx context.Context, tx *store.Tx, uid, projectUID, agent string) (*Delivery, error) {
	d := &Delivery{}
	var created Time
	var ordinal int64
	found, err := QueryOne(ctx, tx, d.Columns(&created, &ordinal), selectDelivery, uid, projectUID, agent)
	if !found {
		return nil, err
	}
	d.ArchivePath = StatePath(d.Agent, created, d.MessageID, ordinal)
	return d, nil
}

func QueryContact(ctx context.Context, tx *store.Tx, fromID, toID int64) (*Contact, error) {
	c := &Contact{}
	found, err := QueryOne(ctx, tx, c.Columns(), selectContact, fromID, toID)
	if !found {
		return nil, err
	}
	return c, nil
}

func QueryReservation(ctx context.Context, tx *store.Tx, query string, args ...any) (*Reservation, error) {
	r := &Reservation{}
	found, err := QueryOne(ctx, tx, r.Columns(), query, args...)
	if !found {
		return nil, err
	}
	return r, nil
}

func OrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (m *Message) AttachmentsJSON() json.RawMessage {
	if len(m.Attachments) == 0 {
		return json.RawMessage("[]")
	}
	return m.Attachments
}

// NonNil returns a list that is never null in JSON.
func NonNil(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

const MessageMonth = `substr(archive_path, 10, 7)` // YYYY/MM, the same expression as in the index

func Decimal(n int64) string { return strconv.FormatInt(n, 10) }

// NextOrdinal returns the ordinal of the next message of a project in a month.
func NextOrdinal(ctx context.Context, tx *store.Tx, projectID int64, month string) (n int64, err error) {
	err = tx.Get(ctx, []any{&n}, selectLastOfMonth, projectID, month)
	return n + 1, err
}

// Beginning returns the number of the message that started a thread with a decimal id, 0 for
// other ids.
func Beginning(thread *string) int64 {
	if thread == nil {
		return 0
	}
	id, err := strconv.ParseInt(*thread, 10, 64)
	if err != nil || id < 1 || Decimal(id) != *thread {
		return 0
	}
	return id
}

const SelectLastOrdinal = `SELECT ifnull(max(ordinal), 0) FROM mail_reservations WHERE project_id = ?`

const SelectData = `SELECT media_type, bytes, data FROM mail_blobs WHERE sha1 = ?`

// MessagesOf returns messages with their recipients.
func MessagesOf(ctx context.Context, tx *store.Tx, query string, args ...any) ([]*Message, error) {
	var out []*Message
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		m := &Message{To: []string{}, CC: []string{}, BCC: []string{}}
		var attachments sql.NullString
		if err := rows.Scan(m.Columns(&attachments)...); err != nil {
			return err
		}
		m.SetAttachments(attachments)
		out = append(out, m)
		return nil
	}, query, args...)
	for _, m := range out {
		if err == nil {
			err = m.LoadRecipients(ctx, tx)
		}
	}
	return out, err
}

const selectLastOfMonth = `SELECT ifnull(max(ordinal), 0) FROM mail_messages WHERE project_id = ?1 AND ` + MessageMonth + ` = ?2`
