package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// Sync is the durability of a committed write.
type Sync uint8

// The durabilities: what a write survives (design §7).
const (
	Full   Sync = iota // power loss: memories, mail, records
	Normal             // a killed process: observations
)

// Write runs fn in an immediate transaction and returns after the commit, with the
// durability sync. Callers that arrive during another commit share the next one, each in
// its own savepoint: an error of fn rolls back only fn and is returned only to its
// caller. fn may run on another goroutine, at any time until Write returns. It must not
// call Write or Read; with fn's ctx these return an error.
//
// If ctx ends before fn has begun, because of the queue or the lock of another process,
// Write returns ctx's error and fn does not run. Once fn has begun, the end of ctx has no
// effect.
//
// Errors besides fn's: CodeBusy, CodeFull, CodeReadOnly, CodeCorrupt, CodeIO, CodeNewer,
// CodeOverloaded, CodeClosed; then nothing of fn is stored, and it is safe to retry.
// After CodeCorrupt every further write fails with it.
func (s *Store) Write(ctx context.Context, sync Sync, fn func(ctx context.Context, tx *Tx) error) error {
	if err := s.refusal(ctx); err != nil {
		return err
	}
	began := time.Now()
	op := &pending{ctx: ctx, sync: sync, fn: fn, began: began, until: began.Add(s.wait), done: make(chan struct{})}
	if err := s.writer.enqueue(op); err != nil {
		return err
	}
	for {
		select {
		case <-op.done:
			return op.err
		case s.writer.turn <- struct{}{}:
			if err := s.lead(op); err != nil && s.writer.withdraw(op) {
				s.gauges.waited(began)
				return s.classify(err)
			}
		case <-ctx.Done():
			if s.writer.withdraw(op) {
				s.gauges.waited(began)
				return ctx.Err()
			}
			<-op.done
			return op.err
		}
	}
}

// refusal returns the error if a write cannot even be tried.
func (s *Store) refusal(ctx context.Context) error {
	if s.reading {
		return notWritable(nil)
	}
	if err := s.damage.Load(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.nested(ctx)
}

// lead commits one batch of waiting writes for all callers. The caller must hold the
// turn, which lead releases. An error means that no transaction could be started for op;
// other writes still wait.
func (s *Store) lead(op *pending) error {
	defer func() { <-s.writer.turn }()
	sync, waiting := s.writer.wanted()
	if !waiting {
		return nil
	}
	s.gauges.load.Add(1)
	defer s.gauges.load.Add(-1)
	if err := s.begin(op, sync); err != nil {
		return err
	}
	defer s.writer.line.Leave()
	batch := s.writer.next(sync)
	for _, op := range batch {
		s.gauges.waited(op.began)
	}
	results := make([]error, len(batch))
	lost := errors.New("a write ended its goroutine") // replaced when commit returns
	defer func() {
		if lost != nil {
			lost = errors.Join(lost, s.rollback())
		}
		for i, op := range batch {
			if results[i] == nil {
				results[i] = lost
			}
			op.finish(s.classify(results[i]))
		}
	}()
	lost = s.commit(batch, results)
	if slices.ContainsFunc(append(results, lost), isReadOnly) && s.writer.ses != nil {
		_ = s.writer.reopen() // the connection must not be used again
	}
	return nil
}

// isReadOnly reports whether a write failed because the file was not writable when its
// connection was opened. SQLite does not check again.
func isReadOnly(err error) bool {
	code, _ := resultCode(err)
	return code&0xff == resReadOnly
}

// commit runs the batch in the started transaction. results receives the errors of single
// closures. The returned error affects all of them, and the caller must then roll back
// the transaction. It also affects closures that failed after another had written,
// because the data that they failed on may not be stored.
func (s *Store) commit(batch []*pending, results []error) (lost error) {
	log, fresh, wrote, failed := &logHead{}, map[string]int64{}, false, 0
	written := len(batch) // closures from here on may have seen rows of others
	defer func() {
		if lost != nil {
			clear(results[written:])
		}
	}()
	for i, op := range batch {
		tx := &Tx{ses: s.writer.ses, store: s, now: s.clock(), log: log, fresh: map[string]int64{}}
		var err error
		if results[i], err = runOne(op, tx, len(batch) > 1); err != nil {
			return err
		}
		if results[i] != nil {
			*log = logHead{} // a rolled-back closure may have advanced it
			failed++
			continue
		}
		wrote, written = wrote || tx.wrote, min(written, i+1)
		maps.Copy(fresh, tx.fresh)
	}
	if failed == len(batch) {
		return s.rollback()
	}
	if err := s.writer.ses.exec(context.Background(), "COMMIT"); err != nil {
		return err
	}
	s.symbols.add(fresh)
	if wrote {
		s.Wake()
	}
	return nil
}

// runOne runs one closure, in a savepoint if the transaction is shared. own is its error;
// err means that the whole transaction is lost.
func runOne(op *pending, tx *Tx, shared bool) (own, err error) {
	ctx := context.WithoutCancel(op.ctx)
	if shared {
		if err := tx.ses.exec(ctx, "SAVEPOINT caller"); err != nil {
			return nil, err
		}
	}
	own = tx.run(ctx, op.fn)
	if tx.lost != nil || !shared {
		return own, tx.lost
	}
	if own != nil {
		if err := tx.ses.exec(ctx, "ROLLBACK TO caller"); err != nil {
			return own, err
		}
	}
	return own, tx.ses.exec(ctx, "RELEASE caller")
}
