package cairn

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"cairn/internal/backoff"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/replication"
	"cairn/internal/replica"
	"cairn/internal/settings"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

const (
	// pollInterval is how soon a server notices that a hub was joined or left.
	pollInterval = time.Second

	// fallbackInterval is how soon it notices the first join if the system does not report
	// writes to the store.
	fallbackInterval = 30 * time.Second

	// restartDelay is the delay before a replicator restarts after a failure of its store.
	restartDelay = 10 * time.Second
)

// Run replicates the memories of all users who have joined a hub until ctx ends; then it
// returns nil. It includes users who join later, in this or another process. It waits for a
// store that does not exist yet. While no user has joined, it holds no resources and reads
// the store only after a write to it.
func (r Replication) Run(ctx context.Context, log *slog.Logger) error {
	s, _, err := r.cairn.awaitStore(ctx)
	if err != nil || ctx.Err() != nil {
		return nil
	}
	b, _, err := r.cairn.Memories().service(ctx, false)
	if err != nil {
		log.Warn("memories are not replicated", "error", err)
		return nil
	}
	run := replicatorPool{Replication: r, store: s, book: b, log: log, running: map[memory.Membership]context.CancelFunc{}, left: make(chan struct{}, 1)}
	defer run.stop()
	trouble := errorReporter{log: log, what: "the users of memories cannot be replicated; trying again"}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := run.update(ctx)
		if ctx.Err() == nil {
			trouble.report(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-run.left:
		}
	}
}

// replicatorPool is the state of one Run. Only one goroutine calls its methods.
type replicatorPool struct {
	Replication
	store *store.Store
	book  *memories.Service
	log   *slog.Logger

	leases  *follow.Leases // nil until the first user has joined
	running map[memory.Membership]context.CancelFunc
	group   sync.WaitGroup
	left    chan struct{} // signals that a replicator's user has left the hub

	written time.Time // time of the store's last write, as of the last update
	looked  time.Time
}

// update starts and stops replicators after changes of the store.
func (r *replicatorPool) update(ctx context.Context) error {
	written := lastWrite(r.store.Path())
	if len(r.running) == 0 && written.Equal(r.written) && time.Since(r.looked) < fallbackInterval {
		return nil
	}
	users, err := r.book.Users(ctx)
	if err != nil {
		return err
	}
	users = slices.DeleteFunc(users, func(u memory.User) bool { return u.HubURL == "" })
	if len(users) > 0 {
		if err := r.createLeases(ctx); err != nil {
			return err
		}
	}
	r.match(ctx, users)
	r.written, r.looked = written, time.Now()
	return nil
}

// lastWrite returns the time of the last write to the store at a path; zero if it is
// unknown.
func lastWrite(path string) time.Time {
	info, err := os.Stat(path + "-wal")
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// createLeases creates the leases that the replicators of this process share, unless they
// exist.
func (r *replicatorPool) createLeases(ctx context.Context) error {
	if r.leases != nil {
		return nil
	}
	follow.RemoveStaleLocks(r.store)
	leases, err := replica.NewLeases(r.store, settings.Seconds(r.cairn.Settings.Work.Hub.LeaseS), r.log)
	if err != nil {
		return err
	}
	r.leases = leases
	r.group.Go(func() { leases.Keep(ctx) })
	return nil
}

// stop waits for the replicators, whose context has ended, and releases their leases.
func (r *replicatorPool) stop() {
	r.group.Wait()
	if r.leases != nil {
		r.leases.Close()
	}
}

// match starts the replicators of joined users and stops all others.
func (r *replicatorPool) match(ctx context.Context, joined []memory.User) {
	wanted := map[memory.Membership]bool{}
	for _, u := range joined {
		if wanted[u.Membership()] = true; r.running[u.Membership()] != nil {
			r.renew(ctx, u)
			continue
		}
		one, cancel := context.WithCancel(ctx)
		r.running[u.Membership()] = cancel
		leases := r.leases
		r.group.Go(func() {
			defer cancel()
			r.runOne(one, u, leases)
		})
	}
	for u, cancel := range r.running {
		if !wanted[u] {
			cancel()
			delete(r.running, u)
		}
	}
}

// renew gives the current token to a replicator whose token the hub rejects.
func (r Replication) renew(ctx context.Context, u memory.User) {
	one := r.Running()[u.UserID]
	if one == nil {
		return
	}
	if state, _ := one.State(); state != replica.StateUnauthorized && state != replica.StateReadOnly {
		return
	}
	if token, err := r.token(u); err == nil && one.Client.SetToken(token) {
		one.Renewed(ctx)
	}
}

// runOne runs a user's replicator and restarts it after a failure. If it cannot be created,
// for instance without a token, runOne tries again as soon as that may have changed.
func (r *replicatorPool) runOne(ctx context.Context, u memory.User, leases *follow.Leases) {
	trouble := errorReporter{log: r.log, what: "memories are not replicated; trying again"}
	for ctx.Err() == nil {
		wait := pollInterval
		one, err := r.replicator(ctx, r.store, r.book, u, leases, r.log)
		if err == nil {
			r.note(u.UserID, one)
			err = one.Run(ctx)
			r.forget(u.UserID, one)
			wait = restartDelay
		} else if fault.HasCode(err, replication.StopUnauthorized) && err.Error() != trouble.last {
			if serr := r.book.SetStop(ctx, u.Membership(), replication.StopUnauthorized, fault.As(err).Message); serr != nil {
				r.log.Debug("the store does not show why memories are not replicated", "error", serr)
			}
		}
		if fault.HasCode(err, memory.CodeLeft) {
			select {
			case r.left <- struct{}{}:
			default:
			}
			return
		}
		if ctx.Err() == nil {
			trouble.report(err)
		}
		backoff.Pause(ctx, wait, nil)
	}
}

// errorReporter logs a lasting error once, and again after it has changed or ended.
type errorReporter struct {
	log  *slog.Logger
	what string
	last string // the error that was logged, "" after a success
}

// report notes the result of one attempt: its error, or nil for success.
func (c *errorReporter) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != c.last {
		c.log.Warn(c.what, "error", err)
	}
	c.last = text
}

// note stores the replicator that runs for a user in this process.
func (r Replication) note(user string, one *replica.Replicator) {
	c := r.cairn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replicators == nil {
		c.replicators = map[string]*replica.Replicator{}
	}
	c.replicators[user] = one
}

// forget removes a replicator that has ended, unless a later one runs for the user.
func (r Replication) forget(user string, one *replica.Replicator) {
	c := r.cairn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replicators[user] == one {
		delete(c.replicators, user)
	}
}

// Running returns the replicators of this process by local user; nil before the first one.
func (r Replication) Running() map[string]*replica.Replicator {
	c := r.cairn
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.replicators)
}
