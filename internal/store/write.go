package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"cairn/internal/fault"
)

// Sync says what a committed write survives.
type Sync uint8

// The two durabilities (design §7).
const (
	Full   Sync = iota // power loss: memories, mail, records
	Normal             // a killed process: observations
)

// Limits of one shared commit and of the callers that may wait for one.
const (
	maxBatch = 512
	maxQueue = 4096
)

// Tx is one transaction, valid inside its closure only and for one goroutine.
type Tx struct {
	ses   *session
	store *Store
	now   time.Time
	log   *logHead         // the own device's newest change, shared by a batch
	fresh map[string]int64 // symbols made here, not yet committed
	wrote bool             // a change was appended
}

// Now is the time of this transaction, read once from the store's clock.
func (t *Tx) Now() time.Time { return t.now }

// Exec runs a statement. Statements are kept prepared by their text.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	st, err := t.ses.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(ctx, args...)
}

// Query runs a query; the caller closes the rows.
func (t *Tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := t.ses.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

// Get scans the first row of a query into dest. Without a row it returns
// sql.ErrNoRows.
func (t *Tx) Get(ctx context.Context, dest []any, query string, args ...any) error {
	st, err := t.ses.prepared(ctx, query)
	if err != nil {
		return err
	}
	return st.QueryRowContext(ctx, args...).Scan(dest...)
}

// Each runs a query and calls scan for every row.
func (t *Tx) Each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) (err error) {
	rows, err := t.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Write runs fn in an immediate transaction and returns after it is committed
// as durably as sync says. Callers that arrive while another commit is under
// way share the next one, each in a savepoint of its own: an error of fn undoes
// fn alone and is returned to its caller alone. fn may run at any time until
// Write returns, on another goroutine, and must not call Write or Read itself.
//
// A caller whose ctx ends while it waits gets ctx's error and fn does not run;
// once fn has begun, the end of ctx changes nothing.
//
// Errors besides fn's: CodeBusy, CodeFull, CodeReadOnly, CodeCorrupt, CodeIO,
// CodeClosed; then nothing of fn is stored and repeating is safe.
func (s *Store) Write(ctx context.Context, sync Sync, fn func(ctx context.Context, tx *Tx) error) error {
	if s.reading {
		return fault.New(fault.Unavailable, CodeReadOnly, "the store was opened for reading only")
	}
	op := &pending{ctx: ctx, sync: sync, fn: fn, done: make(chan struct{})}
	if err := s.writer.enqueue(op); err != nil {
		return err
	}
	for {
		select {
		case <-op.done:
			return classify(op.err)
		case s.writer.turn <- struct{}{}:
			s.commitQueued()
			<-s.writer.turn
		case <-ctx.Done():
			if op.abandon() {
				s.writer.forget()
				return ctx.Err()
			}
			<-op.done
			return classify(op.err)
		}
	}
}

// pending is one caller's write on its way to a commit.
type pending struct {
	ctx   context.Context
	sync  Sync
	fn    func(context.Context, *Tx) error
	done  chan struct{}
	err   error
	state atomic.Int32 // 0 waiting, 1 taken, 2 abandoned
}

func (p *pending) take() bool    { return p.state.CompareAndSwap(0, 1) }
func (p *pending) abandon() bool { return p.state.CompareAndSwap(0, 2) }

func (p *pending) finish(err error) {
	p.err = err
	close(p.done)
}

// writer is the queue in front of the one writing connection. Whoever holds the
// turn commits for everybody who waits.
type writer struct {
	turn chan struct{}

	mu      sync.Mutex
	queue   []*pending
	waiting int
	closed  bool

	ses  *session // used under turn only
	sync Sync     // what ses is set to
}

func newWriter() writer { return writer{turn: make(chan struct{}, 1)} }

func (w *writer) enqueue(op *pending) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return stopping()
	case w.waiting >= maxQueue:
		return fault.New(fault.Unavailable, "store_overloaded", "too many writes are waiting").
			WithHint("try again in a moment")
	}
	w.queue = append(w.queue, op)
	w.waiting++
	return nil
}

func (w *writer) forget() {
	w.mu.Lock()
	w.waiting--
	w.mu.Unlock()
}

// next takes up to maxBatch callers off the queue.
func (w *writer) next() []*pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	var batch []*pending
	for len(w.queue) > 0 && len(batch) < maxBatch {
		op := w.queue[0]
		w.queue[0], w.queue = nil, w.queue[1:]
		if op.take() {
			batch = append(batch, op)
			w.waiting--
		}
	}
	return batch
}

