package memory

import (
	"context"
	"database/sql"
	"errors"

	"cairn/internal/crashpoint"
	"cairn/internal/store/follow"
)

// hubDevice is the device name of pulled changes in the log.
const hubDevice = "hub"

// Apply stores a page of a stream that was pulled for a user, in one transaction, and moves the
// pull cursor to next. stream is the hub's id or the local one. An item with the key of an inflight
// entry commits that entry. Apply is idempotent (see Documents). Errors besides the store's:
// CodeLeft, CodeInvalid for an item that is not readable.
func (b *Service) Apply(ctx context.Context, m Membership, stream string, docs []Item, next int64) error {
	return b.replicatorTx(ctx, m, nil, func(ctx context.Context, s *callTx) error {
		d, err := s.pulling(ctx, m)
		if err != nil {
			return err
		}
		for i := range docs {
			docs[i].Memory = stream
			if err := d.Apply(ctx, s.tx, &docs[i]); err != nil {
				return err
			}
		}
		if err := s.tx.CountReturned(ctx, d.returned); err != nil {
			return err
		}
		local, err := d.here(ctx, s, stream)
		if err != nil {
			return err
		}
		return s.pulledTo(ctx, local, next)
	})
}

// pulling returns Documents for the items of a user's hub.
func (s *callTx) pulling(ctx context.Context, m Membership) (d *Documents, err error) {
	d = newDocuments(s.Service, fromHub)
	d.call = s
	s.u, err = findUser(ctx, s.tx, m.User)
	return d, err
}

// localStream returns the local id of a stream of the hub.
func (s *callTx) localStream(ctx context.Context, stream string) (string, error) {
	var m Stream
	err := m.scan(func(dest ...any) error { return s.tx.Get(ctx, dest, selectRemote, s.u.ID, stream) })
	if errors.Is(err, sql.ErrNoRows) {
		return stream, nil
	}
	return m.ID, err
}

// pulledTo moves the pull cursor of a stream.
func (s *callTx) pulledTo(ctx context.Context, local string, next int64) error {
	if _, err := s.tx.Exec(ctx, upsertStream, local, s.u.ID, LaneOf(local), 0); err != nil {
		return err
	}
	crashpoint.Pass("mid_pull")
	_, err := s.tx.Exec(ctx, updateCursor, local, next)
	return firstError(err, follow.Recover(ctx, s.tx, PullFollower, local))
}
