package service

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/reservations"
	"cairn/internal/store"
)

// Kinds of notices (mail §9).
const (
	noticeNew         = "new"
	noticeDue         = "ack_due"
	noticeOverdue     = "ack_overdue"
	noticeReservation = "reservation"
)

// NoticeArgs describe the event of a session on which notices may be shown.
type NoticeArgs struct {
	Session string // the session's id
	Event   string // the hook event; stored as shown_via
	Often   bool   // the event is frequent: between intervals, show only urgent notices
	Mute    bool   // show nothing, only record that the agents are active
}

// waiting is an agent of a session, with flags for the notices that may be due.
type waiting struct {
	id, projectID, session     int64
	name                       string
	active, told               mail.Time // last activity; last notice to the session
	unread, due                int
	unseen, overdue            bool // unread and never shown; an acknowledgement is due
	unanswered                 bool // others have not acknowledged a message that it sent
	forced, holds, unannounced bool
}

// selectWaiting checks in one statement whether an agent may have notices. Each part uses an
// index.
const selectWaiting = `SELECT a.id, a.project_id, b.session_key, a.name, a.last_active_ts,
ifnull((SELECT max(n.ts) FROM mail_notices n WHERE n.session_key = b.session_key), 0), a.unread, a.ack_due,
a.unread > 0 AND EXISTS (SELECT 1 FROM mail_recipients r WHERE r.agent_id = a.id AND r.shown_ts IS NULL AND r.read_ts IS NULL),
a.ack_due > 0 AND EXISTS (SELECT 1 FROM mail_recipients r WHERE r.agent_id = a.id AND r.ack_required = 1 AND r.ack_ts IS NULL AND r.created_ts <= ?2),
EXISTS (SELECT 1 FROM mail_messages m WHERE m.sender_id = a.id AND m.ack_required = 1 AND m.created_ts BETWEEN ?4 AND ?3
    AND EXISTS (SELECT 1 FROM mail_recipients r WHERE r.message_id = m.id AND r.ack_ts IS NULL)
    AND NOT EXISTS (SELECT 1 FROM mail_notices n WHERE n.subject_uid = m.uid AND n.agent_id = a.id AND n.notice = 'ack_overdue')),
EXISTS (SELECT 1 FROM mail_reservations r WHERE r.agent_id = a.id AND r.release_kind = 'force' AND r.released_ts >= ?4
    AND NOT EXISTS (SELECT 1 FROM mail_notices n WHERE n.subject_uid = r.uid AND n.agent_id = a.id AND n.notice = 'reservation')),
EXISTS (SELECT 1 FROM mail_reservations r WHERE r.project_id = a.project_id AND r.agent_id = a.id AND r.released_ts IS NULL),
b.source = 'edit' AND NOT EXISTS (SELECT 1 FROM mail_notices n WHERE n.subject_uid = 'agent/' || a.name AND n.agent_id = a.id AND n.notice = 'new')
FROM sessions s CROSS JOIN mail_sessions b ON b.session_key = s.key CROSS JOIN mail_agents a ON a.id = b.agent_id
WHERE s.id = ?1 AND b.ended_ts IS NULL AND a.retired_ts IS NULL ORDER BY b.bound_ts, a.id`

const (
	lookBack  = 30 * 24 * time.Hour // maximum age of events in an agent's own messages and reservations
	busyAgain = time.Minute         // resolution of the activity that hooks record
)