// stop refuses new writes, lets those that wait finish and closes the
// connection.
func (w *writer) stop() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	for {
		w.turn <- struct{}{}
		w.mu.Lock()
		idle := w.waiting == 0
		w.mu.Unlock()
		if !idle {
			<-w.turn
			continue
		}
		if w.ses == nil {
			return nil
		}
		return w.ses.close()
	}
}

// commitQueued runs one batch of waiting writes. The caller holds the turn.
func (s *Store) commitQueued() {
	batch := s.writer.next()
	if len(batch) == 0 {
		return
	}
	results, err := s.commit(batch)
	for i, op := range batch {
		op.finish(errors.Join(results[i], err))
	}
}

// commit runs the batch in one transaction. results holds the errors of single
// closures, err what befell all of them; then nothing is stored.
func (s *Store) commit(batch []*pending) (results []error, err error) {
	results = make([]error, len(batch))
	ctx := context.WithoutCancel(batch[0].ctx)
	if err := s.begin(ctx, syncOf(batch)); err != nil {
		return results, err
	}
	log := &logHead{}
	fresh := map[string]int64{}
	wrote := false
	for i, op := range batch {
		tx := &Tx{ses: s.writer.ses, store: s, now: s.clock(), log: log, fresh: map[string]int64{}}
		results[i], err = runOne(op, tx, len(batch) > 1)
		if err != nil {
			return results, errors.Join(err, s.rollback(ctx))
		}
		if results[i] == nil {
			wrote = wrote || tx.wrote
			for text, id := range tx.fresh {
				fresh[text] = id
			}
		} else {
			*log = logHead{} // it may have been moved by what was undone
		}
	}
	if len(batch) == 1 && results[0] != nil {
		return results, s.rollback(ctx)
	}
	if err := s.writer.ses.exec(ctx, "COMMIT"); err != nil {
		return results, errors.Join(err, s.rollback(ctx))
	}
	s.symbols.add(fresh)
	if wrote {
		s.wake.signal()
	}
	return results, nil
}

func syncOf(batch []*pending) Sync {
	for _, op := range batch {
		if op.sync == Full {
			return Full
		}
	}
	return Normal
}

// begin opens the writing connection if need be and starts the transaction.
func (s *Store) begin(ctx context.Context, sync Sync) error {
	w := &s.writer
	if w.ses == nil {
		ses, err := newSession(ctx, s.db)
		if err != nil {
			return err
		}
		w.ses, w.sync = ses, Full
	}
	if w.sync != sync {
		pragma := "PRAGMA synchronous=FULL"
		if sync == Normal {
			pragma = "PRAGMA synchronous=NORMAL"
		}
		if err := w.ses.exec(ctx, pragma); err != nil {
			return err
		}
		w.sync = sync
	}
	return w.ses.exec(ctx, "BEGIN IMMEDIATE")
}

// rollback ends a failed transaction. SQLite may have ended it already; the
// connection is then replaced, which is always right and never frequent.
func (s *Store) rollback(ctx context.Context) error {
	if s.writer.ses.exec(ctx, "ROLLBACK") == nil {
		return nil
	}
	err := s.writer.ses.close()
	s.writer.ses = nil
	return err
}

// runOne runs one closure, in a savepoint if it has neighbours. own is its
// error; err means that the transaction as a whole is lost.
func runOne(op *pending, tx *Tx, shared bool) (own, err error) {
	ctx := context.WithoutCancel(op.ctx)
	if !shared {
		return guarded(ctx, op, tx), nil
	}
	if err := tx.ses.exec(ctx, "SAVEPOINT caller"); err != nil {
		return nil, err
	}
	own = guarded(ctx, op, tx)
	if own != nil {
		if err := tx.ses.exec(ctx, "ROLLBACK TO caller"); err != nil {
			return own, err
		}
	}
	return own, tx.ses.exec(ctx, "RELEASE caller")
}

// guarded turns a panic of the closure into its caller's error, so that one
// defect does not take its neighbours with it.
func guarded(ctx context.Context, op *pending, tx *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Wrap(fmt.Errorf("panic: %v", p), fault.Internal, "internal", "a defect in cairn stopped this write")
		}
	}()
	return op.fn(ctx, tx)
}
