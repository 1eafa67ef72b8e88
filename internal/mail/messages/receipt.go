package messages

import (
	"context"
	"database/sql"

	"cairn/internal/mail"
)

// Receipt is the result of get_delivery_receipt.
type Receipt struct {
	MessageID  int64           `json:"message_id"`
	Recipients []ReceiptOf     `json:"recipients"` // in the sender's order
	Counts     ReceiptsByState `json:"counts"`
}

// ReceiptOf is the state of a message at one recipient.
type ReceiptOf struct {
	Agent    string    `json:"agent"`
	Kind     string    `json:"kind"`   // to, cc or bcc
	Status   string    `json:"status"` // the last state reached: queued, shown, read or acknowledged
	Queued   mail.Time `json:"queued_ts"`
	Shown    mail.Time `json:"shown_ts"`
	ShownVia *string   `json:"shown_via"` // the hook's event
	Read     mail.Time `json:"read_ts"`
	Ack      mail.Time `json:"ack_ts"`
}

// ReceiptsByState counts recipients by their status.
type ReceiptsByState struct {
	Queued       int `json:"queued"`
	Shown        int `json:"shown"`
	Read         int `json:"read"`
	Acknowledged int `json:"acknowledged"`
}

const selectReceipts = `SELECT a.name, r.kind, r.created_ts, ifnull(r.shown_ts, 0), r.shown_via, ifnull(r.read_ts, 0), ifnull(r.ack_ts, 0)
FROM mail_recipients r CROSS JOIN mail_agents a ON a.id = r.agent_id WHERE r.message_id = ? ORDER BY r.position`

// GetDeliveryReceipt returns the state of a message at each recipient, only to its sender. For
// a message to another project, the sender calls it in its own project.
//
// Errors: those of reading the agent's mail, NOT_FOUND for the message, CAPABILITY_DENIED for
// a message of another agent.
func (o *Messages) GetDeliveryReceipt(ctx context.Context, c mail.Caller, projectKey, agentName string, messageID int64) (out Receipt, err error) {
	err = o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, err := s.ReadAs(ctx, agentName)
		if err != nil {
			return err
		}
		if err := isSender(ctx, s, me, messageID); err != nil {
			return err
		}
		out = Receipt{MessageID: messageID, Recipients: []ReceiptOf{}}
		return s.Tx.Each(ctx, func(rows *sql.Rows) error {
			var r ReceiptOf
			err := rows.Scan(&r.Agent, &r.Kind, &r.Queued, &r.Shown, &r.ShownVia, &r.Read, &r.Ack)
			r.Status = out.Counts.add(r)
			out.Recipients = append(out.Recipients, r)
			return err
		}, selectReceipts, messageID)
	})
	return out, err
}

// isSender returns an error if an agent did not send a message.
func isSender(ctx context.Context, s *mail.CallTx, me *mail.Agent, messageID int64) error {
	m, err := mail.QueryMessage(ctx, s.Tx, mail.SelectMessageByID, messageID)
	switch {
	case err != nil:
		return err
	case m == nil:
		return noMessage(s, messageID)
	case m.SenderID == me.ID:
		return nil
	case m.ProjectID == s.Project.ID:
		return mail.Errorf(mail.CodeDenied, "only the sender of message %d sees what has become of it", messageID).With("message_id", messageID).
			Hint("ask for the receipt of a message that you sent")
	}
	from, err := mail.QueryAgent(ctx, s.Tx, mail.SelectAgentByID, m.SenderID)
	if err == nil && (from == nil || from.Home == nil || *from.Home != me.ProjectUID+"/"+me.Name) {
		err = noMessage(s, messageID)
	}
	return err
}

// add counts a recipient and returns its status.
func (c *ReceiptsByState) add(r ReceiptOf) string {
	switch {
	case r.Ack != 0:
		c.Acknowledged++
		return "acknowledged"
	case r.Read != 0:
		c.Read++
		return "read"
	case r.Shown != 0:
		c.Shown++
		return "shown"
	}
	c.Queued++
	return "queued"
}
