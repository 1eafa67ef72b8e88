package messages

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"

	"cairn/internal/mail"
)

const (
	// One page of the messages that an agent had received, after a given message.
	selectGot = `SELECT r.message_id, m.uid, r.read_ts IS NOT NULL, r.created_ts FROM mail_recipients r CROSS JOIN mail_messages m ON m.id = r.message_id
WHERE r.agent_id = ?1 AND r.created_ts > ?2 AND r.created_ts <= ?3 AND (r.created_ts, r.message_id) < (?4, ?5) AND m.seq <= ?6
  AND (NOT ?7 OR r.importance IN ('high', 'urgent')) AND (?8 IS NULL OR m.topic = ?8) AND (NOT ?9 OR r.read_ts IS NULL OR r.read_ts >= ?10)
ORDER BY r.created_ts DESC, r.message_id DESC LIMIT +?11`
	selectSome = receivedBy + `AND r.message_id IN (SELECT value FROM json_each(?5)) ` + newestItems
)

// InboxAt is FetchInbox as of a.At. Messages that were purged since then have no text.
//
// Errors: those of FetchInbox.
func (o *Messages) InboxAt(ctx context.Context, c mail.Caller, a InboxArgs) (out mail.Past[[]Item], err error) {
	err = o.ReadIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, err := s.ReadAs(ctx, a.AgentName)
		if err != nil {
			return err
		}
		out.Result, err = ReadInbox(ctx, s, me, a)
		out.At = s.At
		return err
	})
	return out, err
}

// itemsAt returns the messages that an agent had received by a moment. A message does not
// change after it was sent, so its row equals its document. The log contains whether it was
// read.
func itemsAt(ctx context.Context, s *mail.CallTx, me *mail.Agent, a InboxArgs) ([]item, error) {
	n, since, topic, err := a.Window()
	if err != nil {
		return nil, err
	}
	if err := s.Moment(ctx, a.At); err != nil {
		return nil, err
	}
	slack, err := s.Slack(ctx)
	if err != nil {
		return nil, err
	}
	found := []int64{}
	last := receivedMessage{created: math.MaxInt64, id: math.MaxInt64}
	for size := max(n, 200); len(found) < n; {
		page, err := receivedMessages(ctx, s, me.ID, since, s.Now+slack, last.created, last.id, s.At.Tick, a.UrgentOnly, topic, a.UnreadOnly, s.Now-slack, size)
		if err != nil {
			return nil, err
		}
		if a.UnreadOnly {
			if err := markRead(ctx, s, me, page); err != nil {
				return nil, err
			}
		}
		for _, g := range page {
			if !a.UnreadOnly || !g.read {
				found = append(found, g.id)
			}
		}
		if len(page) < size {
			break
		}
		last = *page[size-1]
	}
	list, err := json.Marshal(found[:min(n, len(found))])
	if err != nil {
		return nil, err
	}
	items, err := ItemsOf(ctx, s, selectSome, me.ID, since, a.IncludeBodies, n, string(list))
	purged := 0
	for _, i := range items {
		if i.purged {
			purged++
		}
	}
	if purged > 0 {
		s.At.Note = fmt.Sprintf("purged since, and without a text here: %d of the messages", purged)
	}
	return items, err
}

// receivedMessage is a message that an agent has received.
type receivedMessage struct {
	id      int64
	uid     string
	read    bool
	created mail.Time
}

func receivedMessages(ctx context.Context, s *mail.CallTx, args ...any) (out []*receivedMessage, err error) {
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		g := &receivedMessage{}
		out = append(out, g)
		return rows.Scan(&g.id, &g.uid, &g.read, &g.created)
	}, selectGot, args...)
	return out, err
}

// markRead sets read for the messages that an agent had read by the moment of the call. Only
// messages that are read by now come into question; the log decides.
func markRead(ctx context.Context, s *mail.CallTx, me *mail.Agent, all []*receivedMessage) error {
	read := map[string]*receivedMessage{}
	var keys []string
	for _, g := range all {
		if g.read {
			g.read = false
			read[g.uid] = g
			keys = append(keys, (&mail.Delivery{UID: g.uid, Agent: me.Name}).Key())
		}
	}
	return s.Tx.DocumentsAt(ctx, s.At, mail.Stream(s.Project.UID), mail.KindDelivery, keys, func(doc json.RawMessage) error {
		d := mail.Delivery{}
		err := json.Unmarshal(doc, &d)
		if g := read[d.UID]; g != nil {
			g.read = d.Read != 0
		}
		return err
	})
}
