package cairn

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/replica"
	"cairn/internal/store"
)

const (
	// lookEvery is how soon a server sees that a hub was joined or left.
	lookEvery = time.Second

	// lookAnyway is how soon it sees the first join where the system does not tell
	// that the store was written to.
	lookAnyway = 30 * time.Second

	// againAfter is how soon a replicator whose store failed is begun again.
	againAfter = 10 * time.Second
)

// Run replicates the memories of all users that have joined a hub, also of those that
// join meanwhile, in this process or another, until ctx ends; then it returns nil. It
// waits for a store that is not there yet. While nobody has joined it holds nothing and
// reads the store only after somebody has written to it.
func (r Replication) Run(ctx context.Context, log *slog.Logger) error {
	s, _, err := r.cairn.awaitStore(ctx)
	if err != nil || ctx.Err() != nil {
		return nil
	}
	b, _, err := r.cairn.Memories().book(ctx, false)
	if err != nil {
		log.Warn("memories are not replicated", "error", err)
		return nil
	}
	run := replicating{Replication: r, store: s, book: b, log: log, running: map[memory.Membership]context.CancelFunc{}, left: make(chan struct{}, 1)}
	defer run.end()
	trouble := errorReporter{log: log, what: "the users of memories cannot be replicated; trying again"}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		err := run.look(ctx)
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

// replicating is one Run. Its methods are called by one goroutine.
type replicating struct {
	Replication
	store *store.Store
	book  *memory.Service
	log   *slog.Logger

	leases  *store.Leases // nil until the first user has joined
	running map[memory.Membership]context.CancelFunc
	group   sync.WaitGroup
	left    chan struct{} // a replicator has found that its user has left the hub

	written time.Time // when the store had been written to, as of the last look
	looked  time.Time
}

// look begins what is to run and stops what is not.
func (r *replicating) look(ctx context.Context) error {
	written := lastWrite(r.store.Path())
	if len(r.running) == 0 && written.Equal(r.written) && time.Since(r.looked) < lookAnyway {
		return nil
	}
	users, err := r.book.Users(ctx)
	if err != nil {
		return err
	}
	users = slices.DeleteFunc(users, func(u memory.User) bool { return u.HubURL == "" })
	if len(users) > 0 {
		if err := r.begin(ctx); err != nil {
			return err
		}
	}
	r.match(ctx, users)
	r.written, r.looked = written, time.Now()
	return nil
}

// lastWrite is when the store at a path was last written to; the zero time if the
// system does not tell.
func lastWrite(path string) time.Time {
	info, err := os.Stat(path + "-wal")
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// begin creates the leases that the replicators of this process share, if there are none.
func (r *replicating) begin(ctx context.Context) error {
	if r.leases != nil {
		return nil
	}
	r.store.RemoveStaleLocks()
	leases, err := replica.NewLeases(r.store, lasting(r.cairn.settings.work.Hub.LeaseS), r.log)
	if err != nil {
		return err
	}
	r.leases = leases
	r.group.Go(func() { leases.Keep(ctx) })
	return nil
}

// end waits for what runs, whose context has ended, and gives the leases back.
func (r *replicating) end() {
	r.group.Wait()
	if r.leases != nil {
		r.leases.Close()
	}
}

// match starts what is to run and stops what is not.
func (r *replicating) match(ctx context.Context, joined []memory.User) {
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

// renew gives a replicator whose token the hub refuses the one of now.
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

// runOne runs a user's replicator, again after a failure. One that cannot be made, as
// without its token, is looked for as soon as that may have changed.
func (r *replicating) runOne(ctx context.Context, u memory.User, leases *store.Leases) {
	trouble := errorReporter{log: r.log, what: "memories are not replicated; trying again"}
	for ctx.Err() == nil {
		wait := lookEvery
		one, err := r.replicator(ctx, r.store, r.book, u, leases, r.log)
		if err == nil {
			r.note(u.UserID, one)
			err = one.Run(ctx)
			r.forget(u.UserID, one)
			wait = againAfter
		} else if fault.HasCode(err, memory.StopUnauthorized) && err.Error() != trouble.last {
			if serr := r.book.SetStop(ctx, u.Membership(), memory.StopUnauthorized, fault.As(err).Message); serr != nil {
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
		store.Pause(ctx, wait, nil)
	}
}

// errorReporter logs an error that lasts once, and again after it has changed or was gone.
type errorReporter struct {
	log  *slog.Logger
	what string
	last string // the error that was logged, "" after a success
}

// report takes the result of one attempt: its error, nil for a success.
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

// note remembers which replicator runs for a user in this process.
func (r Replication) note(user string, one *replica.Replicator) {
	c := r.cairn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replicators == nil {
		c.replicators = map[string]*replica.Replicator{}
	}
	c.replicators[user] = one
}

// forget notes that a replicator has ended, if no later one runs for the user.
func (r Replication) forget(user string, one *replica.Replicator) {
	c := r.cairn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replicators[user] == one {
		delete(c.replicators, user)
	}
}

// Running are the replicators of this process, by local user; nil before there were
// any.
func (r Replication) Running() map[string]*replica.Replicator {
	c := r.cairn
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.replicators)
}
