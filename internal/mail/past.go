package mail

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/words"
)

// Past is an answer about a moment of the past: what the same question would have
// answered then, as far as the change log tells it. It writes nothing.
type Past[T any] struct {
	At     store.Moment `json:"at"`
	Result T            `json:"result"`
}

// rowSlack is how far the times in rows may lie before those of the changes that made
// them: a call begins, and its transaction ends. Where a clock was set back they may lie
// further off, by store.Skew. Rows narrow down which documents are read; the documents
// decide.
const rowSlack = Time(time.Minute)

// slack is how far times in rows may lie on the wrong side of the scope's moment.
func (s *callTx) slack(ctx context.Context) (Time, error) {
	skew, err := s.tx.Skew(ctx, s.at, Stream(s.p.UID))
	return rowSlack + Time(skew), err
}

// moment finds the moment that a caller named, and makes its time the call's.
//
// Errors: INVALID_TIMESTAMP for a text that names none, and for the future.
func (s *callTx) moment(ctx context.Context, text string) error {
	w, err := words.ParseMoment(text, s.tx.Now())
	if err == nil {
		s.at, err = s.tx.MomentOf(ctx, Stream(s.p.UID), w.Time, w.Tick)
	}
	if fault.HasCode(err, words.CodeMoment) || fault.HasCode(err, store.CodeFuture) {
		f := fault.As(err)
		return problemf(CodeTimestamp, "at: %s", printable(f.Message)).with("field", "at").with("provided", clip(text, 64)).hint(f.Hint)
	}
	if s.now = 0; !s.at.Time.IsZero() {
		s.now = timeOf(s.at.Time)
	}
	return err
}

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

// The reservations of a project that may have been active at a time, or with ?4 that
// were made by then.
const selectReserved = `SELECT r.uid FROM mail_reservations r WHERE r.project_id = ?1 AND r.created_ts <= ?2 + ?3
  AND (?4 OR r.expires_ts > ?2 AND (r.released_ts IS NULL OR r.released_ts >= ?2 - ?3)) ORDER BY r.id`

// notKnown stands for the signs of a reservation of the past.
const notKnown = "not_known_of_the_past"

// FileReservationsAt is FileReservations as of a moment, at which the reservations had
// not expired. Whether they were stale then is not known: the signs say so.
//
// Errors: those of FileReservations, INVALID_TIMESTAMP.
func (o *Service) FileReservationsAt(ctx context.Context, c Caller, projectKey string, ended bool, at string) (out Past[[]ListedReservation], err error) {
	out.Result = []ListedReservation{}
	err = o.readIn(ctx, c, projectKey, func(ctx context.Context, s *callTx) error {
		if err := s.moment(ctx, at); err != nil {
			return err
		}
		out.At = s.at
		return s.reservedAt(ctx, ended, func(r *Reservation) { out.Result = append(out.Result, r.listedThen()) })
	})
	return out, err
}

// reservedAt calls each with the reservations that were active at the scope's moment, or
// with ended with all that had been made, by number.
func (s *callTx) reservedAt(ctx context.Context, ended bool, each func(r *Reservation)) error {
	slack, err := s.slack(ctx)
	if err != nil {
		return err
	}
	uids, err := s.tx.Texts(ctx, selectReserved, s.p.ID, s.now, slack, ended)
	if err != nil {
		return err
	}
	return s.tx.DocumentsAt(ctx, s.at, Stream(s.p.UID), KindReservation, uids, func(doc json.RawMessage) error {
		r := &Reservation{}
		err := json.Unmarshal(doc, r)
		if err == nil && (ended || r.Released == 0 && r.Expires > s.now) {
			each(r)
		}
		return err
	})
}

func (r *Reservation) listedThen() ListedReservation {
	l := r.listed()
	l.HolderActivity.Reasons = []string{}
	if r.Released == 0 {
		l.HolderActivity.Reasons = append(l.HolderActivity.Reasons, notKnown)
	}
	return l
}
