package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Lanes are streams of work that a follower does side by side, such as the projects of
// the archive. Each has a cursor and failures of its own, so that one that fails holds
// up no other. The log only reports which lane has something to do: a turn reads what is
// behind the cursor (Tx.Cursor) and stores a new one with what it has done (Tx.Advance).
type Lanes struct {
	// Of names the lanes that a change concerns; none is allowed.
	Of func(c Change) []string

	// Behind names the lanes that have something to do. It is asked when the follower
	// begins and when it stops, and whenever a turn says so.
	Behind func(ctx context.Context) ([]string, error)

	// Turn does all that a lane has to do. After an error it is called again, with
	// back-off, up to a minute. woken receives when there is more to do, for a turn that
	// waits for something; it is nil for the last turn of a process that follows no more.
	Turn func(ctx context.Context, lane string, woken <-chan struct{}) (Turned, error)

	// Retry tries changes again that were set aside in a lane. It settles each itself
	// (Tx.Settle, Tx.SetAside).
	Retry func(ctx context.Context, lane string, seqs []int64) error

	// Quiet is called when a lane has had nothing to do for QuietAfter, and at its end.
	Quiet      func(ctx context.Context, lane string)
	QuietAfter time.Duration

	// Rest says how long a lane rests after a turn, when so many lanes are at work. What
	// is written meanwhile is the next turn's.
	Rest func(turn time.Duration, busy int64) time.Duration

	// Begin runs beside the lanes once the process is the follower, until ctx ends.
	Begin func(ctx context.Context)

	// Failed is told of each failed turn, and of what else cannot be done now (lane "").
	Failed func(lane string, err error, next time.Duration)

	// Drain is how long the lanes may work on at a stop.
	Drain time.Duration
}

// Turned is what a turn tells of itself.
type Turned struct {
	Full   bool // there was so much to do that the lane must not rest
	Others bool // other lanes may have something to do, too
}

// laneBackoff is how long a lane waits after a turn that failed.
var laneBackoff = Backoff{First: time.Second, Max: time.Minute}

// laning is one run of a follower with lanes.
type laning struct {
	*following
	draining chan struct{} // closed when the run stops
	tenders  sync.WaitGroup
	busy     atomic.Int64 // lanes that have a turn or rest after one
	asked    time.Time    // when the account was last asked for what is due

	mu    sync.Mutex
	lanes map[string]*lane
	ended bool // no other lane is begun any more
}

// lane is one lane that is tended.
type lane struct {
	name    string
	wake    chan struct{} // there is something to do
	again   chan struct{} // what it fails at is due
	due     chan struct{} // what was set aside is due
	looked  bool          // failing has been read
	failing bool          // the last turn failed, or that of the process before
}

// runLanes runs the lanes until ctx ends, and then lets them finish for a limited time.
func (f *following) runLanes(ctx context.Context) {
	r := &laning{following: f, draining: make(chan struct{}), lanes: map[string]*lane{}}
	working, halt := context.WithCancel(context.WithoutCancel(ctx))
	defer halt()
	if f.Lanes.Begin != nil {
		r.tenders.Go(func() { f.Lanes.Begin(ctx) })
	}
	listening := &following{store: f.store, wake: f.wake, Follower: Follower{
		Name: f.Name, Live: true, Limit: f.Limit, Poll: f.Poll,
		Begin: func(context.Context) ([]Refusal, error) { return nil, r.catchUp(working) },
		Batch: func(_ context.Context, changes []Change) ([]Refusal, error) {
			r.collect(working, changes)
			return nil, nil
		},
	}, idle: func(ctx context.Context) error { return r.wakeDue(ctx, working) }}
	listening.loop(ctx)
	defer time.AfterFunc(f.Lanes.Drain, halt).Stop()
	_ = r.catchUp(working)
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	close(r.draining)
	r.tenders.Wait()
}

// drainUnelected does the last work of a process that stops before it became the
// follower. If another process is the follower, that one does it.
func (f *following) drainUnelected(ctx context.Context) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.Lanes.Drain)
	defer cancel()
	_, err := f.store.WithLease(f.Name, func() error {
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
func (r *laning) collect(ctx context.Context, changes []Change) {
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

// wakeDue wakes the lanes whose changes that were set aside are due, and those that
// somebody wants tried again now. It asks for them once in each Poll, not after each
// write.
func (r *laning) wakeDue(ctx, working context.Context) error {
	if time.Since(r.asked) < r.Poll {
		return nil
	}
	r.asked = time.Now()
	return r.store.Read(ctx, func(ctx context.Context, tx *Tx) error {
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

// signal wakes a lane, which has a goroutine of its own from the first time on.
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

// attend works on a lane whenever it is woken.
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

// finish is the last turn of a lane.
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

// turn does what a lane has to do, with pauses between the tries, and lets it rest;
// false if the run stops.
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

// pause waits for a time or a signal; false if the run stops.
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

// try is one turn of a lane, of which account is kept.
func (r *laning) try(ctx context.Context, l *lane, delay time.Duration) (did Turned, err error) {
	if !l.looked {
		err = r.store.Read(ctx, func(ctx context.Context, tx *Tx) error {
			c, _, err := tx.Cursor(ctx, r.Name, l.name)
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
	// It is no harm that a store which cannot be written to does not show it.
	_ = r.store.Write(ctx, Normal, func(ctx context.Context, tx *Tx) error {
		if err != nil {
			return tx.failed(ctx, r.Name, l.name, err, delay)
		}
		return tx.Recover(ctx, r.Name, l.name)
	})
	return did, err
}

// guardedTurn is Turn, whose panic is an error like any other.
func (r *laning) guardedTurn(ctx context.Context, l *lane) (did Turned, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return r.Lanes.Turn(ctx, l.name, l.wake)
}

// retryLane tries what was set aside in a lane and is due.
func (r *laning) retryLane(ctx context.Context, l *lane) {
	due, err := r.store.due(ctx, r.Name)
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
