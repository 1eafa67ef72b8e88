package reservations

import (
	"context"
	"database/sql"

	"cairn/internal/mail"
	"cairn/internal/project"
	"cairn/internal/store"
)

// yields reports whether a reservation of another agent does not block the caller. Its agent
// belongs to the lineage of the caller's session, or no session has taken the agent over within
// Config.OrphanGrace.
func yields(ctx context.Context, s *mail.CallTx, h *activeReservation) (bool, error) {
	if s.Session.Key == 0 && !s.Writes {
		var err error
		if s.Session, _, _, err = s.KnownSession(ctx); err != nil {
			return false, err
		}
	}
	t, known := s.AgentUse[h.AgentID]
	if !known {
		var err error
		if t, err = mail.SessionsOfAgent(ctx, s.Tx, h.AgentID); err != nil {
			return false, err
		}
		if s.AgentUse == nil {
			s.AgentUse = map[int64]mail.AgentSessions{}
		}
		s.AgentUse[h.AgentID] = t
		if s.Writes && !t.IsLive(0) { // the grace period begins when the session's end is recorded
			for _, key := range t.Unclosed() {
				if err := project.Close(ctx, s.Tx, key); err != nil {
					return false, err
				}
			}
		}
	}
	return t.IsFormer(&s.Session) || h.sessionKey != 0 && s.IsOrphaned(&t, h.lastActive, s.Now), nil
}

const (
	selectReserving = `SELECT a.id, a.last_active_ts FROM mail_agents a WHERE EXISTS (SELECT 1 FROM mail_reservations r
WHERE r.project_id = a.project_id AND r.agent_id = a.id AND r.released_ts IS NULL AND r.expires_ts > ? AND r.session_key IS NOT NULL)`
	selectAbandoned = mail.ReservationColumns + `WHERE r.project_id = (SELECT project_id FROM mail_agents WHERE id = ?1) AND r.agent_id = ?1
AND r.released_ts IS NULL AND r.expires_ts > ?2 AND r.session_key IS NOT NULL ORDER BY r.id`
)

// abandoned is the work of one ReleaseOrphans call.
type abandoned struct {
	killed []int64 // sessions whose end is not recorded
	due    []orphan
}

// orphan is an agent whose reservations must be released, and its last session.
type orphan struct {
	agent   int64
	session string
}

func findAbandoned(ctx context.Context, o *mail.Kernel, tx *store.Tx, at mail.Time) (out abandoned, err error) {
	type holder struct {
		id     int64
		active mail.Time
	}
	var all []holder
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var h holder
		err := rows.Scan(&h.id, &h.active)
		all = append(all, h)
		return err
	}, selectReserving, at)
	for _, h := range all {
		if err != nil {
			break
		}
		var t mail.AgentSessions
		if t, err = mail.SessionsOfAgent(ctx, tx, h.id); err != nil {
			break
		}
		if keys := t.Unclosed(); !t.IsLive(0) && len(keys) > 0 {
			out.killed = append(out.killed, keys...)
		} else if o.IsOrphaned(&t, h.active, at) {
			out.due = append(out.due, orphan{h.id, t.Newest.ID})
		}
	}
	return out, err
}

// ReleaseOrphans releases the reservations of agents whose sessions have ended, if no other
// session took over the agents within Config.OrphanGrace. The grace period of a killed session
// begins when ReleaseOrphans first notices it. Reservations that were created outside a session
// are kept. It returns the number of released reservations. It is safe to retry.
//
// Errors: those of reading and writing.
func (o *Reservations) ReleaseOrphans(ctx context.Context) (released int, err error) {
	if o.Store == nil {
		return 0, nil
	}
	due := false
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, err := findAbandoned(ctx, o.Kernel, tx, mail.Now(tx))
		due = len(found.killed)+len(found.due) > 0
		return err
	})
	if err != nil || !due {
		return 0, err
	}
	err = o.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		s := &mail.CallTx{Kernel: o.Kernel, Tx: tx, Now: mail.Now(tx), Writes: true}
		if err := AdvanceClock(ctx, s); err != nil {
			return err
		}
		found, err := findAbandoned(ctx, o.Kernel, tx, s.Now)
		if err != nil {
			return err
		}
		for _, key := range found.killed {
			if err := project.Close(ctx, tx, key); err != nil {
				return err
			}
		}
		for _, due := range found.due {
			s.By = mail.Actor{Session: due.session}
			n, err := releaseFound(ctx, s, ReleasedSession, selectAbandoned, due.agent, s.Now)
			if err != nil {
				return err
			}
			released += n
		}
		return nil
	})
	return released, err
}
