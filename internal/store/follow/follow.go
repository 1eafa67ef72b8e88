package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"cairn/internal/backoff"
	"cairn/internal/crashpoint"
	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/locks"

	"github.com/gofrs/flock"
)

// Follower reads the change log and processes it: archive, replication, embedder, live
// views (design §1). All of them share one account: see Followers.
type Follower struct {
	// Name identifies its position, its failures and its set-aside changes. A lease of that
	// name ensures that only one process at a time runs the follower.
	Name string

	// Live followers run in every process separately, starting with the newest change. The
	// store contains nothing about them: only their process reports their failures.
	Live bool

	// FromStart lets a live follower start with the log's first change. It is for a process
	// that waited until the store was created.
	FromStart bool

	// Begin, if set, is called before the first batch of a run, for work other than the
	// changes. With Begin, a follower that has never run starts with the newest change. Its
	// results are handled like those of Batch.
	Begin func(ctx context.Context) (refused []Refusal, err error)

	// Batch handles changes, oldest first. It must be idempotent: after a crash or an error it
	// is called again with the same changes. An error is retried with back-off, and the
	// position stays. To skip a single change, Batch returns a refusal instead: the change is
	// set aside, and later changes are handled. A set-aside change is retried as a batch of
	// one, in which an error counts as a refusal. When the follower stops, a batch has 10 s to
	// finish before its ctx ends.
	Batch func(ctx context.Context, changes []store.Change) (refused []Refusal, err error)

	// Idle, if set, is called when all changes were read, instead of the retries of set-aside
	// changes: after each wake-up, and again when the returned time has passed. An error is
	// handled like one of Batch.
	Idle func(ctx context.Context) (next time.Duration, err error)

	// Wake, if set, is a channel with room for one value. A value that it receives wakes the
	// follower, as a write does.
	Wake chan struct{}

	// Lanes replaces Begin and Batch for a follower of several streams, each with a separate
	// cursor.
	Lanes *Lanes

	Limit int           // maximum number of changes in a batch; default 500
	Poll  time.Duration // interval at which writes of other processes are noticed; default 1 s
}

// Refusal is a change that a follower could not handle.
type Refusal struct {
	Seq    int64
	Err    error
	Final  bool   // it is not retried until the user acts
	Detail string // additional JSON for the follower, "" for none
}

// The delays of a follower after failures and of a set-aside change.
var (
	followerBackoff = backoff.Policy{First: 100 * time.Millisecond, Max: 20 * time.Second, Jitter: .5}
	asideBackoff    = backoff.Policy{First: time.Minute, Max: time.Hour}
)

// Delay returns the delay of a follower, or of one of its streams, after its nth
// failure in a row: 100 ms, doubled each time up to 20 s, ± 50 % (memories §10.3).
func Delay(n int) time.Duration { return followerBackoff.Delay(n) }

// stopGrace is how long a batch may continue after its follower was stopped (contract memories
// §8).
const stopGrace = 10 * time.Second

// Run runs a follower until ctx ends, then lets its batch finish and returns nil. It waits
// for the lease while another process holds it; the kernel releases the lease of a process
// that dies. At its start it retries the set-aside changes. Errors of the store and of Batch
// are retried with back-off until they end; Followers reports them. The store must stay open
// until Run has returned.
//
// Errors: Invalid for a name that cannot be part of a file name, and those of creating the
// lease's file.
func Run(ctx context.Context, s *store.Store, f Follower) (err error) {
	if f.Name == "" || strings.ContainsAny(f.Name, `/\:`) {
		return fault.Newf(fault.Invalid, "invalid", "%q cannot be a follower's name", f.Name)
	}
	if f.Limit < 1 {
		f.Limit = 500
	}
	if f.Poll <= 0 {
		f.Poll = time.Second
	}
	if f.Wake == nil {
		f.Wake = make(chan struct{}, 1)
	}
	run := &following{Follower: f, store: s, progress: Progress{Follower: f.Name, Live: f.Live}}
	defer s.Listen(f.Wake, run)()
	if f.Live {
		run.loop(ctx)
		return nil
	}
	lease := lease(s, f.Name)
	held, err := lease.TryLockContext(ctx, f.Poll)
	switch {
	case !held && f.Lanes != nil && ctx.Err() != nil:
		return run.drainUnelected(ctx)
	case !held:
		return store.Explain(ignoreEnd(ctx, err))
	}
	defer func() { err = errors.Join(err, lease.Unlock()) }()
	run.freshen(ctx)
	if f.Lanes != nil {
		run.runLanes(ctx)
		return nil
	}
	run.loop(ctx)
	return nil
}

// lease returns the kernel lock that the process running a follower holds.
func lease(s *store.Store, name string) *flock.Flock {
	return locks.New(s.Path() + "-follower-" + name)
}

// WithLease calls do while it holds a follower's lease, so that no other process runs the
// follower. If another process holds the lease, it returns false without calling do. Errors:
// those of the lease's file and of do.
func WithLease(s *store.Store, name string, do func() error) (held bool, err error) {
	lease := lease(s, name)
	if held, err = lease.TryLock(); !held {
		return false, store.Explain(err)
	}
	defer func() { err = errors.Join(err, lease.Unlock()) }()
	return true, do()
}

// ignoreEnd drops an error if ctx has ended.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// following is one run of a follower.
type following struct {
	Follower
	store    *store.Store
	position int64
	begun    bool // position was read, and Begin has succeeded
	failing  bool // the last attempt failed, in this run or the previous one

	mu       sync.Mutex
	progress Progress // of a live follower
}

// report returns the state of a live follower.
func (f *following) report() Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progress
}