// Notices returns the notices for a session's agents on an event: new mail, due or late
// acknowledgements, and file conflicts (mail §9). Each notice is shown only once. It is recorded
// as shown, and its delivery stamped, in a transaction that commits before the text is returned.
// The text has at most Config.NoticeTokens tokens of four bytes. Notices that do not fit are shown
// later. Texts of other agents are flattened and truncated, and bodies are fenced. Notices also
// records that the agents are active.
//
// The text is "" if there is nothing to show. For a session without agents one small statement
// decides that. After a frequent event, for Config.NoticeInterval since the last text, only
// notices that are urgent or concern reservations are shown.
//
// Errors: those of reading and writing. After an error no notice counts as shown.
func (o *Mail) Notices(ctx context.Context, a NoticeArgs) (text string, err error) {
	if o.Store == nil {
		return "", nil
	}
	var idle, found bool
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		w, err := newBriefing(ctx, o.Kernel, tx, a)
		if err != nil {
			return err
		}
		idle, found = w.idle, len(w.all) > 0
		return nil
	})
	if err != nil || !idle && !found {
		return "", err
	}
	sync := store.Full
	if !found {
		sync = store.Normal // activity alone may be lost in a crash
	}
	err = o.Store.Write(ctx, sync, func(ctx context.Context, tx *store.Tx) error {
		w, err := newBriefing(ctx, o.Kernel, tx, a)
		if err != nil {
			return err
		}
		for _, agent := range w.agents {
			if err := mail.TouchAgent(ctx, tx, agent.id, w.now); err != nil {
				return err
			}
		}
		text, err = w.tell(ctx, tx, a)
		return err
	})
	if err != nil {
		return "", mail.Fault(err)
	}
	return text, nil
}

// briefing contains the notices for a session at one time.
type briefing struct {
	*mail.Kernel
	now     mail.Time
	session string // its id
	agents  []*waiting
	idle    bool      // the recorded activity of an agent is older than busyAgain
	all     []*notice // the most important first
}

func newBriefing(ctx context.Context, o *mail.Kernel, tx *store.Tx, a NoticeArgs) (*briefing, error) {
	w := &briefing{Kernel: o, now: mail.Now(tx), session: a.Session}
	var bound bool // checked first, because most sessions act as no agent
	if err := tx.Get(ctx, []any{&bound}, reservations.SelectBondOpen, a.Session); err != nil || !bound {
		return w, err
	}
	due, overdue := w.now-mail.Time(o.Config.AckTTL), w.now-mail.Time(o.Config.AckOverdue)
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		x := &waiting{}
		w.agents = append(w.agents, x)
		return rows.Scan(&x.id, &x.projectID, &x.session, &x.name, &x.active, &x.told, &x.unread, &x.due,
			&x.unseen, &x.overdue, &x.unanswered, &x.forced, &x.holds, &x.unannounced)
	}, selectWaiting, a.Session, due, overdue, w.now-mail.Time(lookBack))
	if err != nil {
		return nil, err
	}
	for _, x := range w.agents {
		w.idle = w.idle || w.now-x.active > mail.Time(busyAgain)
		if a.Mute {
			continue
		}
		if err := w.look(ctx, tx, x); err != nil {
			return nil, err
		}
	}
	if len(w.agents) > 0 && a.Often && w.now-w.agents[0].told < mail.Time(o.Config.NoticeInterval) {
		w.all = slices.DeleteFunc(w.all, func(n *notice) bool { return n.rank != rankUrgent })
	}
	slices.SortStableFunc(w.all, func(a, b *notice) int {
		if a.rank != b.rank {
			return int(a.rank - b.rank)
		}
		return int(min(max(a.at-b.at, -1), 1))
	})
	return w, nil
}

// rank orders notices by importance.
type rank int

const (
	rankUrgent rank = iota // also for reservations
	rankOverdue
	rankDue
	rankHigh
	rankRest
)

// notice is one notice for one agent.
type notice struct {
	agent   *waiting
	kinds   []string // the first one is shown
	subject string   // uid of the message or reservation; "agent/" and the name for a new agent
	rank    rank
	at      mail.Time

	message                  int64 // number, 0 for none
	from, importance, line   string
	ack, operator, delivered bool // delivered: to this agent
	unread                   bool
	body                     string
	late                     string // recipients without an acknowledgement
}

