package store

import (
	"context"
	"errors"
)

// Read runs fn over one snapshot of the store, on a connection that cannot
// write. Readers neither wait for writers nor hold them up. fn must not call
// Write or Read itself. The end of ctx interrupts fn's queries.
//
// Errors besides fn's: CodeCorrupt, CodeIO, CodeBusy, CodeClosed.
func (s *Store) Read(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	select {
	case s.limit <- struct{}{}:
	case <-s.quit:
		return stopping()
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.limit }()
	ses, err := s.reader(ctx)
	if err != nil {
		return classify(err)
	}
	err = s.snapshot(ctx, ses, fn)
	select {
	case s.readers <- ses:
		return classify(err)
	default:
		return classify(errors.Join(err, ses.close()))
	}
}

// reader returns an idle reading connection or opens one.
func (s *Store) reader(ctx context.Context) (*session, error) {
	select {
	case ses := <-s.readers:
		return ses, nil
	default:
	}
	return newSession(context.WithoutCancel(ctx), s.readDB)
}

func (s *Store) snapshot(ctx context.Context, ses *session, fn func(context.Context, *Tx) error) error {
	if err := ses.exec(context.WithoutCancel(ctx), "BEGIN"); err != nil {
		return err
	}
	err := fn(ctx, &Tx{ses: ses, store: s, now: s.clock()})
	return errors.Join(err, ses.exec(context.WithoutCancel(ctx), "ROLLBACK"))
}
