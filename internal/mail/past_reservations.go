package mail

import (
	"context"
	"encoding/json"
)

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
