package store

import (
	"context"
	"errors"
	"time"
)

// Read runs fn on one snapshot of the store, on a connection that cannot write. Readers
// and writers do not block each other. fn must not call Write or Read; with fn's ctx
// these return an error. The end of ctx interrupts fn's queries.
//
// A hook works sequentially, so it reads on its writing connection; a second connection
// would have to read the schema again. There, writes of fn are rolled back, and a read
// waits for this process's writes.
//
// Errors besides fn's: CodeCorrupt, CodeIO, CodeBusy, CodeNewer, CodeClosed.
func (s *Store) Read(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) (err error) {
	if err := s.nested(ctx); err != nil {
		return err
	}
	began := time.Now()
	release, err := s.reserve(ctx)
	if err != nil {
		s.gauges.waited(began)
		return err
	}
	defer release()
	if s.single {
		return s.classify(s.readSingle(ctx, began, fn))
	}
	ses, err := s.reader(ctx)
	s.gauges.waited(began)
	if err != nil {
		return s.classify(err)
	}
	whole := false // the connection can be reused
	defer func() {
		if whole {
			s.idle.give(ses)
		} else {
			err = errors.Join(err, ses.discard())
		}
		err = s.classify(err)
	}()
	err = s.snapshot(ctx, ses, fn)
	rolledBack := ses.exec(context.WithoutCancel(ctx), "ROLLBACK")
	whole = rolledBack == nil
	return err
}

// readApart is Read on a new connection.
func (s *Store) readApart(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) (err error) {
	if err := s.nested(ctx); err != nil {
		return err
	}
	release, err := s.reserve(ctx)
	if err != nil {
		return err
	}
	defer release()
	ses, err := newSession(context.WithoutCancel(ctx), s.readDB)
	if err != nil {
		return s.classify(err)
	}
	defer func() { err = s.classify(errors.Join(err, ses.discard())) }()
	return s.snapshot(ctx, ses, fn)
}

// readSingle is Read on the writing connection, during the writer's turn.
func (s *Store) readSingle(ctx context.Context, began time.Time, fn func(ctx context.Context, tx *Tx) error) error {
	select {
	case s.writer.turn <- struct{}{}:
		defer func() { <-s.writer.turn }()
	case <-ctx.Done():
		s.gauges.waited(began)
		return ctx.Err()
	}
	s.gauges.waited(began)
	if err := s.writer.open(s.db); err != nil {
		return err
	}
	err := s.snapshot(ctx, s.writer.ses, fn)
	return errors.Join(err, s.rollback())
}

// patience is how long a reader waits for one of the MinReaders slots before it takes another
// one. More concurrent readers are not faster, unless some hold their slots for long.
const patience = time.Second

// reserve waits for a reader slot. Close waits until the slots are released.
func (s *Store) reserve(ctx context.Context) (release func(), err error) {
	select {
	case s.limit <- struct{}{}:
		return s.reserved(s.limit), nil
	default:
	}
	s.gauges.waiting.Add(1)
	defer s.gauges.waiting.Add(-1)
	late := time.NewTimer(patience)
	defer late.Stop()
	var extra chan struct{}
	for {
		select {
		case s.limit <- struct{}{}:
			return s.reserved(s.limit), nil
		case extra <- struct{}{}:
			return s.reserved(extra), nil
		case <-late.C:
			extra = s.extra
		case <-s.quit:
			return nil, stopping()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reserved returns the function that releases a reserved slot.
func (s *Store) reserved(places chan struct{}) (release func()) {
	s.gauges.load.Add(1)
	return func() {
		s.gauges.load.Add(-1)
		<-places
	}
}

// reader returns an idle reading connection or opens one.
func (s *Store) reader(ctx context.Context) (*session, error) {
	if ses := s.idle.take(); ses != nil {
		return ses, nil
	}
	return newSession(context.WithoutCancel(ctx), s.readDB)
}

// snapshot runs fn in a transaction that the caller ends.
func (s *Store) snapshot(ctx context.Context, ses *session, fn func(context.Context, *Tx) error) error {
	plain := context.WithoutCancel(ctx)
	if err := ses.exec(plain, "BEGIN"); err != nil {
		return err
	}
	if err := ses.known(plain); err != nil { // this also takes the snapshot
		return err
	}
	tx := &Tx{ses: ses, store: s, now: s.clock()}
	return tx.run(ctx, fn)
}
