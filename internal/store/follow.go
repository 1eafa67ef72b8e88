package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/internal/fault"

	"github.com/gofrs/flock"
)

// Follower reads the change log and does something with it: archive, replica,
// live views (design §1).
type Follower struct {
	// Name under which its position and the changes that it set aside are
	// stored, and its lease is held: one process at a time runs it. A follower
	// without a name is live: every process runs its own, from the newest
	// change on, and nothing about it is stored.
	Name string

	// Batch handles changes, oldest first. It may be called again with changes
	// that it has handled already: after a kill, or after an error, which is
	// retried with back-off and moves nothing. A single change that cannot be
	// handled is refused instead; it is set aside and those behind it go on. Its
	// later tries are batches of one, in which an error counts as a refusal. When
	// the follower is to stop, a batch has 10 s to finish before its ctx ends.
	Batch func(ctx context.Context, changes []Change) (refused []Refusal, err error)

	// Lease is for a live follower of which one process at a time is to run, as if it
	// had that name: whoever keeps account of what is done by other means.
	Lease string

	// Elected, if set, is called once, when the lease is held and it is decided with
	// which change the first batch begins. It must not block.
	Elected func()

	// FromStart lets a live follower begin at the log's first change, for one that
	// waited for the store itself to come into being.
	FromStart bool

	Limit int           // most changes in a batch; default 500
	Poll  time.Duration // how soon writes of other processes are seen; default 1 s
}

// Refusal is one change that a follower could not handle.
type Refusal struct {
	Seq int64
	Err error
}

// Aside is a change that waits outside a follower's stream for another try.
type Aside struct {
	Follower string
	Seq      int64
	Error    string
	Attempts int
	NextTry  time.Time
}

// Back-off of a failing batch, and of a change that was set aside.
const (
	firstDelay = 100 * time.Millisecond
	lastDelay  = 20 * time.Second
	firstRetry = time.Minute
	lastRetry  = time.Hour
)

// stopGrace is how long a batch may go on once its follower is to stop (contract
// memories §8).
const stopGrace = 10 * time.Second

// Follow runs a follower until ctx ends, then lets its batch finish and returns
// nil. It waits for the lease as long as another process holds it; the kernel
// frees the lease of a process that dies. Errors of the store and of Batch are
// retried for ever, with back-off: see Lag and SetAside for what is visible of
// them. The store must stay open until Follow has returned.
//
// Errors: Invalid for a name that cannot be part of a file's name, and those of
// making the lease's file.
func (s *Store) Follow(ctx context.Context, f Follower) (err error) {
	name := cmp.Or(f.Name, f.Lease)
	if strings.ContainsAny(name, `/\:`) {
		return fault.Newf(fault.Invalid, "invalid", "%q cannot be a follower's name", name)
	}
	if f.Limit < 1 {
		f.Limit = 500
	}
	if f.Poll <= 0 {
		f.Poll = time.Second
	}
	run := &following{Follower: f, store: s, wake: s.wake.join()}
	defer s.wake.leave(run.wake)
	if name != "" {
		lease := s.lease(name)
		if held, err := lease.TryLockContext(ctx, f.Poll); !held {
			return classify(ignoreEnd(ctx, err))
		}
		defer func() { err = errors.Join(err, lease.Unlock()) }()
	}
	run.loop(ctx)
	return nil
}

// lease is the kernel lock that the process running a follower holds.
func (s *Store) lease(name string) *flock.Flock {
	return newLock(s.path + "-follower-" + name)
}

// WithLease calls do while it holds a follower's lease, so that no other process runs
// the follower meanwhile. It does nothing and returns false if another one holds the
// lease. Errors: those of the lease's file and of do.
func (s *Store) WithLease(name string, do func() error) (held bool, err error) {
	lease := s.lease(name)
	if held, err = lease.TryLock(); !held {
		return false, classify(err)
	}
	defer func() { err = errors.Join(err, lease.Unlock()) }()
	return true, do()
}

