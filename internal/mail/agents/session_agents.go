package agents

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/mail"
	"cairn/internal/store"
)

const selectSessionAgents = `SELECT s.id, a.name FROM json_each(?) j JOIN sessions s ON s.id = j.value
JOIN mail_sessions m ON m.session_key = s.key JOIN mail_agents a ON a.id = m.agent_id
ORDER BY s.id, m.bound_ts, a.name`

// AgentsOfSessions returns the names of the agents that sessions act or acted as, by session
// id, in the order of their bindings. Sessions without an agent are omitted. The result is nil
// if there is no store.
//
// Errors: those of reading.
func (o *Agents) AgentsOfSessions(ctx context.Context, sessions []string) (names map[string][]string, err error) {
	if o.Store == nil || len(sessions) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(sessions)
	if err != nil {
		return nil, err
	}
	names = map[string][]string{}
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var session, name string
			err := r.Scan(&session, &name)
			names[session] = append(names[session], name)
			return err
		}, selectSessionAgents, string(list))
	})
	return names, err
}

const selectSessionsOfAgent = `SELECT s.id FROM mail_agents a JOIN mail_sessions m ON m.agent_id = a.id
JOIN sessions s ON s.key = m.session_key WHERE a.name = ? ORDER BY m.bound_ts DESC, s.id LIMIT 500`

// SessionsOfAgent returns the ids of the sessions that act or acted as an agent of that name,
// in any project. It returns the newest 500, and an empty list for an unknown name; never nil.
//
// Errors: those of reading.
func (o *Agents) SessionsOfAgent(ctx context.Context, name string) (ids []string, err error) {
	ids = []string{}
	if o.Store == nil {
		return ids, nil
	}
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var id string
			err := r.Scan(&id)
			ids = append(ids, id)
			return err
		}, selectSessionsOfAgent, name)
	})
	return ids, err
}

// selectSessionMail selects the messages that a session's agents sent and received while the
// session acted as them. It omits messages that they received as blind copies.
const selectSessionMail = `WITH acting (agent, since, until) AS MATERIALIZED (
    SELECT b.agent_id, b.bound_ts, ifnull(b.ended_ts, 9223372036854775807) FROM sessions s CROSS JOIN mail_sessions b ON b.session_key = s.key WHERE s.id = ?1),
found (id, sent) AS (
    SELECT m.id, 1 FROM acting a CROSS JOIN mail_messages m ON m.sender_id = a.agent AND m.created_ts BETWEEN a.since AND a.until
    UNION ALL
    SELECT r.message_id, 0 FROM acting a CROSS JOIN mail_recipients r ON r.agent_id = a.agent AND r.created_ts BETWEEN a.since AND a.until AND r.kind <> 'bcc')
SELECT m.id, max(f.sent), s.name, m.subject, m.ack_required, m.created_ts, p.slug,
    (SELECT count(*) = count(r.ack_ts) FROM mail_recipients r WHERE r.message_id = m.id)
FROM found f CROSS JOIN mail_messages m ON m.id = f.id CROSS JOIN mail_agents s ON s.id = m.sender_id CROSS JOIN mail_projects p ON p.id = m.project_id
GROUP BY m.id ORDER BY m.created_ts DESC, m.id DESC LIMIT +?2`

// SessionMessage is a message that an agent of a session sent or received.
type SessionMessage struct {
	ID           int64     `json:"id"`
	Slug         string    `json:"project"` // of the mail's project
	Sent         bool      `json:"sent"`    // by the session; else it received the message
	From         string    `json:"from"`
	Subject      string    `json:"subject"`
	AckRequired  bool      `json:"ack_required"`
	Acknowledged bool      `json:"acknowledged"` // by all recipients
	Created      mail.Time `json:"created_ts"`
}

// MailOfSession returns the messages that a session's agents sent and received while the
// session acted as them. It returns at most n, newest first. The list is empty for an unknown
// session and without a store.
//
// Errors: those of reading.
func (o *Agents) MailOfSession(ctx context.Context, session string, n int) ([]SessionMessage, error) {
	list := []SessionMessage{}
	if o.Store == nil {
		return list, nil
	}
	err := o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var m SessionMessage
			err := r.Scan(&m.ID, &m.Sent, &m.From, &m.Subject, &m.AckRequired, &m.Created, &m.Slug, &m.Acknowledged)
			list = append(list, m)
			return err
		}, selectSessionMail, session, n)
	})
	return list, err
}
