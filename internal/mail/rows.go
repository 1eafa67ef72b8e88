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
	projectColumns = `SELECT m.id, m.uid, m.slug, m.human_key, m.created_ts, m.identity_mode, m.normalized_remote, m.folds_case, p.id, p.key,
ifnull(p.root, ''), p.identity NOTNULL FROM mail_projects m JOIN projects p ON p.key = m.project_key `
	selectProjectByUID  = projectColumns + `WHERE m.uid = ?`
	selectProjectByID   = projectColumns + `WHERE m.id = ?`
	selectProjectBySlug = projectColumns + `WHERE m.slug = ?`
	selectProjectByKey  = projectColumns + `WHERE m.project_key = ?`
	selectProjects      = projectColumns + `ORDER BY m.id`

	agentColumns = `SELECT a.id, a.name, a.program, a.model, a.task_description, a.inception_ts, a.attachments_policy, a.contact_policy,
p.uid, a.branch, a.worktree, a.token_sha256, a.home, ifnull(a.retired_ts, 0), a.last_active_ts, a.received, a.unread, a.ack_due, a.project_id
FROM mail_agents a JOIN mail_projects p ON p.id = a.project_id `
	selectAgentByName = agentColumns + `WHERE a.project_id = ? AND a.name = ?`
	selectAgentByID   = agentColumns + `WHERE a.id = ?`
	selectAgents      = agentColumns + `WHERE a.project_id = ? ORDER BY a.name`

	messageColumns = `SELECT m.id, m.uid, p.uid, s.name, m.thread_id, m.reply_to, r.uid, m.topic, m.importance, m.ack_required, m.created_ts,
m.subject, m.attachments, m.body_md, m.ordinal, m.archive_path, m.sender_id, m.project_id, m.seq
FROM mail_messages m JOIN mail_projects p ON p.id = m.project_id JOIN mail_agents s ON s.id = m.sender_id
LEFT JOIN mail_messages r ON r.id = m.reply_to `
	selectMessageByID  = messageColumns + `WHERE m.id = ?`
	selectMessageByUID = messageColumns + `WHERE m.uid = ?`
	selectRecipients   = `SELECT r.kind, a.name FROM mail_recipients r JOIN mail_agents a ON a.id = r.agent_id
WHERE r.message_id = ? ORDER BY r.position`

	selectDelivery = `SELECT m.id, m.uid, p.uid, a.name, r.kind, ifnull(r.shown_ts, 0), r.shown_via, ifnull(r.read_ts, 0), ifnull(r.ack_ts, 0), a.id,
m.created_ts, m.ordinal
FROM mail_messages m JOIN mail_projects p ON p.id = m.project_id
JOIN mail_agents a ON a.project_id = p.id JOIN mail_recipients r ON r.message_id = m.id AND r.agent_id = a.id
WHERE m.uid = ? AND p.uid = ? AND a.name = ?`

	contactColumns = `SELECT a.name, p.uid, b.name, q.uid, c.status, c.reason, c.created_ts, c.updated_ts, ifnull(c.expires_ts, 0), c.archive_path,
c.a_agent_id, c.b_agent_id
FROM mail_contacts c JOIN mail_agents a ON a.id = c.a_agent_id JOIN mail_projects p ON p.id = a.project_id
JOIN mail_agents b ON b.id = c.b_agent_id JOIN mail_projects q ON q.id = b.project_id `
	selectContact = contactColumns + `WHERE c.a_agent_id = ? AND c.b_agent_id = ?`

	reservationColumns = `SELECT r.id, r.uid, p.uid, a.name, r.path_pattern, r.exclusive, r.advisory, r.source, s.id, r.reason, r.created_ts,
r.expires_ts, r.renewals, ifnull(r.released_ts, 0), r.release_kind, r.ordinal, r.archive_path, r.lit_prefix, r.agent_id, r.project_id
FROM mail_reservations r JOIN mail_projects p ON p.id = r.project_id JOIN mail_agents a ON a.id = r.agent_id
LEFT JOIN sessions s ON s.key = r.session_key `
	selectReservationByID = reservationColumns + `WHERE r.id = ?`
)

func (p *Project) columns() []any {
	return []any{&p.ID, &p.UID, &p.Slug, &p.HumanKey, &p.Created, &p.IdentityMode, &p.Remote, &p.FoldsCase, &p.ProductID, &p.key, &p.root, &p.versioned}
}

func (a *Agent) columns() []any {
	return []any{
		&a.ID, &a.Name, &a.Program, &a.Model, &a.TaskDescription, &a.Inception, &a.AttachmentsPolicy, &a.ContactPolicy, &a.ProjectUID,
		&a.Branch, &a.Worktree, &a.TokenSHA256, &a.Home, &a.Retired, &a.LastActive, &a.Received, &a.Unread, &a.AckDue, &a.projectID,
	}
}

func (m *Message) columns(attachments *sql.NullString) []any {
	return []any{
		&m.ID, &m.UID, &m.ProjectUID, &m.From, &m.ThreadID, &m.ReplyTo, &m.ReplyToUID, &m.Topic, &m.Importance, &m.AckRequired, &m.Created,
		&m.Subject, attachments, &m.Body, &m.Ordinal, &m.ArchivePath, &m.senderID, &m.projectID, &m.seq,
	}
}

func (d *Delivery) columns(created *Time, ordinal *int64) []any {
	return []any{&d.MessageID, &d.UID, &d.ProjectUID, &d.Agent, &d.Recipient, &d.Shown, &d.ShownVia, &d.Read, &d.Ack, &d.agentID, created, ordinal}
}