// look adds the notices for an agent.
func (w *briefing) look(ctx context.Context, tx *store.Tx, x *waiting) error {
	if x.unannounced {
		w.all = append(w.all, &notice{
			agent: x, kinds: []string{noticeNew}, subject: "agent/" + x.name, rank: rankDue, at: w.now,
			line: x.name + " is the agent of this session, registered for its edits",
		})
	}
	overdue, due := w.now-mail.Time(w.Config.AckOverdue), w.now-mail.Time(w.Config.AckTTL)
	for _, q := range [...]struct {
		wanted      bool
		kind, query string
		args        []any
	}{
		{x.overdue, noticeOverdue, selectLate, []any{mail.Time(0), overdue}},
		{x.overdue, noticeDue, selectLate, []any{overdue, due}},
		{x.unseen, noticeNew, selectUnseen, nil},
	} {
		if !q.wanted {
			continue
		}
		if err := w.messages(ctx, tx, x, q.kind, q.query, q.args...); err != nil {
			return err
		}
	}
	if x.unanswered {
		if err := w.unanswered(ctx, tx, x, overdue); err != nil {
			return err
		}
	}
	return w.reservations(ctx, tx, x)
}

const (
	maxNotices = 30 // per kind and query

	noticeColumns = `SELECT m.id, m.uid, s.name, m.importance, m.ack_required, m.subject, substr(m.body_md, 1, 400), m.created_ts, r.read_ts IS NULL
FROM mail_recipients r CROSS JOIN mail_messages m ON m.id = r.message_id CROSS JOIN mail_agents s ON s.id = m.sender_id
WHERE r.agent_id = ?1 `
	untold = `AND NOT EXISTS (SELECT 1 FROM mail_notices n WHERE n.subject_uid = m.uid AND n.agent_id = ?1 AND n.notice = ?2) `

	selectUnseen = noticeColumns + untold + `AND r.shown_ts IS NULL AND r.read_ts IS NULL
ORDER BY r.importance = 'urgent' DESC, r.importance = 'high' DESC, r.created_ts LIMIT +?3`
	selectLate = noticeColumns + untold + `AND r.ack_required = 1 AND r.ack_ts IS NULL AND r.created_ts > ?4 AND r.created_ts <= ?5
ORDER BY r.created_ts LIMIT +?3`
)

// messages adds notices of messages to an agent. A message with two kinds of notice is shown under
// the more important kind. It counts as shown under both.
func (w *briefing) messages(ctx context.Context, tx *store.Tx, x *waiting, kind, query string, args ...any) error {
	return tx.Each(ctx, func(rows *sql.Rows) error {
		n := &notice{agent: x, kinds: []string{kind}, delivered: true}
		var subject string
		if err := rows.Scan(&n.message, &n.subject, &n.from, &n.importance, &n.ack, &subject, &n.body, &n.at, &n.unread); err != nil {
			return err
		}
		for _, other := range w.all {
			if other.agent == x && other.subject == n.subject && other.delivered {
				other.kinds = append(other.kinds, kind)
				return nil
			}
		}
		n.operator, n.line = n.from == mail.Overseer, subject
		n.rank = rankOf(kind, n.importance)
		w.all = append(w.all, n)
		return nil
	}, query, append([]any{x.id, kind, maxNotices}, args...)...)
}

func rankOf(kind, importance string) rank {
	switch {
	case importance == "urgent":
		return rankUrgent
	case kind == noticeOverdue:
		return rankOverdue
	case kind == noticeDue:
		return rankDue
	case importance == "high":
		return rankHigh
	}
	return rankRest
}

const selectUnanswered = `SELECT m.id, m.uid, m.importance, m.subject, m.created_ts, (SELECT group_concat(a.name, ', ') FROM mail_recipients r
    JOIN mail_agents a ON a.id = r.agent_id WHERE r.message_id = m.id AND r.ack_ts IS NULL) AS late
FROM mail_messages m WHERE m.sender_id = ?1 AND m.ack_required = 1 AND m.created_ts BETWEEN ?4 AND ?5 AND late NOTNULL ` + untold + `
ORDER BY m.created_ts LIMIT +?3`

