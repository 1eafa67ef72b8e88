package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store/locks"
)

// Limits of one shared commit and of the callers that may wait for one
// (contract mail §11).
const (
	maxBatch = 512
	maxQueue = 4096
)

// pending is one caller's write that waits for a commit.
type pending struct {
	ctx   context.Context
	sync  Sync
	fn    func(context.Context, *Tx) error
	began time.Time
	until time.Time // when to stop waiting for another process
	done  chan struct{}
	err   error // valid once done is closed
}

func (p *pending) finish(err error) {
	p.err = err
	close(p.done)
}

// writer is the queue of the single writing connection. The holder of the turn commits
// for all waiting callers.
type writer struct {
	turn chan struct{}

	mu     sync.Mutex
	queue  []*pending
	closed bool

	ses  *session // used only while holding turn, like the fields below
	sync Sync     // durability that ses is set to
	line locks.Fair
}

func newWriter(path string) *writer {
	return &writer{turn: make(chan struct{}, 1), line: locks.NewFair(path)}
}

func (w *writer) enqueue(op *pending) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return stopping()
	case len(w.queue) >= maxQueue:
		return fault.New(fault.Unavailable, CodeOverloaded, "too many writes are waiting").
			WithHint("try again in a moment")
	}
	w.queue = append(w.queue, op)
	return nil
}

// withdraw removes a write from the queue. It returns false if it is no longer queued.
func (w *writer) withdraw(op *pending) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.queue, op)
	if i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	}
	return i >= 0
}

// wanted returns the durability that the waiting writes need, or false if none waits.
func (w *writer) wanted() (Sync, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.ContainsFunc(w.queue, func(op *pending) bool { return op.sync == Full }) {
		return Full, true
	}
	return Normal, len(w.queue) > 0
}

// next removes up to maxBatch writes from the queue that need at most the given
// durability. It skips writes whose callers have left.
func (w *writer) next(sync Sync) []*pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	var batch []*pending
	n := 0
	for ; n < len(w.queue) && len(batch) < maxBatch; n++ {
		op := w.queue[n]
		if op.sync < sync {
			break
		}
		if err := op.ctx.Err(); err != nil {
			op.finish(err)
			continue
		}
		batch = append(batch, op)
	}
	w.queue = slices.Delete(w.queue, 0, n)
	return batch
}

// stop refuses new writes, lets waiting ones finish, closes the connection and keeps the
// turn permanently.
func (w *writer) stop() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	for {
		w.turn <- struct{}{}
		if _, waiting := w.wanted(); !waiting {
			break
		}
		<-w.turn
	}
	if w.ses == nil {
		return nil
	}
	return w.ses.close()
}

// begin starts the transaction of a batch led by op. It waits for other processes until
// op's time has passed or its caller has left, and tries at least once.
func (s *Store) begin(op *pending, sync Sync) (err error) {
	line := &s.writer.line
	defer func() {
		if err != nil {
			line.Leave()
		}
	}()
	if err := line.Enter(op.ctx, op.until); err != nil && op.ctx.Err() != nil {
		return op.ctx.Err()
	} // a process that could not queue tries SQLite's lock directly
	for {
		if ended := op.ctx.Err(); ended != nil {
			return ended
		}
		err := s.tryBegin(sync)
		if code, _ := resultCode(err); code&0xff != resBusy {
			return err
		}
		if !locks.Pause(op.ctx, op.until) && op.ctx.Err() == nil {
			return err
		}
	}
}

// tryBegin opens the writing connection if necessary and tries to start a transaction. It
// does not wait, because SQLite's own wait cannot be cancelled.
func (s *Store) tryBegin(sync Sync) error {
	ctx := context.Background()
	w := s.writer
	if err := w.open(s.db); err != nil {
		return err
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
	if err := w.ses.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := s.inPlace()
	if err == nil {
		err = w.ses.known(ctx)
	}
	if err != nil {
		return errors.Join(err, s.rollback())
	}
	return nil
}

// undoInMemory keeps savepoints in memory: the savepoint of a message copies about thirty
// pages, which SQLite would write to a file after the first 64 KiB.
const undoInMemory = "PRAGMA temp_store=MEMORY"

// open opens the writing connection if necessary.
func (w *writer) open(db *sql.DB) error {
	if w.ses != nil {
		return nil
	}
	ses, err := newSession(context.Background(), db)
	if err != nil {
		return err
	}
	w.ses, w.sync = ses, Full
	return ses.exec(context.Background(), pragmaBusy(0)+";"+undoInMemory)
}

// inPlace returns an error if the file is no longer the store, because a salvage has
// replaced it.
func (s *Store) inPlace() error {
	now, err := os.Stat(s.path)
	if err == nil && os.SameFile(s.file, now) {
		return nil
	}
	return fault.Wrap(err, fault.Unavailable, CodeReplaced, "the store was replaced by another file").
		WithHint("try again; restart a server")
}

// rollback ends a failed transaction. SQLite may have ended it already; if that is
// uncertain, the connection is replaced.
func (s *Store) rollback() error {
	w := s.writer
	if w.ses == nil || w.ses.exec(context.Background(), "ROLLBACK") == nil {
		return nil
	}
	return w.reopen()
}

// reopen closes the connection, so that the next write opens another one.
func (w *writer) reopen() error {
	ses := w.ses
	w.ses = nil
	return ses.discard()
}
