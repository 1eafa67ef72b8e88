package mail

import (
	"context"
	"database/sql"

	"cairn/internal/project"
	"cairn/internal/store"
)

// yields reports whether a reservation of another agent does not count against the caller.
// It belongs to a former self of the caller's session, or no session has taken it over in
// time.
func (s *callTx) yields(ctx context.Context, h *held) (bool, error) {
	if s.session.Key == 0 && !s.writes {
		var err error
		if s.session, _, _, err = s.knownSession(ctx); err != nil {
			return false, err
		}
	}
	t, known := s.agentUse[h.agentID]
	if !known {
		var err error
		if t, err = sessionsOfAgent(ctx, s.tx, h.agentID); err != nil {
			return false, err
		}
		if s.agentUse == nil {
			s.agentUse = map[int64]agentSessions{}
		}
		s.agentUse[h.agentID] = t
		if s.writes && !t.isLive(0) { // so that the grace period begins
			for _, key := range t.unclosed() {
				if err := project.Close(ctx, s.tx, key); err != nil {
					return false, err
				}
			}
		}
	}
	return t.isFormer(&s.session) || h.sessionKey != 0 && s.isOrphaned(&t, h.lastActive, s.now), nil
}

const (
	selectReserving = `SELECT a.id, a.last_active_ts FROM mail_agents a WHERE EXISTS (SELECT 1 FROM mail_reservations r
WHERE r.project_id = a.project_id AND r.agent_id = a.id AND r.released_ts IS NULL AND r.expires_ts > ? AND r.session_key IS NOT NULL)`
	selectAbandoned = reservationColumns + `WHERE r.project_id = (SELECT project_id FROM mail_agents WHERE id = ?1) AND r.agent_id = ?1
AND r.released_ts IS NULL AND r.expires_ts > ?2 AND r.session_key IS NOT NULL ORDER BY r.id`
)

// abandoned is what ReleaseOrphans has to do.
type abandoned struct {
	killed []int64 // sessions whose end is not recorded
	due    []orphan
}

// orphan is an agent whose reservations are due, and its last session.
type orphan struct {
	agent   int64
	session string
}

func (o *Service) abandoned(ctx context.Context, tx *store.Tx, at Time) (out abandoned, err error) {
	type holder struct {
		id     int64
		active Time
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
		var t agentSessions
		if t, err = sessionsOfAgent(ctx, tx, h.id); err != nil {
			break
		}
		if keys := t.unclosed(); !t.isLive(0) && len(keys) > 0 {
			out.killed = append(out.killed, keys...)
		} else if o.isOrphaned(&t, h.active, at) {
			out.due = append(out.due, orphan{h.id, t.newest.ID})
		}
	}
	return out, err
}

// ReleaseOrphans releases the reservations of agents whose sessions have ended, if no
// other session took the agents over within Config.OrphanGrace. The grace period of a
// killed session begins when ReleaseOrphans first notices it. Reservations that were made
// outside a session stay. It returns the number of released reservations; repeating it
// releases none.
//
// Errors: those of reading and writing.
func (o *Service) ReleaseOrphans(ctx context.Context) (released int, err error) {
	if o.store == nil {
		return 0, nil
	}
	due := false
	err = o.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, err := o.abandoned(ctx, tx, now(tx))
		due = len(found.killed)+len(found.due) > 0
		return err
	})
	if err != nil || !due {
		return 0, err
	}
	err = o.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		s := &callTx{Service: o, tx: tx, now: now(tx), writes: true}
		if err := s.settle(ctx); err != nil {
			return err
		}
		found, err := o.abandoned(ctx, tx, s.now)
		if err != nil {
			return err
		}
		for _, key := range found.killed {
			if err := project.Close(ctx, tx, key); err != nil {
				return err
			}
		}
		for _, due := range found.due {
			s.by = Actor{Session: due.session}
			n, err := s.releaseFound(ctx, releasedSession, selectAbandoned, due.agent, s.now)
			if err != nil {
				return err
			}
			released += n
		}
		return nil
	})
	return released, err
}