func (c *Contact) columns() []any {
	return []any{
		&c.From, &c.FromProjectUID, &c.To, &c.ToProjectUID, &c.Status, &c.Reason, &c.Created, &c.Updated, &c.Expires, &c.ArchivePath,
		&c.fromID, &c.toID,
	}
}

func (r *Reservation) columns() []any {
	return []any{
		&r.ID, &r.UID, &r.ProjectUID, &r.Agent, &r.PathPattern, &r.Exclusive, &r.Advisory, &r.Source, &r.Session, &r.Reason, &r.Created,
		&r.Expires, &r.Renewals, &r.Released, &r.ReleaseKind, &r.Ordinal, &r.ArchivePath, &r.LitPrefix, &r.agentID, &r.projectID,
	}
}

// one runs a query for at most one row; found is false without one.
func one(ctx context.Context, tx *store.Tx, dest []any, query string, args ...any) (found bool, err error) {
	err = tx.Get(ctx, dest, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// The finders return nil for what is not there.

func projectByUID(ctx context.Context, tx *store.Tx, uid string) (*Project, error) {
	return findProject(ctx, tx, selectProjectByUID, uid)
}

func findProject(ctx context.Context, tx *store.Tx, query string, args ...any) (*Project, error) {
	p := &Project{Format: 1}
	found, err := one(ctx, tx, p.columns(), query, args...)
	if !found {
		return nil, err
	}
	return p, nil
}

func agentByName(ctx context.Context, tx *store.Tx, projectID int64, name string) (*Agent, error) {
	return findAgent(ctx, tx, selectAgentByName, projectID, name)
}

func findAgent(ctx context.Context, tx *store.Tx, query string, args ...any) (*Agent, error) {
	a := &Agent{}
	found, err := one(ctx, tx, a.columns(), query, args...)
	if !found {
		return nil, err
	}
	return a, nil
}

// findMessage finds a message with its recipients.
func findMessage(ctx context.Context, tx *store.Tx, query string, arg any) (*Message, error) {
	m := &Message{To: []string{}, CC: []string{}, BCC: []string{}}
	var attachments sql.NullString
	found, err := one(ctx, tx, m.columns(&attachments), query, arg)
	if !found {
		return nil, err
	}
	m.setAttachments(attachments)
	return m, m.loadRecipients(ctx, tx)
}

func (m *Message) setAttachments(text sql.NullString) {
	m.Attachments = json.RawMessage("[]")
	if left := markerOf(text); left != nil {
		m.Purged, m.Dropped = left.Purged, left.Dropped
	} else if text.Valid {
		m.Attachments = json.RawMessage(text.String)
	}
}

func (m *Message) loadRecipients(ctx context.Context, tx *store.Tx) error {
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

func deliveryOf(ctx context.Context, tx *store.Tx, uid, projectUID, agent string) (*Delivery, error) {
	d := &Delivery{}
	var created Time
	var ordinal int64
	found, err := one(ctx, tx, d.columns(&created, &ordinal), selectDelivery, uid, projectUID, agent)
	if !found {
		return nil, err
	}
	d.ArchivePath = statePath(d.Agent, created, d.MessageID, ordinal)
	return d, nil
}

func findContact(ctx context.Context, tx *store.Tx, fromID, toID int64) (*Contact, error) {
	c := &Contact{}
	found, err := one(ctx, tx, c.columns(), selectContact, fromID, toID)
	if !found {
		return nil, err
	}
	return c, nil
}

func findReservation(ctx context.Context, tx *store.Tx, query string, args ...any) (*Reservation, error) {
	r := &Reservation{}
	found, err := one(ctx, tx, r.columns(), query, args...)
	if !found {
		return nil, err
	}
	return r, nil
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (m *Message) attachments() json.RawMessage {
	if len(m.Attachments) == 0 {
		return json.RawMessage("[]")
	}
	return m.Attachments
}

// list is a list that is never null in JSON.
func list(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

const messageMonth = `substr(archive_path, 10, 7)` // YYYY/MM, as the index has it

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// nextOrdinal is the ordinal of the next message of a project and month.
func nextOrdinal(ctx context.Context, tx *store.Tx, projectID int64, month string) (n int64, err error) {
	err = tx.Get(ctx, []any{&n}, selectLastOfMonth, projectID, month)
	return n + 1, err
}

// beginning is the number of the message that a thread with a decimal id began
// with, 0 for other ids.
func beginning(thread *string) int64 {
	if thread == nil {
		return 0
	}
	id, err := strconv.ParseInt(*thread, 10, 64)
	if err != nil || id < 1 || decimal(id) != *thread {
		return 0
	}
	return id
}

const selectLastOrdinal = `SELECT ifnull(max(ordinal), 0) FROM mail_reservations WHERE project_id = ?`

const selectData = `SELECT media_type, bytes, data FROM mail_blobs WHERE sha1 = ?`

// messagesOf reads messages with their recipients.
func messagesOf(ctx context.Context, tx *store.Tx, query string, args ...any) ([]*Message, error) {
	var out []*Message
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		m := &Message{To: []string{}, CC: []string{}, BCC: []string{}}
		var attachments sql.NullString
		if err := rows.Scan(m.columns(&attachments)...); err != nil {
			return err
		}
		m.setAttachments(attachments)
		out = append(out, m)
		return nil
	}, query, args...)
	for _, m := range out {
		if err == nil {
			err = m.loadRecipients(ctx, tx)
		}
	}
	return out, err
}

const selectLastOfMonth = `SELECT ifnull(max(ordinal), 0) FROM mail_messages WHERE project_id = ?1 AND ` + messageMonth + ` = ?2`
