package mail

import (
	"context"
	"database/sql"

	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	sweepSize = 200 // a transaction, so that nobody waits long for it

	selectEnding = reservationColumns + `WHERE r.released_ts IS NULL AND r.expires_ts <= ? ORDER BY r.expires_ts, r.id LIMIT +?`

	selectLeases = reservationColumns + `WHERE r.session_key = ?1 AND r.source = 'edit' AND r.released_ts IS NULL
AND (r.project_id, r.agent_id) IN (SELECT a.project_id, a.id FROM mail_sessions b JOIN mail_agents a ON a.id = b.agent_id
    WHERE b.session_key = ?1) ORDER BY r.id`
)

// SweepReservations marks the reservations of all projects that have expired as
// released, which a server does every minute (mail §7), and releases those that
// ReleaseOrphans does. What has expired blocked nothing before. It returns how many there
// were; repeating it finds none.
//
// Errors: those of writing.
func (o *Service) SweepReservations(ctx context.Context) (marked int, err error) {
	if o.store == nil {
		return 0, nil
	}
	if marked, err = o.ReleaseOrphans(ctx); err != nil {
		return marked, err
	}
	for {
		n := 0
		err := o.write(ctx, func(ctx context.Context, tx *store.Tx) error {
			n, err = o.sweep(ctx, tx)
			return err
		})
		if err != nil {
			return marked, err
		}
		if marked += n; n < sweepSize {
			return marked, nil
		}
	}
}

func (o *Service) sweep(ctx context.Context, tx *store.Tx) (int, error) {
	s := &callTx{Service: o, tx: tx, now: now(tx), writes: true}
	if err := s.settle(ctx); err != nil {
		return 0, err
	}
	return s.releaseFound(ctx, releasedExpired, selectEnding, s.now, sweepSize)
}

// releaseFound ends the reservations that a query finds, whatever their projects.
func (s *callTx) releaseFound(ctx context.Context, kind, query string, args ...any) (int, error) {
	var ending []*Reservation
	err := s.tx.Each(ctx, func(rows *sql.Rows) error {
		r := &Reservation{}
		ending = append(ending, r)
		return rows.Scan(r.columns()...)
	}, query, args...)
	for _, r := range ending {
		if err != nil {
			break
		}
		if s.p == nil || s.p.ID != r.projectID {
			if s.p, err = findProject(ctx, s.tx, selectProjectByID, r.projectID); err != nil {
				break
			}
		}
		_, err = s.release(ctx, []*Reservation{r}, kind)
	}
	return len(ending), err
}

// EndSession ends what belongs to a session of a harness that has ended: the leases
// that its edits took, and its bonds with agents (mail §8). An unknown session, and
// repeating, change nothing. It returns how many leases were released.
//
// Errors: those of writing.
func (o *Service) EndSession(ctx context.Context, session string) (released int, err error) {
	var bound bool
	err = o.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&bound}, selectBondOpen, session)
	})
	if err != nil || !bound {
		return 0, err
	}
	err = o.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		row, ok, err := project.FindSession(ctx, tx, session)
		if err != nil || !ok {
			return err
		}
		s := &callTx{Service: o, tx: tx, now: now(tx), writes: true, session: row, by: Actor{Session: row.ID}}
		if err := s.settle(ctx); err != nil {
			return err
		}
		if released, err = s.releaseFound(ctx, releasedSession, selectLeases, row.Key); err != nil {
			return err
		}
		return unbind(ctx, tx, row.Key, s.now)
	})
	return released, err
}

const (
	selectBonds    = `SELECT EXISTS (SELECT 1 FROM sessions s CROSS JOIN mail_sessions b ON b.session_key = s.key WHERE s.id = ? `
	selectBondOpen = selectBonds + `AND b.ended_ts IS NULL)`
)
