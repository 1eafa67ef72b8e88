package reservations

import (
	"context"
	"encoding/json"

	"cairn/internal/mail"
)

// The reservations of a project that may have been active at a time or, with ?4, that existed by
// then.
const selectReserved = `SELECT r.uid FROM mail_reservations r WHERE r.project_id = ?1 AND r.created_ts <= ?2 + ?3
  AND (?4 OR r.expires_ts > ?2 AND (r.released_ts IS NULL OR r.released_ts >= ?2 - ?3)) ORDER BY r.id`

// notKnown replaces the stale reasons of past reservations.
const notKnown = "not_known_of_the_past"

// FileReservationsAt is FileReservations at a past moment: active reservations are those that had
// not ended then. Whether they were stale is unknown; their stale reasons contain notKnown.
//
// Errors: those of FileReservations, INVALID_TIMESTAMP.
func (o *Reservations) FileReservationsAt(ctx context.Context, c mail.Caller, projectKey string, ended bool, at string) (out mail.Past[[]ListedReservation], err error) {
	out.Result = []ListedReservation{}
	err = o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		if err := s.Moment(ctx, at); err != nil {
			return err
		}
		out.At = s.At
		return reservedAt(ctx, s, ended, func(r *mail.Reservation) { out.Result = append(out.Result, listedThen(r)) })
	})
	return out, err
}

// reservedAt calls each, by id, for the reservations that were active at the call's moment. With
// ended it includes all reservations created by then.
func reservedAt(ctx context.Context, s *mail.CallTx, ended bool, each func(r *mail.Reservation)) error {
	slack, err := s.Slack(ctx)
	if err != nil {
		return err
	}
	uids, err := s.Tx.Texts(ctx, selectReserved, s.Project.ID, s.Now, slack, ended)
	if err != nil {
		return err
	}
	return s.Tx.DocumentsAt(ctx, s.At, mail.Stream(s.Project.UID), mail.KindReservation, uids, func(doc json.RawMessage) error {
		r := &mail.Reservation{}
		err := json.Unmarshal(doc, r)
		if err == nil && (ended || r.Released == 0 && r.Expires > s.Now) {
			each(r)
		}
		return err
	})
}

func listedThen(r *mail.Reservation) ListedReservation {
	l := listed(r)
	l.HolderActivity.Reasons = []string{}
	if r.Released == 0 {
		l.HolderActivity.Reasons = append(l.HolderActivity.Reasons, notKnown)
	}
	return l
}
