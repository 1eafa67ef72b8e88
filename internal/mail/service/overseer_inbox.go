package service

import (
	"context"
	"database/sql"

	"cairn/internal/mail"
	"cairn/internal/store"
)

// OverseerMessage is a message to HumanOverseer that is unread or requires acknowledgement.
type OverseerMessage struct {
	ID          int64     `json:"id"`
	Slug        string    `json:"slug"`    // of the mail project
	Project     string    `json:"project"` // the project id that all parts of cairn share
	From        string    `json:"from"`
	Subject     string    `json:"subject"`
	AckRequired bool      `json:"ack_required"`
	Created     mail.Time `json:"created_ts"`
}

const selectForOverseer = `SELECT m.id, p.slug, q.id, s.name, m.subject, r.ack_required, r.created_ts
FROM mail_projects p JOIN projects q ON q.key = p.project_key CROSS JOIN mail_agents a ON a.project_id = p.id AND a.name = ?1
CROSS JOIN mail_recipients r ON r.agent_id = a.id
JOIN mail_messages m ON m.id = r.message_id JOIN mail_agents s ON s.id = m.sender_id
WHERE (?2 = '' OR q.id = ?2) AND (r.read_ts IS NULL OR r.ack_required = 1 AND r.ack_ts IS NULL)
ORDER BY r.ack_required DESC, r.created_ts DESC LIMIT 100`

// WaitingForOverseer lists the messages to HumanOverseer that are unread or require
// acknowledgement. An empty projectID selects all projects. Messages that require acknowledgement
// come first, then the newest, at most 100 in all. The result is nil if there are none.
//
// Errors: those of reading.
func (o *Mail) WaitingForOverseer(ctx context.Context, projectID string) (list []OverseerMessage, err error) {
	if o.Store == nil {
		return nil, nil
	}
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var m OverseerMessage
			err := r.Scan(&m.ID, &m.Slug, &m.Project, &m.From, &m.Subject, &m.AckRequired, &m.Created)
			list = append(list, m)
			return err
		}, selectForOverseer, mail.Overseer, projectID)
	})
	return list, err
}
