package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// Sync says what a committed write survives.
type Sync uint8

// The two durabilities (design §7).
const (
	Full   Sync = iota // power loss: memories, mail, records
	Normal             // a killed process: observations
)

// Write runs fn in an immediate transaction and returns after it is committed
// as durably as sync says. Callers that arrive while another commit is under
// way share the next one, each in a savepoint of its own: an error of fn undoes
// fn alone and is returned to its caller alone. fn may run at any time until
// Write returns, on another goroutine, and must not call Write or Read itself;
// with the ctx it was given, these refuse.
//
// A caller whose ctx ends before fn has begun, be it for the queue or for the
// lock of another process, gets ctx's error and fn does not run; once fn has
// begun, the end of ctx changes nothing.
//
// Errors besides fn's: CodeBusy, CodeFull, CodeReadOnly, CodeCorrupt, CodeIO,
// CodeNewer, CodeOverloaded, CodeClosed; then nothing of fn is stored and
// repeating is safe. After CodeCorrupt every further write is refused with it.
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

// refusal says why a write cannot even be tried.
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

// lead commits one batch of waiting writes on behalf of all callers. The caller
// holds the turn, which lead gives back. An error means that no transaction
// could be begun for op; what waits besides it still waits.
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
	defer s.writer.line.leave()
	batch := s.writer.next(sync)
	for _, op := range batch {
		s.gauges.waited(op.began)
	}
	results := make([]error, len(batch))
	lost := errors.New("a write ended its goroutine") // unless commit returns
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
		_ = s.writer.reopen() // all that matters is that it is not used again
	}
	return nil
}

// isReadOnly reports whether a write failed because the file could not be written
// when its connection was opened. SQLite would not look again.
func isReadOnly(err error) bool {
	code, _ := resultCode(err)
	return code&0xff == resReadOnly
}

// commit runs the batch in the transaction that was begun. results receives the
// errors of single closures; the error is what befell all of them, and the
// transaction is then still to be rolled back. It befell those too that were refused
// after another had written: what they were refused for may never have been stored.
func (s *Store) commit(batch []*pending, results []error) (lost error) {
	log, fresh, wrote, failed := &logHead{}, map[string]int64{}, false, 0
	written := len(batch) // those from here on ran over rows of others
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
			*log = logHead{} // it may have been moved by what was undone
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
		s.wake.signal()
	}
	return nil
}

// runOne runs one closure, in a savepoint if it has neighbours. own is its
// error; err means that the transaction as a whole is lost.
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
