package reservations

import (
	"context"
	"database/sql"

	"cairn/internal/mail"
	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	sweepSize = 200 // reservations per transaction, so that other writers do not wait long

	selectEnding = mail.ReservationColumns + `WHERE r.released_ts IS NULL AND r.expires_ts <= ? ORDER BY r.expires_ts, r.id LIMIT +?`

	selectLeases = mail.ReservationColumns + `WHERE r.session_key = ?1 AND r.source = 'edit' AND r.released_ts IS NULL
AND (r.project_id, r.agent_id) IN (SELECT a.project_id, a.id FROM mail_sessions b JOIN mail_agents a ON a.id = b.agent_id
    WHERE b.session_key = ?1) ORDER BY r.id`
)

// SweepReservations marks the expired reservations of all projects as released and calls
// ReleaseOrphans. A server runs it every minute (mail §7). Expired reservations do not block even
// before they are marked. It returns how many reservations it released. It is safe to retry.
//
// Errors: those of writing.
func (o *Reservations) SweepReservations(ctx context.Context) (marked int, err error) {
	if o.Store == nil {
		return 0, nil
	}
	if marked, err = o.ReleaseOrphans(ctx); err != nil {
		return marked, err
	}
	for {
		n := 0
		err := o.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			n, err = sweep(ctx, o.Kernel, tx)
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

func sweep(ctx context.Context, o *mail.Kernel, tx *store.Tx) (int, error) {
	s := &mail.CallTx{Kernel: o, Tx: tx, Now: mail.Now(tx), Writes: true}
	if err := AdvanceClock(ctx, s); err != nil {
		return 0, err
	}
	return releaseFound(ctx, s, releasedExpired, selectEnding, s.Now, sweepSize)
}

// releaseFound releases the reservations that a query selects, in any project.
func releaseFound(ctx context.Context, s *mail.CallTx, kind, query string, args ...any) (int, error) {
	var ending []*mail.Reservation
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		r := &mail.Reservation{}
		ending = append(ending, r)
		return rows.Scan(r.Columns()...)
	}, query, args...)
	for _, r := range ending {
		if err != nil {
			break
		}
		if s.Project == nil || s.Project.ID != r.ProjectID {
			if s.Project, err = mail.QueryProject(ctx, s.Tx, mail.SelectProjectByID, r.ProjectID); err != nil {
				break
			}
		}
		_, err = Release(ctx, s, []*mail.Reservation{r}, kind)
	}
	return len(ending), err
}

// EndSession ends the bindings of a harness session that has ended and releases the leases of its
// edits (mail §8). An unknown session changes nothing. It returns the number of released leases.
// It is idempotent.
//
// Errors: those of writing.
func (o *Reservations) EndSession(ctx context.Context, session string) (released int, err error) {
	var bound bool
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&bound}, SelectBondOpen, session)
	})
	if err != nil || !bound {
		return 0, err
	}
	err = o.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		row, ok, err := project.FindSession(ctx, tx, session)
		if err != nil || !ok {
			return err
		}
		s := &mail.CallTx{Kernel: o.Kernel, Tx: tx, Now: mail.Now(tx), Writes: true, Session: row, By: mail.Actor{Session: row.ID}}
		if err := AdvanceClock(ctx, s); err != nil {
			return err
		}
		if released, err = releaseFound(ctx, s, ReleasedSession, selectLeases, row.Key); err != nil {
			return err
		}
		return mail.Unbind(ctx, tx, row.Key, s.Now)
	})
	return released, err
}

const (
	selectBonds    = `SELECT EXISTS (SELECT 1 FROM sessions s CROSS JOIN mail_sessions b ON b.session_key = s.key WHERE s.id = ? `
	SelectBondOpen = selectBonds + `AND b.ended_ts IS NULL)`
)
