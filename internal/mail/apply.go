package mail

import (
	"context"
	"database/sql"
	"errors"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	selectNextID = `SELECT ifnull((SELECT seq FROM sqlite_sequence WHERE name = ?), 0) + 1`

	upsertProject = `INSERT INTO mail_projects (id, project_key, uid, slug, human_key, identity_mode, normalized_remote, folds_case, created_ts)
VALUES (nullif(?, 0), ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (uid) DO UPDATE SET project_key = excluded.project_key, human_key = excluded.human_key, normalized_remote = excluded.normalized_remote, folds_case = excluded.folds_case`

	upsertAgent = `INSERT INTO mail_agents (id, project_id, name, program, model, task_description, inception_ts, last_active_ts,
attachments_policy, contact_policy, token_sha256, branch, worktree, home, retired_ts)
VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT (project_id, name) DO UPDATE SET program = excluded.program, model = excluded.model,
task_description = excluded.task_description, attachments_policy = excluded.attachments_policy, contact_policy = excluded.contact_policy,
token_sha256 = excluded.token_sha256, branch = excluded.branch, worktree = excluded.worktree, home = excluded.home,
retired_ts = excluded.retired_ts`
	updateActive = `UPDATE mail_agents SET last_active_ts = max(last_active_ts, ?2) WHERE id = ?1`

	insertMessage = `INSERT INTO mail_messages (id, uid, project_id, sender_id, thread_id, reply_to, subject, body_md, importance,
ack_required, topic, created_ts, attachments, seq, ordinal, archive_path)
VALUES (nullif(?, 0), ?, ?, ?, ?, (SELECT id FROM mail_messages WHERE uid = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (uid) DO NOTHING`
	insertRecipient = `INSERT INTO mail_recipients (message_id, agent_id, kind, position, importance, ack_required, created_ts)
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (message_id, agent_id) DO NOTHING`
	UpsertThread = `INSERT INTO mail_threads (project_id, thread_id, ordinal, digest_path, first_ts, last_ts, messages)
VALUES (?1, ?2, ?3, ?4, ?5, ?5, 1)
ON CONFLICT (project_id, thread_id) DO UPDATE SET first_ts = min(first_ts, excluded.first_ts),
last_ts = max(last_ts, excluded.last_ts), messages = messages + 1`
	SelectThread       = `SELECT ordinal, digest_path FROM mail_threads WHERE project_id = ? AND thread_id = ?`
	selectThreadsCount = `SELECT ifnull(max(ordinal), 0) FROM mail_threads WHERE project_id = ?`
	selectDigestTaken  = `SELECT EXISTS (SELECT 1 FROM mail_threads WHERE project_id = ? AND digest_path = ? COLLATE NOCASE)`

	updateDelivery = `UPDATE mail_recipients SET shown_ts = ifnull(shown_ts, ?3), shown_via = ifnull(shown_via, ?4),
read_ts = ifnull(read_ts, ?5), ack_ts = ifnull(ack_ts, ?6)
WHERE message_id = (SELECT id FROM mail_messages WHERE uid = ?1) AND agent_id = ?2`

	upsertContact = `INSERT INTO mail_contacts (a_agent_id, b_agent_id, status, reason, created_ts, updated_ts, expires_ts, archive_path)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (a_agent_id, b_agent_id) DO UPDATE SET status = excluded.status, reason = excluded.reason,
updated_ts = excluded.updated_ts, expires_ts = excluded.expires_ts`

	upsertReservation = `INSERT INTO mail_reservations (id, uid, project_id, agent_id, session_key, path_pattern, lit_prefix, exclusive,
advisory, source, reason, created_ts, expires_ts, renewals, released_ts, release_kind, ordinal, archive_path)
VALUES (nullif(?, 0), ?, ?, ?, (SELECT key FROM sessions WHERE id = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (uid) DO UPDATE SET expires_ts = excluded.expires_ts, renewals = excluded.renewals,
released_ts = excluded.released_ts, release_kind = excluded.release_kind`

	insertBlob       = `INSERT INTO mail_blobs (sha1, media_type, bytes, data) VALUES (?, ?, ?, ?) ON CONFLICT (sha1) DO NOTHING`
	SelectBlobLogged = `SELECT EXISTS (SELECT 1 FROM changes WHERE id = ?1 AND doc IS NOT NULL
AND kind = (SELECT id FROM symbols WHERE text = ?2) AND stream = (SELECT id FROM symbols WHERE text = ?3))
AND EXISTS (SELECT 1 FROM mail_blobs WHERE sha1 = ?1)`
	SelectBlob = `SELECT EXISTS (SELECT 1 FROM mail_blobs WHERE sha1 = ?)`
)