// unanswered adds notices of messages from an agent that others have not acknowledged in time.
func (w *briefing) unanswered(ctx context.Context, tx *store.Tx, x *waiting, overdue mail.Time) error {
	return tx.Each(ctx, func(rows *sql.Rows) error {
		n := &notice{agent: x, kinds: []string{noticeOverdue}, rank: rankOverdue}
		w.all = append(w.all, n)
		return rows.Scan(&n.message, &n.subject, &n.importance, &n.line, &n.at, &n.late)
	}, selectUnanswered, x.id, noticeOverdue, maxNotices, w.now-mail.Time(lookBack), overdue)
}

const (
	selectTold   = `SELECT EXISTS (SELECT 1 FROM mail_notices WHERE subject_uid = ? AND agent_id = ? AND notice = ?)`
	selectForced = mail.ReservationColumns + `WHERE r.agent_id = ? AND r.release_kind = 'force' AND r.released_ts >= ? ORDER BY r.released_ts DESC LIMIT +?`
)

// reservations adds notices of an agent's reservations that were released by force. It also adds
// reservations of other agents that conflict with its own: advisory ones, and those granted on
// another device.
func (w *briefing) reservations(ctx context.Context, tx *store.Tx, x *waiting) error {
	if !x.forced && !x.holds {
		return nil
	}
	p, err := mail.QueryProject(ctx, tx, mail.SelectProjectByID, x.projectID)
	if err != nil || p == nil {
		return err
	}
	s := &mail.CallTx{Kernel: w.Kernel, Tx: tx, Project: p, Now: w.now, Me: &mail.Agent{ID: x.id, Name: x.name}, Caller: mail.Caller{Session: w.session}}
	if err := reservations.AdvanceClock(ctx, s); err != nil {
		return err
	}
	forced, err := listed(ctx, s, selectForced, x.id, w.now-mail.Time(lookBack), maxNotices)
	if err != nil {
		return err
	}
	for _, r := range forced {
		if err := w.concerns(ctx, tx, x, r.UID, r.Released, "reservation #"+mail.Decimal(r.ID)+" "+r.PathPattern+" was released by force"); err != nil {
			return err
		}
	}
	own, err := reservations.Own(ctx, s, reservations.SelectOwnActive, s.Now)
	if err != nil {
		return err
	}
	for _, r := range own {
		if r.Advisory {
			continue // the call that granted it reported the conflict
		}
		mine := []reservations.RequestedPath{{Given: r.PathPattern, Pattern: reservations.StoredPattern(r.PathPattern, p.FoldsCase)}}
		near, err := reservations.OverlapCandidates(ctx, s, mine)
		if err != nil {
			return err
		}
		holders, _, err := reservations.Conflicts(ctx, s, near, mine[0].Pattern, r.Exclusive)
		if err != nil {
			return err
		}
		for _, h := range holders {
			line := "reservation #" + mail.Decimal(h.ID) + " of " + h.Agent + " on " + h.PathPattern + " meets your " + r.PathPattern
			if err := w.concerns(ctx, tx, x, h.UID, h.Created, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// listed returns the reservations that a query selects.
func listed(ctx context.Context, s *mail.CallTx, query string, args ...any) (out []*mail.Reservation, err error) {
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		r := &mail.Reservation{}
		out = append(out, r)
		return rows.Scan(r.Columns()...)
	}, query, args...)
	return out, err
}

// concerns adds a notice about a reservation, unless it was already shown or added.
func (w *briefing) concerns(ctx context.Context, tx *store.Tx, x *waiting, uid string, at mail.Time, line string) error {
	var told bool
	err := tx.Get(ctx, []any{&told}, selectTold, uid, x.id, noticeReservation)
	if err != nil || told || slices.ContainsFunc(w.all, func(n *notice) bool { return n.agent == x && n.subject == uid }) {
		return err
	}
	w.all = append(w.all, &notice{agent: x, kinds: []string{noticeReservation}, subject: uid, rank: rankUrgent, at: at, line: line})
	return nil
}
