package documents

import (
	"context"
	"database/sql"

	"cairn/internal/mail"
	"cairn/internal/store"
)

const (
	pageSize = 200 // rows that are read into memory together

	selectAgentsAfter   = mail.AgentColumns + `WHERE a.project_id = ? AND a.id > ? ORDER BY a.id LIMIT +?`
	selectMessagesAfter = mail.MessageColumns + `WHERE m.project_id = ?1 AND m.id > ?2 ORDER BY m.id LIMIT +?3`
	// The deliveries of a message with data that the message's own file does not contain.
	selectDeliveriesOf = `SELECT m.id, m.uid, p.uid, a.name, r.kind, ifnull(r.shown_ts, 0), r.shown_via, ifnull(r.read_ts, 0), ifnull(r.ack_ts, 0), a.id,
m.created_ts, m.ordinal
FROM mail_messages m JOIN mail_projects p ON p.id = m.project_id JOIN mail_recipients r ON r.message_id = m.id
JOIN mail_agents a ON a.id = r.agent_id
WHERE m.id = ? AND (r.kind = 'bcc' OR r.shown_ts NOTNULL OR r.read_ts NOTNULL OR r.ack_ts NOTNULL) ORDER BY r.position`
	selectContactsFrom      = mail.ContactColumns + `WHERE a.project_id = ? ORDER BY c.id`
	selectReservationsAfter = mail.ReservationColumns + `WHERE r.project_id = ?1 AND r.id > ?2 ORDER BY r.id LIMIT +?3`
	selectBlobsOf           = `SELECT DISTINCT json_extract(j.value, '$.sha1') FROM mail_messages m, json_each(CASE WHEN m.attachments LIKE '[%' THEN m.attachments END) j
WHERE m.project_id = ? AND json_extract(j.value, '$.sha1') IN (SELECT sha1 FROM mail_blobs)`
)

// eachDocument calls put with the current document of every entity of a project. Each comes after
// those that it refers to.
func eachDocument(ctx context.Context, tx *store.Tx, p *mail.Project, put func(mail.Document) error) error {
	if err := put(p); err != nil {
		return err
	}
	err := paged(ctx, tx, p.ID, selectAgentsAfter, func(rows *sql.Rows) (*mail.Agent, int64, error) {
		a := &mail.Agent{}
		err := rows.Scan(a.Columns()...)
		return a, a.ID, err
	}, func(a *mail.Agent) error { return put(a) })
	if err != nil {
		return err
	}
	err = all(ctx, tx, func(rows *sql.Rows) (*mail.Blob, error) {
		b := &mail.Blob{ProjectUID: p.UID}
		return b, rows.Scan(&b.SHA1)
	}, func(b *mail.Blob) error { return put(b) }, selectBlobsOf, p.ID)
	if err != nil {
		return err
	}
	if err := eachMessage(ctx, tx, p, put); err != nil {
		return err
	}
	err = all(ctx, tx, func(rows *sql.Rows) (*mail.Contact, error) {
		c := &mail.Contact{}
		return c, rows.Scan(c.Columns()...)
	}, func(c *mail.Contact) error { return put(c) }, selectContactsFrom, p.ID)
	if err != nil {
		return err
	}
	return paged(ctx, tx, p.ID, selectReservationsAfter, func(rows *sql.Rows) (*mail.Reservation, int64, error) {
		r := &mail.Reservation{}
		err := rows.Scan(r.Columns()...)
		return r, r.ID, err
	}, func(r *mail.Reservation) error { return put(r) })
}

func eachMessage(ctx context.Context, tx *store.Tx, p *mail.Project, put func(mail.Document) error) error {
	return paged(ctx, tx, p.ID, selectMessagesAfter, func(rows *sql.Rows) (*mail.Message, int64, error) {
		m := &mail.Message{To: []string{}, CC: []string{}, BCC: []string{}}
		var attachments sql.NullString
		err := rows.Scan(m.Columns(&attachments)...)
		m.SetAttachments(attachments)
		return m, m.ID, err
	}, func(m *mail.Message) error {
		if err := m.LoadRecipients(ctx, tx); err != nil {
			return err
		}
		if err := put(m); err != nil {
			return err
		}
		return all(ctx, tx, func(rows *sql.Rows) (*mail.Delivery, error) {
			d := &mail.Delivery{}
			var created mail.Time
			var ordinal int64
			err := rows.Scan(d.Columns(&created, &ordinal)...)
			d.ArchivePath = mail.StatePath(d.Agent, created, d.MessageID, ordinal)
			return d, err
		}, func(d *mail.Delivery) error { return put(d) }, selectDeliveriesOf, m.ID)
	})
}

// all reads the rows of a query, then calls put with each.
func all[T any](ctx context.Context, tx *store.Tx, scan func(*sql.Rows) (T, error), put func(T) error, query string, args ...any) error {
	var list []T
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		row, err := scan(rows)
		list = append(list, row)
		return err
	}, query, args...)
	for _, row := range list {
		if err == nil {
			err = put(row)
		}
	}
	return err
}

// paged reads rows of a project by id, one page at a time. It calls put for the rows of a page
// after reading the whole page.
func paged[T any](ctx context.Context, tx *store.Tx, project int64, query string, scan func(*sql.Rows) (T, int64, error), put func(T) error) error {
	for last := int64(0); ; {
		n := 0
		err := all(ctx, tx, func(rows *sql.Rows) (T, error) {
			row, id, err := scan(rows)
			n, last = n+1, id
			return row, err
		}, put, query, project, last, pageSize)
		if err != nil || n < pageSize {
			return err
		}
	}
}
