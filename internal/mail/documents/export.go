package documents

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"

	"cairn/internal/mail"
	"cairn/internal/project"
	"cairn/internal/store"
)

// Exported is an exported mail entity, on a line of its document's kind. An attachment's line
// contains its bytes. The bytes of a large attachment are split over consecutive lines.
type Exported struct {
	Kind string          `json:"kind,omitempty"`
	Doc  json.RawMessage `json:"doc"`
	From int64           `json:"from,omitempty"` // of an attachment: the offset of Data
	Data []byte          `json:"data,omitempty"` // at most exportedPart bytes of an attachment; empty if they are already in the file

	document mail.Document // set by Check
}

// exportedPart is the maximum number of attachment bytes on one line.
const exportedPart = 8 << 20

const (
	selectScope = mail.ProjectColumns + `WHERE ?1 = 0 OR m.project_key = ?1 ORDER BY m.uid`

	selectMessagesByTime     = mail.MessageColumns + `ORDER BY m.created_ts, m.uid`
	selectMessagesOfByTime   = mail.MessageColumns + `WHERE m.project_id = ? ORDER BY m.created_ts, m.uid`
	selectExportedAgents     = mail.AgentColumns + `WHERE a.project_id = ? ORDER BY a.name`
	selectExportedDeliveries = `SELECT m.id, m.uid, p.uid, a.name, r.kind, ifnull(r.shown_ts, 0), r.shown_via, ifnull(r.read_ts, 0), ifnull(r.ack_ts, 0), a.id,
m.created_ts, m.ordinal
FROM mail_messages m JOIN mail_projects p ON p.id = m.project_id JOIN mail_recipients r ON r.message_id = m.id
JOIN mail_agents a ON a.id = r.agent_id
WHERE m.id = ? AND (r.shown_ts NOTNULL OR r.read_ts NOTNULL OR r.ack_ts NOTNULL) ORDER BY r.position`
	selectExportedContacts     = mail.ContactColumns + `WHERE a.project_id = ?1 AND (?2 OR b.project_id = ?1) ORDER BY a.name, q.uid, b.name`
	selectExportedReservations = mail.ReservationColumns + `WHERE r.project_id = ?1 ORDER BY r.created_ts, r.uid`
	selectExportedBlobs        = `SELECT sha1, media_type, bytes FROM mail_blobs WHERE sha1 IN (` + selectBlobsOf + `) ORDER BY sha1`
	selectBytes                = `SELECT substr(data, ?2, ?3) FROM mail_blobs WHERE sha1 = ?1`

	countInScope = `WITH scope AS (SELECT id FROM mail_projects WHERE ?1 = 0 OR project_key = ?1)
SELECT (SELECT count(*) FROM scope), (SELECT count(*) FROM mail_agents WHERE project_id IN scope),
(SELECT count(*) FROM mail_messages WHERE project_id IN scope),
(SELECT count(*) FROM mail_recipients r JOIN mail_messages m ON m.id = r.message_id WHERE m.project_id IN scope
  AND (r.shown_ts NOTNULL OR r.read_ts NOTNULL OR r.ack_ts NOTNULL)),
(SELECT count(*) FROM mail_contacts c JOIN mail_agents a ON a.id = c.a_agent_id JOIN mail_agents b ON b.id = c.b_agent_id
  WHERE a.project_id IN scope AND b.project_id IN scope),
(SELECT count(*) FROM mail_reservations WHERE project_id IN scope)`

	selectReservingSessions = `SELECT DISTINCT r.session_key FROM mail_reservations r JOIN mail_projects p ON p.id = r.project_id
WHERE p.project_key = ? AND r.session_key NOTNULL`
)

// SessionKeys returns the keys of the sessions that a project's mail refers to.
func SessionKeys(ctx context.Context, tx *store.Tx, of project.Scope) ([]int64, error) {
	if of.ID == "" {
		return nil, nil
	}
	return tx.Keys(ctx, selectReservingSessions, of.Key)
}

// exporting is an export in progress.
type exporting struct {
	tx       *store.Tx
	all      bool
	projects []*mail.Project
	blobs    map[string]bool // attachments whose bytes were written
	out      func(kind string, v any) error
}