// CodeIncomplete is the code of the error (Conflict) for a document that refers to an entity
// that is not stored yet.
const CodeIncomplete = "mail_incomplete"

func incomplete(d Document, what, name string) error {
	return fault.Newf(fault.Conflict, CodeIncomplete, "the %s %s refers to the %s %s, which is not there", d.Kind(), Printable(d.Key()), what, Printable(name))
}

// Tables of the entities that calls number with NextID.
const (
	AgentTable       = "mail_agents"
	MessageTable     = "mail_messages"
	ReservationTable = "mail_reservations"
)

// NextID returns the number of the next row of a table. Numbers are never reused, and no other
// call gets this one while the transaction lasts (mail §1, G4).
func NextID(ctx context.Context, tx *store.Tx, table string) (id int64, err error) {
	return id, tx.Get(ctx, []any{&id}, selectNextID, table)
}

// ProjectOf returns the project that a document refers to.
//
// Errors: Conflict with CodeIncomplete if the project is missing.
func ProjectOf(ctx context.Context, tx *store.Tx, d Document) (*Project, error) {
	p, err := ProjectByUID(ctx, tx, d.StreamProject())
	if err == nil && p == nil {
		err = incomplete(d, "project", d.StreamProject())
	}
	return p, err
}

// AgentOf returns an agent that a document refers to.
//
// Errors: Conflict with CodeIncomplete if the agent is missing.
func AgentOf(ctx context.Context, tx *store.Tx, d Document, projectID int64, name string) (*Agent, error) {
	a, err := AgentByName(ctx, tx, projectID, name)
	if err == nil && a == nil {
		err = incomplete(d, "agent", name)
	}
	return a, err
}

func (p *Project) Apply(ctx context.Context, tx *store.Tx, _ int64) error {
	row, err := project.Ensure(ctx, tx, p.ProductID)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, upsertProject, p.ID, row.Key, p.UID, p.Slug, p.HumanKey, p.IdentityMode, p.Remote, p.FoldsCase, p.Created)
	return err
}

func (a *Agent) Apply(ctx context.Context, tx *store.Tx, _ int64) error {
	p, err := ProjectOf(ctx, tx, a)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, upsertAgent, a.ID, p.ID, a.Name, a.Program, a.Model, a.TaskDescription, a.Inception,
		a.AttachmentsPolicy, a.ContactPolicy, a.TokenSHA256, a.Branch, a.Worktree, a.Home, orNull(a.Retired))
	return err
}

// TouchAgent records that an agent was active at a time. This is not a change of the log (mail
// §3).
func TouchAgent(ctx context.Context, tx *store.Tx, id int64, at Time) error {
	_, err := tx.Exec(ctx, updateActive, id, at)
	return err
}

func (m *Message) Apply(ctx context.Context, tx *store.Tx, seq int64) error {
	p, err := ProjectOf(ctx, tx, m)
	if err != nil {
		return err
	}
	sender, err := AgentOf(ctx, tx, m, p.ID, m.From)
	if err != nil {
		return err
	}
	res, err := tx.Exec(ctx, insertMessage, m.ID, m.UID, p.ID, sender.ID, m.ThreadID, m.ReplyToUID, m.Subject, m.Body, m.Importance,
		m.AckRequired, m.Topic, m.Created, m.AttachmentsColumn(), seq, m.Ordinal, m.ArchivePath)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 { // it is stored already, with its recipients
		if err == nil && m.Purged != 0 {
			_, err = tx.Exec(ctx, buryMessage, m.UID, m.AttachmentsColumn(), m.ArchivePath)
		}
		return err
	}
	if m.ID, err = res.LastInsertId(); err != nil {
		return err
	}
	if err := m.ApplyRecipients(ctx, tx, p.ID); err != nil {
		return err
	}
	if err := TouchAgent(ctx, tx, sender.ID, m.Created); err != nil || m.ThreadID == nil {
		return err
	}
	return m.applyThread(ctx, tx, p.ID)
}

