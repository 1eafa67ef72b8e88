package service

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strings"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
)

// The views of a project for the human overseer. Only the sender and the recipient see a blind
// copy, so these views omit them (mail G8).

// MessageSummary is a message in a list, without its text.
type MessageSummary struct {
	ID          int64     `json:"id"`
	From        string    `json:"from"`
	To          string    `json:"to"` // names in to and cc, separated by ", "; "" if there are only blind copies
	Subject     string    `json:"subject"`
	ThreadID    *string   `json:"thread_id"`
	Importance  string    `json:"importance"`
	AckRequired bool      `json:"ack_required"`
	Created     mail.Time `json:"created_ts"`
	Attachments int       `json:"attachments"`
}

// AgentSummary is an agent that is not retired.
type AgentSummary struct {
	agents.AgentInfo
	Unread   int  `json:"unread"`
	Writable bool `json:"writable"` // the overseer may write to it: it is neither HumanOverseer nor a mirror
}

// ProjectOverview contains the agents and messages of a project.
type ProjectOverview struct {
	Project  ProjectShort     `json:"project"`
	Agents   []AgentSummary   `json:"agents"`          // by name
	Messages []MessageSummary `json:"messages"`        // the newest first
	Older    int64            `json:"older,omitempty"` // value of before for the next page, 0 if there are no older messages
}

const (
	postedColumns = `SELECT m.id, s.name, ifnull((SELECT group_concat(name, ', ') FROM (SELECT a.name FROM mail_recipients r JOIN mail_agents a ON a.id = r.agent_id
WHERE r.message_id = m.id AND r.kind <> 'bcc' ORDER BY r.kind = 'cc', r.position)), ''), m.subject, m.thread_id, m.importance, m.ack_required, m.created_ts,
ifnull(json_array_length(m.attachments), 0) FROM mail_messages m CROSS JOIN mail_agents s ON s.id = m.sender_id `
	selectPosted = postedColumns + `WHERE m.project_id = ?1 AND m.created_ts <= ?2 AND (m.created_ts < ?2 OR m.id < ?3) ORDER BY m.created_ts DESC, m.id DESC LIMIT +?4`
	selectTime   = `SELECT created_ts FROM mail_messages WHERE id = ? AND project_id = ?`
)

// ProjectOverview returns the agents of a project and its newest n messages, or the n before a
// given message. n is limited to 1 to 1,000. An unknown before gives no messages.
//
// Errors: NOT_FOUND for the project.
func (o *Mail) ProjectOverview(ctx context.Context, c mail.Caller, projectKey string, before int64, n int) (out ProjectOverview, err error) {
	n = min(max(n, 1), mail.MaxLimit)
	err = o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		out = ProjectOverview{Project: short(s.Project)}
		err := currentAgents(ctx, s, func(a *mail.Agent) {
			out.Agents = append(out.Agents, AgentSummary{agents.Info(a), a.Unread, a.Home == nil && a.Name != mail.Overseer})
		})
		if err != nil {
			return err
		}
		end := mail.Time(math.MaxInt64)
		if before > 0 {
			if found, err := mail.QueryOne(ctx, s.Tx, []any{&end}, selectTime, before, s.Project.ID); err != nil || !found {
				return err
			}
		}
		err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
			var m MessageSummary
			err := rows.Scan(&m.ID, &m.From, &m.To, &m.Subject, &m.ThreadID, &m.Importance, &m.AckRequired, &m.Created, &m.Attachments)
			out.Messages = append(out.Messages, m)
			return err
		}, selectPosted, s.Project.ID, end, before, n+1)
		if len(out.Messages) > n {
			out.Messages = out.Messages[:n]
			out.Older = out.Messages[n-1].ID
		}
		return err
	})
	return out, err
}

// MessageDetail is a complete message, without the recipients of blind copies.
type MessageDetail struct {
	Project ProjectShort
	MessageSummary
	Cc      string // names, as in To; To contains only those in to
	Topic   *string
	ReplyTo *int64
	Body    string
	Files   []mail.Attachment // Bytes is set for files in this store; images in the body have only a media type
}

// MessageDetail returns a message.
//
// Errors: NOT_FOUND.
func (o *Mail) MessageDetail(ctx context.Context, c mail.Caller, projectKey string, id int64) (out MessageDetail, err error) {
	err = o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		m, err := messages.FindMessage(ctx, s, id)
		if err != nil {
			return err
		}
		out = MessageDetail{
			Project: short(s.Project), Cc: strings.Join(m.CC, ", "), Topic: m.Topic, ReplyTo: m.ReplyTo, Body: m.Body,
			MessageSummary: MessageSummary{m.ID, m.From, strings.Join(m.To, ", "), m.Subject, m.ThreadID, m.Importance, m.AckRequired, m.Created, 0},
		}
		if err := json.Unmarshal(m.AttachmentsJSON(), &out.Files); err != nil {
			return fmt.Errorf("attachments of message %d: %w", id, err)
		}
		out.Attachments = len(out.Files)
		return nil
	})
	return out, err
}

// AttachmentContent is the content of an attachment.
type AttachmentContent struct {
	Name      string // without a folder
	MediaType string
	Data      []byte
}

// AttachmentContent returns the nth attachment of a message, counted from 0.
//
// Errors: NOT_FOUND, also for an image inside the body and for a file whose bytes are not in this
// store.
func (o *Mail) AttachmentContent(ctx context.Context, c mail.Caller, projectKey string, id int64, n int) (out AttachmentContent, err error) {
	err = o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		m, err := messages.FindMessage(ctx, s, id)
		if err != nil {
			return err
		}
		var all []mail.Attachment
		if err := json.Unmarshal(m.AttachmentsJSON(), &all); err != nil {
			return fmt.Errorf("attachments of message %d: %w", id, err)
		}
		missing := mail.NotFound("attachment", n).With("message_id", id).Hint("the message tells what is attached to it")
		if n < 0 || n >= len(all) {
			return missing
		}
		a := all[n]
		out = AttachmentContent{path.Base(strings.ReplaceAll(a.OriginalPath, `\`, "/")), a.MediaType, nil}
		if a.Data != "" {
			out.Data, err = base64.StdEncoding.DecodeString(a.Data)
			return err
		}
		var media string
		var size int64
		found, err := mail.QueryOne(ctx, s.Tx, []any{&media, &size, &out.Data}, mail.SelectData, a.SHA1)
		if err == nil && !found {
			err = missing
		}
		return err
	})
	return out, err
}