// ignoreEnd drops an error that says no more than that ctx has ended.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// following is one run of a follower.
type following struct {
	Follower
	store    *Store
	wake     chan struct{}
	position int64
	placed   bool // position has been read
}

func (f *following) loop(ctx context.Context) {
	delay := time.Duration(0)
	for ctx.Err() == nil {
		more, err := f.step(ctx)
		switch {
		case err != nil:
			delay = backOff(delay)
			f.wait(ctx, delay, nil)
		case more:
			delay = 0
		default:
			delay = 0
			f.wait(ctx, f.Poll, f.wake)
		}
	}
}

func backOff(last time.Duration) time.Duration {
	next := min(max(2*last, firstDelay), lastDelay)
	return next/2 + rand.N(next)/2
}

func (f *following) wait(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-wake:
	}
}

// step handles one batch and, having caught up, the changes whose time for
// another try has come. more says that there is further work at once.
func (f *following) step(ctx context.Context) (more bool, err error) {
	if !f.placed {
		if err := f.place(ctx); err != nil {
			return false, err
		}
		if f.Elected != nil {
			f.Elected()
		}
	}
	batch, err := f.read(ctx)
	if err != nil {
		return false, err
	}
	if len(batch) > 0 {
		refused, err := f.handle(ctx, batch)
		if err != nil {
			return false, err
		}
		if err := f.advance(ctx, batch[len(batch)-1].Seq, refused); err != nil {
			return false, err
		}
	}
	if len(batch) == f.Limit {
		return true, nil
	}
	return false, f.retry(ctx)
}

// handle calls Batch with a context that outlives the end of ctx by stopGrace.
// A panic is an error like any other.
func (f *following) handle(ctx context.Context, changes []Change) (refused []Refusal, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(stopGrace):
			cancel()
		case <-longer.Done():
		}
	})()
	return f.Batch(longer, changes)
}

const (
	selectPosition = `SELECT position FROM followers WHERE name = ?`

	upsertPosition = `INSERT INTO followers (name, position, updated_at) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET position = excluded.position, updated_at = excluded.updated_at`

	upsertAside = `INSERT INTO set_aside (follower, seq, error, attempts, next_try) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (follower, seq) DO UPDATE
SET error = excluded.error, attempts = excluded.attempts, next_try = excluded.next_try`

	deleteAside    = `DELETE FROM set_aside WHERE follower = ? AND seq = ?`
	selectAsideDue = `SELECT seq, attempts FROM set_aside WHERE follower = ? AND next_try <= ? ORDER BY seq LIMIT +?`
	selectAside    = `SELECT follower, seq, error, attempts, next_try FROM set_aside ORDER BY follower, seq`
	updateDue      = `UPDATE set_aside SET next_try = 0 WHERE follower = ?`
)

// place finds where to begin: at the stored position, or at the head if live.
func (f *following) place(ctx context.Context) error {
	err := f.store.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
		if f.Name == "" {
			if !f.FromStart {
				f.position, err = tx.Head(ctx)
			}
			return err
		}
		err = tx.Get(ctx, []any{&f.position}, selectPosition, f.Name)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	f.placed = err == nil
	return err
}

func (f *following) read(ctx context.Context) (batch []Change, err error) {
	err = f.store.Read(ctx, func(ctx context.Context, tx *Tx) error {
		batch, err = tx.Changes(ctx, f.position, f.Limit)
		return err
	})
	return batch, err
}

// advance stores the new position together with what was refused on the way.
func (f *following) advance(ctx context.Context, position int64, refused []Refusal) error {
	if f.Name != "" {
		err := f.store.Write(context.WithoutCancel(ctx), Normal, func(ctx context.Context, tx *Tx) error {
			for _, r := range refused {
				if err := f.setAside(ctx, tx, r, 1); err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, upsertPosition, f.Name, position, tx.Now().UnixNano())
			return err
		})
		if err != nil {
			return err
		}
	}
	f.position = position
	return nil
}

