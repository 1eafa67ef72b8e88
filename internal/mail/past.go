package mail

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
)

const (
	// A page of the messages that an agent had got, behind one of them.
	selectGot = `SELECT r.message_id, m.uid, r.read_ts IS NOT NULL, r.created_ts FROM mail_recipients r CROSS JOIN mail_messages m ON m.id = r.message_id
WHERE r.agent_id = ?1 AND r.created_ts > ?2 AND r.created_ts <= ?3 AND (r.created_ts, r.message_id) < (?4, ?5) AND m.seq <= ?6
  AND (NOT ?7 OR r.importance IN ('high', 'urgent')) AND (?8 IS NULL OR m.topic = ?8) AND (NOT ?9 OR r.read_ts IS NULL OR r.read_ts >= ?10)
ORDER BY r.created_ts DESC, r.message_id DESC LIMIT +?11`
	selectSome = receivedBy + `AND r.message_id IN (SELECT value FROM json_each(?5)) ` + newestItems
)

// InboxAt is FetchInbox as of a.At. Messages that were purged since have no text.
//
// Errors: those of FetchInbox.
func (o *Service) InboxAt(ctx context.Context, c Caller, a InboxArgs) (out Past[[]Item], err error) {
	err = o.readIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *callTx) error {
		me, err := s.reader(ctx, a.AgentName)
		if err != nil {
			return err
		}
		out.Result, err = s.inbox(ctx, me, a)
		out.At = s.at
		return err
	})
	return out, err
}

// itemsAt lists what an agent had got by a moment. A message does not change after it
// was sent, so that its row is its document; whether it was read the log tells.
func (s *callTx) itemsAt(ctx context.Context, me *Agent, a InboxArgs) ([]item, error) {
	n, since, topic, err := a.window()
	if err != nil {
		return nil, err
	}
	if err := s.moment(ctx, a.At); err != nil {
		return nil, err
	}
	slack, err := s.slack(ctx)
	if err != nil {
		return nil, err
	}
	found := []int64{}
	last := got{created: math.MaxInt64, id: math.MaxInt64}
	for size := max(n, 200); len(found) < n; {
		page, err := s.got(ctx, me.ID, since, s.now+slack, last.created, last.id, s.at.Tick, a.UrgentOnly, topic, a.UnreadOnly, s.now-slack, size)
		if err != nil {
			return nil, err
		}
		if a.UnreadOnly {
			if err := s.markRead(ctx, me, page); err != nil {
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
	items, err := s.itemsOf(ctx, selectSome, me.ID, since, a.IncludeBodies, n, string(list))
	purged := 0
	for _, i := range items {
		if i.purged {
			purged++
		}
	}
	if purged > 0 {
		s.at.Note = fmt.Sprintf("purged since, and without a text here: %d of the messages", purged)
	}
	return items, err
}

// got is a message that an agent has got.
type got struct {
	id      int64
	uid     string
	read    bool
	created Time
}

func (s *callTx) got(ctx context.Context, args ...any) (out []*got, err error) {
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		g := &got{}
		out = append(out, g)
		return rows.Scan(&g.id, &g.uid, &g.read, &g.created)
	}, selectGot, args...)
	return out, err
}

// markRead sets which of some messages an agent had read by the scope's moment: of those
// that it has read by now, those of which the log says so.
func (s *callTx) markRead(ctx context.Context, me *Agent, all []*got) error {
	read := map[string]*got{}
	var keys []string
	for _, g := range all {
		if g.read {
			g.read = false
			read[g.uid] = g
			keys = append(keys, (&Delivery{UID: g.uid, Agent: me.Name}).Key())
		}
	}
	return s.tx.DocumentsAt(ctx, s.at, Stream(s.p.UID), KindDelivery, keys, func(doc json.RawMessage) error {
		d := Delivery{}
		err := json.Unmarshal(doc, &d)
		if g := read[d.UID]; g != nil {
			g.read = d.Read != 0
		}
		return err
	})
}
