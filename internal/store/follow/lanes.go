package follow

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"cairn/internal/backoff"
	"cairn/internal/store"
)

// Lanes are streams that a follower processes concurrently, such as the projects of the
// archive. Each lane has its own cursor and failures, so a failing lane does not delay
// others. The log only reports which lanes have work. A turn reads the changes after the
// cursor (Cursor) and stores the new cursor together with its results (Advance).
type Lanes struct {
	// Of returns the lanes that a change concerns; the list may be empty.
	Of func(c store.Change) []string

	// Behind returns the lanes that have work. It is called when the follower starts and
	// stops, and after a turn that reports Others.
	Behind func(ctx context.Context) ([]string, error)

	// Turn does all work of a lane. After an error it is called again, with back-off up to a
	// minute. woken receives a value when there is more work, for a turn that waits. It is nil
	// for the last turn of a process that stops before it became the follower.
	Turn func(ctx context.Context, lane string, woken <-chan struct{}) (Turned, error)

	// Retry retries set-aside changes of a lane. It stores each result (Settle,
	// SetAside).
	Retry func(ctx context.Context, lane string, seqs []int64) error

	// Quiet is called when a lane had no work for QuietAfter, and when the run stops.
	Quiet      func(ctx context.Context, lane string)
	QuietAfter time.Duration

	// Rest returns how long a lane pauses after a turn; busy is the number of active lanes.
	// The next turn includes changes that are written during the pause.
	Rest func(turn time.Duration, busy int64) time.Duration

	// Begin runs concurrently with the lanes once the process is the follower, until ctx
	// ends.
	Begin func(ctx context.Context)

	// Failed is called after each failed turn, and with lane "" after other failures.
	Failed func(lane string, err error, next time.Duration)

	// Drain is how long the lanes may continue after a stop.
	Drain time.Duration
}

// Turned is the result of a turn.
type Turned struct {
	Full   bool // there is so much work that the lane must not pause
	Others bool // other lanes may have work, too
}

// laneBackoff is the delay of a lane after a failed turn.
var laneBackoff = backoff.Policy{First: time.Second, Max: time.Minute}

// laning is one run of a follower with lanes.
type laning struct {
	*following
	draining chan struct{} // closed when the run stops
	tenders  sync.WaitGroup
	busy     atomic.Int64 // lanes that have a turn or pause after one
	asked    time.Time    // when the account was last checked for due work

	mu    sync.Mutex
	lanes map[string]*lane
	ended bool // no further lane is started
}

// lane is one lane with a goroutine.
type lane struct {
	name    string
	wake    chan struct{} // signals work
	again   chan struct{} // signals that a failing turn is due
	due     chan struct{} // signals that changes set aside are due
	looked  bool          // failing was read
	failing bool          // the last turn failed, in this process or the previous one
}

// runLanes runs the lanes until ctx ends, and then gives them limited time to finish.
func (f *following) runLanes(ctx context.Context) {
	r := &laning{following: f, draining: make(chan struct{}), lanes: map[string]*lane{}}
	working, halt := context.WithCancel(context.WithoutCancel(ctx))
	defer halt()
	if f.Lanes.Begin != nil {
		r.tenders.Go(func() { f.Lanes.Begin(ctx) })
	}
	listening := &following{store: f.store, Follower: Follower{
		Name: f.Name, Live: true, Limit: f.Limit, Poll: f.Poll, Wake: f.Wake,
		Begin: func(context.Context) ([]Refusal, error) { return nil, r.catchUp(working) },
		Batch: func(_ context.Context, changes []store.Change) ([]Refusal, error) {
			r.collect(working, changes)
			return nil, nil
		},
		Idle: func(ctx context.Context) (time.Duration, error) { return f.Poll, r.wakeDue(ctx, working) },
	}}
	listening.loop(ctx)
	defer time.AfterFunc(f.Lanes.Drain, halt).Stop()
	_ = r.catchUp(working)
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	close(r.draining)
	r.tenders.Wait()
}

// drainUnelected does the last work of a process that stops before it became the follower. If
// another process is the follower, it leaves the work to that process.
func (f *following) drainUnelected(ctx context.Context) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.Lanes.Drain)
	defer cancel()
	_, err := WithLease(f.store, f.Name, func() error {
		behind, err := f.Lanes.Behind(limited)
		for _, name := range behind {
			if _, failed := f.Lanes.Turn(limited, name, nil); failed != nil {
				f.Lanes.Failed(name, failed, 0)
				continue
			}
			f.Lanes.Quiet(limited, name)
		}
		return err
	})
	if limited.Err() != nil {
		return nil // the next process does the rest
	}
	return err
}

// catchUp wakes the lanes that are behind.
func (r *laning) catchUp(ctx context.Context) error {
	behind, err := r.Lanes.Behind(ctx)
	for _, name := range behind {
		r.signal(ctx, name, func(l *lane) chan struct{} { return l.wake })
	}
	if err != nil && ctx.Err() == nil {
		r.Lanes.Failed("", err, 0)
	}
	return err
}