// note stores a failure of a live follower. A nil error ends the failing state.
func (f *following) note(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &f.progress
	if why == nil {
		*p = Progress{Follower: f.Name, Live: true}
		return
	}
	if p.Attempts++; p.Since == 0 {
		p.Since = f.store.Now().UnixNano()
	}
	p.Error = reasonOf(why)
}

func (f *following) loop(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		next, err := f.step(ctx)
		if err != nil {
			failures++
			delay := Delay(failures)
			f.failed(ctx, err, delay)
			backoff.Pause(ctx, delay, nil)
			continue
		}
		if failures > 0 {
			f.note(nil) // also if there was no change to handle
		}
		if failures = 0; next > 0 {
			backoff.Pause(ctx, next, f.Wake)
		}
	}
}

// freshen makes the set-aside changes due, because a new process may be able to handle them.
// If it fails, they become due later anyway.
func (f *following) freshen(ctx context.Context) {
	_ = f.store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, makeAsideDue, f.Name)
		return err
	})
}

// failed stores a failure in the account, unless ctx has ended. If the store is not writable,
// the account does not show the failure.
func (f *following) failed(ctx context.Context, err error, delay time.Duration) {
	if ctx.Err() != nil {
		return
	}
	f.failing = true
	if f.Live {
		f.note(err)
		return
	}
	_ = f.store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error { return failed(ctx, tx, f.Name, "", err, delay) })
}

// step handles one batch. When all changes were read, it handles the set-aside changes that
// are due. next is the time until the next step at the latest, 0 for more work immediately.
func (f *following) step(ctx context.Context) (next time.Duration, err error) {
	if !f.begun {
		if err := f.begin(ctx); err != nil {
			return 0, err
		}
	}
	batch, err := f.read(ctx)
	if err != nil {
		return 0, err
	}
	if len(batch) > 0 {
		f.pass("follower_read")
		refused, err := f.handle(ctx, batch)
		if err != nil {
			return 0, err
		}
		f.pass("follower_worked")
		if err := f.advance(ctx, batch[len(batch)-1].Seq, refused); err != nil {
			return 0, err
		}
		f.pass("follower_advanced")
	}
	if len(batch) == f.Limit {
		return 0, nil
	}
	if f.Idle != nil {
		return f.Idle(ctx)
	}
	return f.Poll, f.retry(ctx)
}

// pass is a crash point of followers whose position is stored.
func (f *following) pass(point string) {
	if !f.Live {
		crashpoint.Pass(point)
	}
}

// begin reads the start position: the stored one, or the head for a live follower. Then it
// calls Begin.
func (f *following) begin(ctx context.Context) error {
	err := f.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		c, ran, err := CursorOf(ctx, tx, f.Name, "")
		f.position, f.failing = c.Position, c.failing
		if f.Live && !f.FromStart || f.Begin != nil && !ran {
			f.position, err = tx.Head(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	if f.Begin != nil {
		refused, err := f.guarded(ctx, f.Begin)
		if err == nil {
			err = f.advance(ctx, f.position, refused)
		}
		if err != nil {
			return err
		}
	}
	f.begun = true
	return nil
}

// handle calls Batch.
func (f *following) handle(ctx context.Context, changes []store.Change) (refused []Refusal, err error) {
	return f.guarded(ctx, func(ctx context.Context) ([]Refusal, error) { return f.Batch(ctx, changes) })
}

// guarded calls do with a context that ends stopGrace after ctx. It returns a panic as an
// error.
func (f *following) guarded(ctx context.Context, do func(ctx context.Context) ([]Refusal, error)) (refused []Refusal, err error) {
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
	return do(longer)
}

func (f *following) read(ctx context.Context) (batch []store.Change, err error) {
	err = f.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		batch, err = tx.Changes(ctx, f.position, f.Limit)
		return err
	})
	return batch, err
}

// advance stores the new position together with the refused changes.
func (f *following) advance(ctx context.Context, position int64, refused []Refusal) error {
	if !f.Live {
		err := f.store.Write(context.WithoutCancel(ctx), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			for _, r := range refused {
				if err := SetAside(ctx, tx, f.Name, "", r); err != nil {
					return err
				}
			}
			return Advance(ctx, tx, f.Name, "", Cursor{Position: position})
		})
		if err != nil {
			return err
		}
	} else if len(refused) > 0 {
		f.note(refused[0].Err)
	} else if f.failing {
		f.note(nil)
	}
	f.position, f.failing = position, false
	return nil
}

// retry retries the set-aside changes that are due, in order and one by one, so that a change
// that fails again does not delay the others. It drops a change that is no longer in the log.
func (f *following) retry(ctx context.Context) error {
	if f.Live {
		return nil
	}
	due, err := due(ctx, f.store, f.Name)
	for i := 0; err == nil && i < len(due) && ctx.Err() == nil; i++ {
		err = f.again(ctx, due[i].Seq)
	}
	return err
}

func (f *following) again(ctx context.Context, seq int64) error {
	var refused []Refusal
	c, ok, err := changeAt(ctx, f.store, seq)
	if err == nil && ok {
		refused, err = f.handle(ctx, []store.Change{c})
		if err != nil && ctx.Err() == nil {
			refused, err = []Refusal{{Seq: seq, Err: err}}, nil
		}
	}
	if err != nil {
		return err
	}
	return f.store.Write(context.WithoutCancel(ctx), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		if len(refused) > 0 {
			refused[0].Seq = seq
			return SetAside(ctx, tx, f.Name, "", refused[0])
		}
		return Settle(ctx, tx, f.Name, seq)
	})
}