func (f *following) setAside(ctx context.Context, tx *Tx, r Refusal, attempts int) error {
	delay := min(firstRetry<<min(attempts-1, 10), lastRetry)
	_, err := tx.Exec(ctx, upsertAside, f.Name, r.Seq, fmt.Sprint(r.Err), attempts, tx.Now().Add(delay).UnixNano())
	return err
}

// retry offers the changes that were set aside and whose time has come, one by
// one and in order, so that one that fails again does not hold up the others.
func (f *following) retry(ctx context.Context) error {
	if f.Name == "" {
		return nil
	}
	var due []Change
	attempts := map[int64]int{}
	err := f.store.Read(ctx, func(ctx context.Context, tx *Tx) error {
		err := tx.Each(ctx, func(r *sql.Rows) error {
			var seq int64
			var n int
			err := r.Scan(&seq, &n)
			attempts[seq] = n
			due = append(due, Change{Seq: seq})
			return err
		}, selectAsideDue, f.Name, tx.Now().UnixNano(), f.Limit)
		for i := range due {
			seq := due[i].Seq
			err = errors.Join(err, tx.Each(ctx, func(r *sql.Rows) error { return scanChange(r, &due[i]) }, selectChange, seq))
		}
		due = slices.DeleteFunc(due, func(c Change) bool { return c.DeviceSeq == 0 }) // no longer in the log
		return err
	})
	for i := 0; err == nil && i < len(due) && ctx.Err() == nil; i++ {
		err = f.again(ctx, due[i], attempts[due[i].Seq])
	}
	return err
}

func (f *following) again(ctx context.Context, c Change, attempts int) error {
	refused, err := f.handle(ctx, []Change{c})
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		refused = []Refusal{{c.Seq, err}}
	}
	return f.store.Write(context.WithoutCancel(ctx), Normal, func(ctx context.Context, tx *Tx) error {
		if len(refused) > 0 {
			return f.setAside(ctx, tx, Refusal{c.Seq, refused[0].Err}, attempts+1)
		}
		_, err := tx.Exec(ctx, deleteAside, f.Name, c.Seq)
		return err
	})
}

// SetAside lists the changes that followers could not handle, in the order of
// follower and seq; none if there are none.
func (s *Store) SetAside(ctx context.Context) ([]Aside, error) {
	var out []Aside
	err := s.Read(ctx, func(ctx context.Context, tx *Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var a Aside
			var next int64
			err := r.Scan(&a.Follower, &a.Seq, &a.Error, &a.Attempts, &next)
			a.NextTry = time.Unix(0, next)
			out = append(out, a)
			return err
		}, selectAside)
	})
	return out, err
}

// Retry makes everything that the follower set aside due at once. Repeating it
// is harmless.
func (s *Store) Retry(ctx context.Context, follower string) error {
	err := s.Write(ctx, Normal, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, updateDue, follower)
		return err
	})
	s.wake.signal()
	return err
}

// Lag says how many changes a follower has yet to read; all of them if it has
// never run. It counts positions, so gaps count too.
func (s *Store) Lag(ctx context.Context, follower string) (lag int64, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *Tx) error {
		head, err := tx.Head(ctx)
		if err != nil {
			return err
		}
		var position int64
		err = tx.Get(ctx, []any{&position}, selectPosition, follower)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		lag = head - position
		return nil
	})
	return lag, err
}

// wakeups tells the followers of this process that something was committed. A
// lost signal costs one Poll, never a change.
type wakeups struct {
	mu    sync.Mutex
	chans map[chan struct{}]bool
}

func (w *wakeups) join() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chans == nil {
		w.chans = map[chan struct{}]bool{}
	}
	c := make(chan struct{}, 1)
	w.chans[c] = true
	return c
}

func (w *wakeups) leave(c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.chans, c)
}

func (w *wakeups) signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.chans {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