// collect wakes the lanes that changes concern.
func (r *laning) collect(ctx context.Context, changes []store.Change) {
	seen := map[string]bool{}
	for _, c := range changes {
		for _, name := range r.Lanes.Of(c) {
			if !seen[name] {
				seen[name] = true
				r.signal(ctx, name, func(l *lane) chan struct{} { return l.wake })
			}
		}
	}
}

// wakeDue wakes the lanes with set-aside changes that are due, and the failing lanes for which
// the user requested a retry. It reads the account once in each Poll, not after each write.
func (r *laning) wakeDue(ctx, working context.Context) error {
	if time.Since(r.asked) < r.Poll {
		return nil
	}
	r.asked = time.Now()
	return r.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		lanes, err := tx.Texts(ctx, selectLanesDue, r.Name, tx.Now().UnixNano())
		for _, name := range lanes {
			r.signal(working, name, func(l *lane) chan struct{} { return l.due })
		}
		if err == nil {
			lanes, err = tx.Texts(ctx, selectLanesWanted, r.Name)
		}
		for _, name := range lanes {
			r.signal(working, name, func(l *lane) chan struct{} { return l.again })
		}
		return err
	})
}

// signal wakes a lane. The first signal starts the lane's goroutine.
func (r *laning) signal(ctx context.Context, name string, which func(*lane) chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lanes[name]
	if l == nil {
		l = &lane{name: name, wake: make(chan struct{}, 1), again: make(chan struct{}, 1), due: make(chan struct{}, 1)}
		if r.ended {
			return
		}
		r.lanes[name] = l
		r.tenders.Go(func() { r.attend(ctx, l) })
	}
	select {
	case which(l) <- struct{}{}:
	default:
	}
}

// attend processes a lane whenever it is woken.
func (r *laning) attend(ctx context.Context, l *lane) {
	idle := time.NewTimer(r.Lanes.QuietAfter)
	defer idle.Stop()
	for {
		select {
		case <-l.wake:
		case <-l.again:
		case <-l.due:
			r.retryLane(ctx, l)
			continue
		case <-idle.C:
			r.Lanes.Quiet(ctx, l.name)
			continue
		case <-ctx.Done():
			return
		case <-r.draining:
			r.finish(ctx, l)
			return
		}
		if !r.turn(ctx, l) {
			return
		}
		idle.Reset(r.Lanes.QuietAfter)
	}
}

// finish does the last turn of a lane.
func (r *laning) finish(ctx context.Context, l *lane) {
	select {
	case <-l.wake:
		if _, err := r.try(ctx, l, 0); err != nil {
			return
		}
	default:
	}
	r.Lanes.Quiet(ctx, l.name)
}

// turn does the work of a lane, with pauses between attempts and afterwards. It returns false
// if the run stops.
func (r *laning) turn(ctx context.Context, l *lane) bool {
	r.busy.Add(1)
	defer r.busy.Add(-1)
	for failures := 1; ; failures++ {
		began, delay := time.Now(), laneBackoff.Delay(failures)
		did, err := r.try(ctx, l, delay)
		if err == nil {
			if did.Others {
				_ = r.catchUp(ctx)
			}
			if !did.Full {
				r.pause(ctx, r.Lanes.Rest(time.Since(began), r.busy.Load()), nil)
			}
			return true
		}
		if !r.pause(ctx, delay, l.again) {
			return false
		}
	}
}

// pause waits for a time or a signal. It returns false if the run stops.
func (r *laning) pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-wake:
	case <-ctx.Done():
		return false
	case <-r.draining:
		return false
	}
	return true
}

// try runs one turn of a lane and stores its result in the account.
func (r *laning) try(ctx context.Context, l *lane, delay time.Duration) (did Turned, err error) {
	if !l.looked {
		err = r.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
			c, _, err := CursorOf(ctx, tx, r.Name, l.name)
			l.failing = c.failing
			return err
		})
		l.looked = err == nil
	}
	if err == nil {
		did, err = r.guardedTurn(ctx, l)
	}
	if err != nil && ctx.Err() != nil || err == nil && !l.failing {
		return did, err
	}
	l.failing = err != nil
	if err != nil {
		r.Lanes.Failed(l.name, err, delay)
	}
	// If the store is not writable, the account does not show the failure.
	_ = r.store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		if err != nil {
			return failed(ctx, tx, r.Name, l.name, err, delay)
		}
		return Recover(ctx, tx, r.Name, l.name)
	})
	return did, err
}

// guardedTurn calls Turn and returns a panic as an error.
func (r *laning) guardedTurn(ctx context.Context, l *lane) (did Turned, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return r.Lanes.Turn(ctx, l.name, l.wake)
}

// retryLane retries the set-aside changes of a lane that are due.
func (r *laning) retryLane(ctx context.Context, l *lane) {
	due, err := due(ctx, r.store, r.Name)
	var seqs []int64
	for _, a := range due {
		if a.Lane == l.name {
			seqs = append(seqs, a.Seq)
		}
	}
	if err == nil && len(seqs) > 0 {
		err = r.Lanes.Retry(ctx, l.name, seqs)
	}
	if err != nil && ctx.Err() == nil {
		r.Lanes.Failed(l.name, err, 0)
	}
}