func (m *Message) ApplyRecipients(ctx context.Context, tx *store.Tx, projectID int64) error {
	position := 0
	for _, list := range [...]struct {
		kind  string
		names []string
	}{{"to", m.To}, {"cc", m.CC}, {"bcc", m.BCC}} {
		for _, name := range list.names {
			a, err := AgentOf(ctx, tx, m, projectID, name)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, insertRecipient, m.ID, a.ID, list.kind, position, m.Importance, m.AckRequired, m.Created); err != nil {
				return err
			}
			position++
		}
	}
	return nil
}

func (m *Message) applyThread(ctx context.Context, tx *store.Tx, projectID int64) error {
	var ordinal int64
	var digest string
	err := tx.Get(ctx, []any{&ordinal, &digest}, SelectThread, projectID, *m.ThreadID)
	if errors.Is(err, sql.ErrNoRows) {
		ordinal, digest, err = NewThread(ctx, tx, projectID, *m.ThreadID)
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, UpsertThread, projectID, *m.ThreadID, ordinal, digest, m.Created)
	return err
}

func NewThread(ctx context.Context, tx *store.Tx, projectID int64, id string) (ordinal int64, digest string, err error) {
	if err := tx.Get(ctx, []any{&ordinal}, selectThreadsCount, projectID); err != nil {
		return 0, "", err
	}
	ordinal++
	digest = digestPath(id, ordinal, false)
	var taken bool
	if err := tx.Get(ctx, []any{&taken}, selectDigestTaken, projectID, digest); err != nil {
		return 0, "", err
	}
	if taken {
		digest = digestPath(id, ordinal, true)
	}
	return ordinal, digest, nil
}

func (d *Delivery) Apply(ctx context.Context, tx *store.Tx, _ int64) error {
	p, err := ProjectOf(ctx, tx, d)
	if err != nil {
		return err
	}
	a, err := AgentOf(ctx, tx, d, p.ID, d.Agent)
	if err != nil {
		return err
	}
	res, err := tx.Exec(ctx, updateDelivery, d.UID, a.ID, orNull(d.Shown), d.ShownVia, orNull(d.Read), orNull(d.Ack))
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return incomplete(d, "message", d.UID)
}

func (c *Contact) Apply(ctx context.Context, tx *store.Tx, _ int64) error {
	ends := [2]int64{}
	for i, end := range [...]struct{ uid, name string }{{c.FromProjectUID, c.From}, {c.ToProjectUID, c.To}} {
		p, err := ProjectByUID(ctx, tx, end.uid)
		if err != nil {
			return err
		}
		if p == nil {
			return incomplete(c, "project", end.uid)
		}
		a, err := AgentOf(ctx, tx, c, p.ID, end.name)
		if err != nil {
			return err
		}
		ends[i] = a.ID
	}
	_, err := tx.Exec(ctx, upsertContact, ends[0], ends[1], c.Status, c.Reason, c.Created, c.Updated, orNull(c.Expires), c.ArchivePath)
	return err
}

func (r *Reservation) Apply(ctx context.Context, tx *store.Tx, _ int64) error {
	p, err := ProjectOf(ctx, tx, r)
	if err != nil {
		return err
	}
	a, err := AgentOf(ctx, tx, r, p.ID, r.Agent)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, upsertReservation, r.ID, r.UID, p.ID, a.ID, r.Session, r.PathPattern, r.LitPrefix, r.Exclusive, r.Advisory,
		r.Source, r.Reason, r.Created, r.Expires, r.Renewals, orNull(r.Released), r.ReleaseKind, r.Ordinal, r.ArchivePath)
	return err
}

func (b *Blob) Apply(ctx context.Context, tx *store.Tx, _ int64) error {
	if b.Data == nil { // from another store: its bytes must be stored already
		var there bool
		if err := tx.Get(ctx, []any{&there}, SelectBlob, b.SHA1); err != nil || there {
			return err
		}
		return incomplete(b, "attachment", b.SHA1)
	}
	_, err := tx.Exec(ctx, insertBlob, b.SHA1, b.MediaType, b.Bytes, b.Data)
	return err
}

// orNull returns a time as a column value, nil for the zero Time.
func orNull(t Time) any {
	if t == 0 {
		return nil
	}
	return int64(t)
}

func textOrNull(text []byte) any {
	if len(text) == 0 {
		return nil
	}
	return string(text)
}
