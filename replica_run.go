package cairn

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"cairn/internal/memory"
	"cairn/internal/replica"
	"cairn/internal/store"
)

// lookEvery is how soon a server sees that a hub was joined or left.
const lookEvery = time.Second

// Run replicates the memories of all users that have joined a hub, also of those that
// join meanwhile, until ctx ends; then it returns nil. It waits for a store that is
// not there yet.
func (r Replication) Run(ctx context.Context, log *slog.Logger) error {
	s, _, err := r.cairn.awaitStore(ctx)
	if err != nil || ctx.Err() != nil {
		return nil
	}
	replica.Leftovers(s.Path())
	b, _, err := r.cairn.Memories().book(ctx, false)
	if err != nil {
		log.Warn("memories are not replicated", "error", err)
		return nil
	}
	lanes, err := replica.NewLanes(s, b, lasting(r.cairn.settings.work.Hub.LeaseS), log)
	if err != nil {
		log.Warn("memories are not replicated", "error", err)
		return nil
	}
	defer lanes.Close()
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { lanes.Keep(ctx) })
	running := map[memory.User]context.CancelFunc{}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		users, err := b.Users(ctx)
		if err != nil && ctx.Err() == nil {
			log.Warn("the users of memories cannot be read; trying again", "error", err)
			users = nil
		}
		if err == nil {
			r.match(ctx, users, running, &group, func(ctx context.Context, u memory.User) { r.runOne(ctx, s, b, u, lanes, log) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// match starts what is to run and stops what is not.
func (r Replication) match(ctx context.Context, users []memory.User, running map[memory.User]context.CancelFunc, group *sync.WaitGroup,
	run func(context.Context, memory.User),
) {
	wanted := map[memory.User]bool{}
	for _, u := range users {
		if u.HubURL == "" {
			continue
		}
		if wanted[u] = true; running[u] != nil {
			r.renew(u)
			continue
		}
		one, cancel := context.WithCancel(ctx)
		running[u] = cancel
		group.Go(func() {
			defer cancel()
			run(one, u)
		})
	}
	for u, cancel := range running {
		if !wanted[u] {
			cancel()
			delete(running, u)
		}
	}
}

// renew gives a replicator whose token the hub refuses the one of now.
func (r Replication) renew(u memory.User) {
	one := r.Running()[u.UserID]
	if one == nil {
		return
	}
	if state, _ := one.State(); state != replica.StateUnauthorized {
		return
	}
	if token, err := r.token(u); err == nil && one.Client.SetToken(token) {
		one.Renewed()
	}
}

// runOne runs a user's replicator, again after a failure.
func (r Replication) runOne(ctx context.Context, s *store.Store, b *memory.Book, u memory.User, lanes *replica.Lanes, log *slog.Logger) {
	for ctx.Err() == nil {
		one, err := r.replicator(ctx, s, b, u, lanes, log)
		if err == nil {
			r.note(u.UserID, one)
			err = one.Run(ctx)
			r.note(u.UserID, nil)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("memories are not replicated; trying again", "error", err)
		}
		timer := time.NewTimer(10 * lookEvery)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// note remembers which replicator runs for a user in this process.
func (r Replication) note(user string, one *replica.Replicator) {
	c := r.cairn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replicators == nil {
		c.replicators = map[string]*replica.Replicator{}
	}
	if c.replicators[user] = one; one == nil {
		delete(c.replicators, user)
	}
}

// Running are the replicators of this process, by local user; nil while there are none.
func (r Replication) Running() map[string]*replica.Replicator {
	c := r.cairn
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.replicators)
}