func newExporting(ctx context.Context, tx *store.Tx, of project.Scope, out func(kind string, v any) error) (*exporting, error) {
	x := &exporting{tx: tx, all: of.ID == "", blobs: map[string]bool{}, out: out}
	return x, tx.Each(ctx, func(rows *sql.Rows) error {
		p := &mail.Project{Format: 1}
		x.projects = append(x.projects, p)
		return rows.Scan(p.Columns()...)
	}, selectScope, of.Key)
}

// Export calls put with the mail of a scope, one entity at a time. Each comes after those that it
// refers to: projects, agents, attachments, messages by time with their deliveries, contacts,
// reservations. An export of one project contains no references to others: it omits contacts and
// reply_to of messages in other projects. Data of this machine is omitted: session bindings,
// idempotency keys and notices.
func Export(ctx context.Context, tx *store.Tx, of project.Scope, put func(kind string, v any) error) error {
	x, err := newExporting(ctx, tx, of, put)
	if err != nil {
		return err
	}
	for _, p := range x.projects {
		if err := x.put(p); err != nil {
			return err
		}
	}
	for _, part := range []func(context.Context, *mail.Project) error{x.agents, x.attachments} {
		for _, p := range x.projects {
			if err := part(ctx, p); err != nil {
				return err
			}
		}
	}
	if err := x.messages(ctx); err != nil {
		return err
	}
	for _, part := range []func(context.Context, *mail.Project) error{x.contacts, x.reservations} {
		for _, p := range x.projects {
			if err := part(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *exporting) put(d mail.Document) error {
	doc, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return x.out(d.Kind(), &Exported{Doc: doc})
}

func (x *exporting) agents(ctx context.Context, p *mail.Project) error {
	return x.tx.Each(ctx, func(rows *sql.Rows) error {
		a := &mail.Agent{}
		if err := rows.Scan(a.Columns()...); err != nil {
			return err
		}
		return x.put(a)
	}, selectExportedAgents, p.ID)
}

func (x *exporting) attachments(ctx context.Context, p *mail.Project) error {
	return x.tx.Each(ctx, func(rows *sql.Rows) error {
		b := &mail.Blob{ProjectUID: p.UID}
		if err := rows.Scan(&b.SHA1, &b.MediaType, &b.Bytes); err != nil {
			return err
		}
		return x.bytes(ctx, b)
	}, selectExportedBlobs, p.ID)
}

// bytes writes an attachment. Its bytes are written only once per export.
func (x *exporting) bytes(ctx context.Context, b *mail.Blob) error {
	if x.blobs[b.SHA1] || b.Bytes == 0 {
		return x.put(b)
	}
	x.blobs[b.SHA1] = true
	doc, err := json.Marshal(b)
	for from := int64(0); from < b.Bytes && err == nil; from += exportedPart {
		e := &Exported{Doc: doc, From: from}
		if err = x.tx.Get(ctx, []any{&e.Data}, selectBytes, b.SHA1, from+1, exportedPart); err == nil {
			err = x.out(mail.KindBlob, e)
		}
	}
	return err
}

func (x *exporting) messages(ctx context.Context) error {
	query, args := selectMessagesByTime, []any{}
	switch {
	case len(x.projects) == 0:
		return nil
	case !x.all:
		query, args = selectMessagesOfByTime, []any{x.projects[0].ID}
	}
	return x.tx.Each(ctx, func(rows *sql.Rows) error {
		m := &mail.Message{To: []string{}, CC: []string{}, BCC: []string{}}
		var attachments sql.NullString
		if err := rows.Scan(m.Columns(&attachments)...); err != nil {
			return err
		}
		m.SetAttachments(attachments)
		if err := m.LoadRecipients(ctx, x.tx); err != nil {
			return err
		}
		if err := x.inside(ctx, m); err != nil {
			return err
		}
		if err := x.put(lean(m, x.blobs)); err != nil {
			return err
		}
		return x.deliveries(ctx, m)
	}, query, args...)
}

// inside clears a message's reply reference if the replied-to message is not in the export.
func (x *exporting) inside(ctx context.Context, m *mail.Message) error {
	if m.ReplyTo == nil {
		return nil
	}
	var there bool
	err := x.tx.Get(ctx, []any{&there}, `SELECT EXISTS (SELECT 1 FROM mail_messages WHERE id = ?1 AND (?2 OR project_id = ?3))`, *m.ReplyTo, x.all, m.ProjectID)
	if !there {
		m.ReplyTo, m.ReplyToUID = nil, nil
	}
	return err
}

// lean returns a message without attachment bytes that have lines of their own.
func lean(m *mail.Message, blobs map[string]bool) *mail.Message {
	list, err := m.ParseAttachments()
	if err != nil {
		return m
	}
	slim := false
	for i := range list {
		data, err := base64.StdEncoding.DecodeString(list[i].Data)
		if len(data) > 0 && err == nil && blobs[list[i].SHA1] && mail.SHA1(data) == list[i].SHA1 {
			list[i].Data, slim = "", true
		}
	}
	if !slim {
		return m
	}
	text, err := json.Marshal(list)
	if err != nil {
		return m
	}
	out := *m
	out.Attachments = text
	return &out
}

// full reverses lean.
func full(ctx context.Context, m *mail.Message, tx *store.Tx) error {
	list, err := m.ParseAttachments()
	if err != nil {
		return err
	}
	for i := range list {
		a := &list[i]
		if a.Type != "inline" || a.SHA1 == "" || a.Data != "" {
			continue
		}
		var data []byte
		if found, err := mail.QueryOne(ctx, tx, []any{&data}, `SELECT data FROM mail_blobs WHERE sha1 = ?`, a.SHA1); err != nil || !found {
			return err
		}
		a.Data = base64.StdEncoding.EncodeToString(data)
		if m.Attachments, err = json.Marshal(list); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporting) deliveries(ctx context.Context, m *mail.Message) error {
	return x.tx.Each(ctx, func(rows *sql.Rows) error {
		d := &mail.Delivery{}
		var created mail.Time
		var ordinal int64
		if err := rows.Scan(d.Columns(&created, &ordinal)...); err != nil {
			return err
		}
		d.ArchivePath = mail.StatePath(d.Agent, created, d.MessageID, ordinal)
		return x.put(d)
	}, selectExportedDeliveries, m.ID)
}

func (x *exporting) contacts(ctx context.Context, p *mail.Project) error {
	return x.tx.Each(ctx, func(rows *sql.Rows) error {
		c := &mail.Contact{}
		if err := rows.Scan(c.Columns()...); err != nil {
			return err
		}
		return x.put(c)
	}, selectExportedContacts, p.ID, x.all)
}

func (x *exporting) reservations(ctx context.Context, p *mail.Project) error {
	return x.tx.Each(ctx, func(rows *sql.Rows) error {
		r := &mail.Reservation{}
		if err := rows.Scan(r.Columns()...); err != nil {
			return err
		}
		return x.put(r)
	}, selectExportedReservations, p.ID)
}

// CountExported returns how many lines Export writes, by kind. Kinds without lines are omitted.
func CountExported(ctx context.Context, tx *store.Tx, of project.Scope) (map[string]int, error) {
	n := [6]int{}
	if err := tx.Get(ctx, []any{&n[0], &n[1], &n[2], &n[3], &n[4], &n[5]}, countInScope, of.Key); err != nil {
		return nil, err
	}
	out := map[string]int{mail.KindProject: n[0], mail.KindAgent: n[1], mail.KindMessage: n[2], mail.KindDelivery: n[3], mail.KindContact: n[4], mail.KindReservation: n[5]}
	x, err := newExporting(ctx, tx, of, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range x.projects {
		err := tx.Each(ctx, func(rows *sql.Rows) error {
			b := mail.Blob{}
			err := rows.Scan(&b.SHA1, &b.MediaType, &b.Bytes)
			lines := max(1, int((b.Bytes+exportedPart-1)/exportedPart))
			if x.blobs[b.SHA1] {
				lines = 1
			}
			x.blobs[b.SHA1] = true
			out[mail.KindBlob] += lines
			return err
		}, selectExportedBlobs, p.ID)
		if err != nil {
			return nil, err
		}
	}
	for _, kind := range slices.Collect(maps.Keys(out)) {
		if out[kind] == 0 {
			delete(out, kind)
		}
	}
	return out, nil
}
